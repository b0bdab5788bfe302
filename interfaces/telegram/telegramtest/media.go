package telegramtest

import (
	"encoding/json"
	"net/http"
	"strings"
)

// sendDraft implements sendMessageDraft, for private chats only.
func (s *Server) sendDraft(c Call) (any, error) {
	chat, err := s.findChat(c)
	if err != nil {
		return nil, err
	}
	id := atoi(c.Params["draft_id"])
	switch {
	case chat.Type != "private":
		return nil, refuse("TEXTDRAFT_PEER_INVALID")
	case id == 0:
		return nil, refuse("draft identifier must be non-zero")
	}
	d := Draft{ID: id, At: c.At}
	if d.Thread, err = topic(chat, c.Params["message_thread_id"], false); err != nil {
		return nil, err
	}
	if c.Params["text"] != "" {
		if d.Text, _, err = readText(c, "text", maxText); err != nil {
			return nil, err
		}
	}
	chat.drafts = append(chat.drafts, d)
	return true, nil
}

// Limits of uploads, in bytes.
const (
	maxPhoto  = 10 << 20
	maxUpload = 50 << 20
)

// checkFile returns an error if the file's size or type is not allowed for its kind.
func checkFile(kind string, data []byte) error {
	is := http.DetectContentType(data)
	switch {
	case len(data) > maxUpload:
		return &failure{413, "Request Entity Too Large", nil}
	case kind == "photo" && len(data) > maxPhoto:
		return refuse("PHOTO_TOO_BIG")
	case kind == "photo" && !strings.HasPrefix(is, "image/"):
		return refuse("IMAGE_PROCESS_FAILED")
	case kind == "voice" && is != "application/ogg":
		return refuse("wrong type of the voice message file")
	case kind == "video" && is != "video/mp4":
		return refuse("wrong type of the video file")
	}
	return nil
}

func (s *Server) sendFile(c Call, kind string) (any, error) {
	chat, m, err := s.newMessage(c)
	if err != nil {
		return nil, err
	}
	if m.Text, m.Entities, err = readText(c, "caption", maxCaption); err != nil {
		return nil, err
	}
	m.Kind, m.File, m.Source = kind, c.Files[kind], c.Params[kind]
	switch {
	case m.File == nil && m.Source == "":
		return nil, refuse("there is no %s in the request", kind)
	case strings.HasPrefix(m.Source, "http") && strings.Contains(m.Source, "broken"):
		return nil, refuse("failed to get HTTP URL content")
	case m.File == nil && !strings.HasPrefix(m.Source, "http") && s.files[m.Source] == nil:
		return nil, refuse("wrong file identifier/HTTP URL specified")
	}
	if m.File != nil {
		if err := checkFile(kind, m.File); err != nil {
			return nil, err
		}
	}
	return s.addMessage(chat, m), nil
}

func (s *Server) sendPoll(c Call) (any, error) {
	chat, m, err := s.newMessage(c)
	if err != nil {
		return nil, err
	}
	var options []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal([]byte(c.Params["options"]), &options) != nil {
		return nil, refuse("can't parse options JSON object")
	}
	m.Kind, m.Text = "poll", c.Params["question"]
	switch n := units(m.Text); {
	case n == 0 || n > 300:
		return nil, refuse("poll question length must not exceed 300")
	case len(options) < 2 || len(options) > 12:
		return nil, refuse("poll must have at least 2 answer options")
	}
	for _, o := range options {
		if n := units(o.Text); n == 0 || n > 100 {
			return nil, refuse("poll options length must not exceed 100")
		}
		m.Text += "\n" + o.Text
	}
	return s.addMessage(chat, m), nil
}
