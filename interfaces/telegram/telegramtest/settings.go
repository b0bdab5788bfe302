package telegramtest

import (
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

func (s *Server) answerQuery(c Call) (any, error) {
	answered, known := s.queries[c.Params["callback_query_id"]]
	switch {
	case !known || answered:
		return nil, refuse("query is too old and response timeout expired or query ID is invalid")
	case units(c.Params["text"]) > 200:
		return nil, refuse("MESSAGE_TOO_LONG")
	}
	s.queries[c.Params["callback_query_id"]] = true
	return true, nil
}

func (s *Server) setCommands(c Call) (any, error) {
	var list []struct{ Command, Description string }
	if json.Unmarshal([]byte(c.Params["commands"]), &list) != nil {
		return nil, refuse("can't parse commands list JSON object")
	}
	name := regexp.MustCompile(`^[a-z0-9_]{1,32}$`)
	for _, x := range list {
		if n := units(x.Description); !name.MatchString(x.Command) || n < 1 || n > 256 {
			return nil, refuse("BOT_COMMAND_INVALID")
		}
	}
	if len(list) > 100 {
		return nil, refuse("BOT_COMMANDS_TOO_MUCH")
	}
	var scope struct {
		Type string `json:"type"`
		Chat int64  `json:"chat_id"`
	}
	_ = json.Unmarshal([]byte(c.Params["scope"]), &scope)
	if scope.Type == "chat" && s.chats[scope.Chat] == nil {
		return nil, refuse("chat not found")
	}
	s.commands[c.Params["scope"]+" "+c.Params["language_code"]] = c.Params["commands"]
	return true, nil
}

func (s *Server) deleteCommands(c Call) (any, error) {
	delete(s.commands, c.Params["scope"]+" "+c.Params["language_code"])
	return true, nil
}

// Commands returns the command menus, by scope and language.
func (s *Server) Commands() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.commands)
}

// fullChat implements getChat.
func (s *Server) fullChat(c Call) (any, error) {
	chat, err := s.findChat(c)
	if err != nil {
		return nil, err
	}
	full := chat.json()
	if chat.Linked != 0 {
		full["linked_chat_id"] = chat.Linked
	}
	return full, nil
}

func (s *Server) administrators(c Call) (any, error) {
	chat, err := s.findChat(c)
	if err != nil {
		return nil, err
	}
	if chat.Type == "private" {
		return nil, refuse("there are no administrators in the private chat")
	}
	list := []any{}
	for _, id := range chat.Admins {
		if p := s.people[id]; p != nil {
			list = append(list, map[string]any{"status": "administrator", "user": p.json()})
		}
	}
	return list, nil
}

// AddFile adds a file that can be downloaded.
func (s *Server) AddFile(id string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[id] = data
}

const maxDownload = 20 << 20

func (s *Server) getFile(c Call) (any, error) {
	id := c.Params["file_id"]
	data, known := s.files[id]
	switch {
	case !known:
		return nil, refuse("wrong file_id or the file is temporarily unavailable")
	case len(data) > maxDownload:
		return nil, refuse("file is too big")
	}
	path := "documents/" + id
	if strings.Contains(id, "/") {
		path = id
	}
	return map[string]any{"file_id": id, "file_unique_id": "u" + id, "file_size": len(data), "file_path": path}, nil
}

func (s *Server) serveFile(w http.ResponseWriter, r *http.Request, path string) {
	s.mu.Lock()
	id := strings.TrimPrefix(path, "documents/")
	data, known := s.files[id]
	stalled := id == s.stalled
	s.mu.Unlock()
	if !known {
		http.Error(w, "404", http.StatusNotFound)
		return
	}
	if stalled {
		w.Header().Set("Content-Length", strconv.Itoa(len(data)+1))
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-s.closing:
		}
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data)
}

func (s *Server) setWebhook(c Call) (any, error) {
	switch url := c.Params["url"]; {
	case url == "":
		s.hook = webhook{}
	case !strings.HasPrefix(url, "https://"):
		return nil, refuse("bad webhook: An HTTPS URL must be provided for webhook")
	case !regexp.MustCompile(`^[A-Za-z0-9_-]{0,256}$`).MatchString(c.Params["secret_token"]):
		return nil, refuse("secret token contains unallowed characters")
	default:
		s.hook = webhook{url: url, secret: c.Params["secret_token"], certificate: c.Files["certificate"]}
	}
	if s.reader != nil && s.hook.url != "" {
		close(s.reader)
		s.reader = nil
	}
	return true, nil
}

func (s *Server) deleteWebhook(c Call) (any, error) {
	s.hook = webhook{}
	if c.Params["drop_pending_updates"] == "true" {
		s.updates = nil
	}
	return true, nil
}

func (s *Server) webhookInfo(Call) (any, error) {
	info := map[string]any{"url": s.hook.url, "pending_update_count": len(s.updates)}
	if s.hook.failed > 0 {
		info["last_error_date"], info["last_error_message"] = s.hook.failed, "Connection refused"
	}
	return info, nil
}

// Stall makes downloads of a file hang after the headers.
func (s *Server) Stall(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stalled = id
}
