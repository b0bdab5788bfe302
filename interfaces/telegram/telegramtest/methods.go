package telegramtest

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

type method func(s *Server, c Call) (any, error)

// methods returns the methods of the Bot API that the server has, by lower-case name. Server.mu is held while one runs.
func methods() map[string]method {
	return map[string]method{
		"getme":                  func(s *Server, _ Call) (any, error) { return s.bot(), nil },
		"sendmessage":            (*Server).sendMessage,
		"sendphoto":              func(s *Server, c Call) (any, error) { return s.sendFile(c, "photo") },
		"senddocument":           func(s *Server, c Call) (any, error) { return s.sendFile(c, "document") },
		"sendvoice":              func(s *Server, c Call) (any, error) { return s.sendFile(c, "voice") },
		"sendaudio":              func(s *Server, c Call) (any, error) { return s.sendFile(c, "audio") },
		"sendvideo":              func(s *Server, c Call) (any, error) { return s.sendFile(c, "video") },
		"sendanimation":          func(s *Server, c Call) (any, error) { return s.sendFile(c, "animation") },
		"sendmessagedraft":       (*Server).sendDraft,
		"sendrichmessage":        (*Server).sendRich,
		"sendpoll":               (*Server).sendPoll,
		"sendchataction":         (*Server).sendChatAction,
		"editmessagetext":        (*Server).editText,
		"editmessagecaption":     (*Server).editText,
		"editmessagereplymarkup": (*Server).editMarkup,
		"deletemessage":          (*Server).deleteMessage,
		"setmessagereaction":     (*Server).setReaction,
		"answercallbackquery":    (*Server).answerQuery,
		"setmycommands":          (*Server).setCommands,
		"deletemycommands":       (*Server).deleteCommands,
		"getchatadministrators":  (*Server).administrators,
		"getchat":                (*Server).fullChat,
		"getfile":                (*Server).getFile,
		"setwebhook":             (*Server).setWebhook,
		"deletewebhook":          (*Server).deleteWebhook,
		"getwebhookinfo":         (*Server).webhookInfo,
	}
}

// findChat returns the chat of a request, if the bot may act there.
func (s *Server) findChat(c Call) (*Chat, error) {
	chat := s.chats[c.Chat]
	switch {
	case c.Chat == 0:
		return nil, refuse("chat_id is empty")
	case chat == nil:
		return nil, refuse("chat not found")
	case chat.Upgraded != 0:
		return nil, &failure{400, "group chat was upgraded to a supergroup chat", map[string]any{"migrate_to_chat_id": chat.Upgraded}}
	case chat.Gone != "":
		return nil, &failure{403, chat.Gone, nil}
	}
	return chat, nil
}

// topic checks a request's thread and returns it. The General topic has no thread for messages, but 1 for chat actions.
func topic(chat *Chat, thread string, general bool) (int, error) {
	if thread == "" {
		return 0, nil
	}
	id := int(atoi(thread))
	state, known := chat.Topics[id]
	switch {
	case chat.Forum && id == 1 && general:
		return 1, nil
	case !chat.Forum || !known || id < 2:
		return 0, refuse("message thread not found")
	case state == "closed":
		return 0, refuse("TOPIC_CLOSED")
	}
	return id, nil
}

// newMessage checks the parameters that all messages share, and returns a message with them.
func (s *Server) newMessage(c Call) (*Chat, *Message, error) {
	chat, err := s.findChat(c)
	if err != nil {
		return nil, nil, err
	}
	m := &Message{From: BotID, At: c.At, Silent: c.Params["disable_notification"] == "true"}
	if m.Thread, err = topic(chat, c.Params["message_thread_id"], false); err != nil {
		return nil, nil, err
	}
	if m.ReplyTo, err = readReply(chat, m.Thread, c); err != nil {
		return nil, nil, err
	}
	m.Markup, err = keyboard(c.Params["reply_markup"])
	return chat, m, err
}

func readReply(chat *Chat, thread int, c Call) (int, error) {
	raw := c.Params["reply_parameters"]
	if raw == "" {
		return 0, nil
	}
	var p struct {
		ID    int  `json:"message_id"`
		Allow bool `json:"allow_sending_without_reply"`
	}
	if json.Unmarshal([]byte(raw), &p) != nil || p.ID == 0 {
		return 0, refuse("can't parse reply parameters JSON object")
	}
	to := chat.find(p.ID)
	switch {
	case to != nil && to.Thread == thread:
		return p.ID, nil
	case p.Allow:
		return 0, nil
	}
	return 0, refuse("message to be replied not found")
}

const maxButtons = 100

func keyboard(raw string) (json.RawMessage, error) {
	if raw == "" {
		return nil, nil
	}
	var k struct {
		Rows [][]struct {
			Text string  `json:"text"`
			Data *string `json:"callback_data"`
			URL  *string `json:"url"`
		} `json:"inline_keyboard"`
	}
	if json.Unmarshal([]byte(raw), &k) != nil {
		return nil, refuse("can't parse reply keyboard markup JSON object")
	}
	buttons := slices.Concat(k.Rows...)
	for _, b := range buttons {
		switch {
		case b.Text == "":
			return nil, refuse("inline keyboard button text can't be empty")
		case b.Data == nil && b.URL == nil:
			return nil, refuse("text buttons are unallowed in the inline keyboard")
		case b.Data != nil && (len(*b.Data) == 0 || len(*b.Data) > 64):
			return nil, refuse("BUTTON_DATA_INVALID")
		case b.URL != nil && !strings.HasPrefix(*b.URL, "http") && !strings.HasPrefix(*b.URL, "tg://"):
			return nil, refuse("inline keyboard button URL '%s' is invalid: Wrong port number specified in the URL", *b.URL)
		}
	}
	if len(buttons) > maxButtons {
		return nil, refuse("REPLY_MARKUP_TOO_LONG")
	}
	if len(buttons) == 0 {
		return nil, nil
	}
	return json.RawMessage(raw), nil
}

// Limits of texts in UTF-16 units, after entities parsing.
const (
	maxText    = 4096
	maxCaption = 1024
)

// readText returns the visible text and the entities of a text or caption.
func readText(c Call, field string, limit int) (string, []Entity, error) {
	raw := c.Params[field]
	var entities []Entity
	if mode := c.Params["parse_mode"]; strings.EqualFold(mode, "HTML") {
		var err error
		if raw, entities, err = ParseHTML(raw); err != nil {
			return "", nil, err
		}
	} else if mode != "" {
		return "", nil, refuse("unsupported parse_mode")
	} else if strings.ToValidUTF8(raw, "") != raw {
		return "", nil, refuse("strings must be encoded in UTF-8")
	}
	raw = strings.TrimSpace(strings.ReplaceAll(raw, "\x00", ""))
	switch n := units(raw); {
	case n > limit && field == "caption":
		return "", nil, refuse("message caption is too long")
	case n > limit:
		return "", nil, refuse("message is too long")
	case strings.Trim(raw, "\u200b\u200e\u200f\u2060\ufeff \n\t") == "" && field == "text":
		return "", nil, refuse("message text is empty")
	}
	return raw, entities, nil
}

func (s *Server) sendMessage(c Call) (any, error) {
	chat, m, err := s.newMessage(c)
	if err != nil {
		return nil, err
	}
	if m.Text, m.Entities, err = readText(c, "text", maxText); err != nil {
		return nil, err
	}
	m.Kind, m.HTML = "text", c.Params["parse_mode"] != ""
	return s.addMessage(chat, m), nil
}

func (s *Server) addMessage(chat *Chat, m *Message) any {
	chat.add(m)
	raw := s.messageJSON(chat, m)
	raw["from"] = s.bot()
	return raw
}

func (s *Server) sendChatAction(c Call) (any, error) {
	chat, err := s.findChat(c)
	if err != nil {
		return nil, err
	}
	if _, err := topic(chat, c.Params["message_thread_id"], true); err != nil {
		return nil, err
	}
	if !slices.Contains([]string{"typing", "record_voice", "upload_photo", "upload_document"}, c.Params["action"]) {
		return nil, refuse("wrong parameter action in request")
	}
	return true, nil
}

// ownMessage returns the bot's own message that a request wants to change.
func (s *Server) ownMessage(c Call, verb string) (*Chat, *Message, error) {
	chat, err := s.findChat(c)
	if err != nil {
		return nil, nil, err
	}
	m := chat.find(int(atoi(c.Params["message_id"])))
	switch {
	case m == nil:
		return nil, nil, refuse("message to %s not found", verb)
	case m.From != BotID:
		return nil, nil, refuse("message can't be %sed", verb)
	}
	return chat, m, nil
}

func (s *Server) editText(c Call) (any, error) {
	chat, m, err := s.ownMessage(c, "edit")
	if err != nil {
		return nil, err
	}
	field, limit := "text", maxText
	if strings.EqualFold(c.Method, "editMessageCaption") {
		field, limit = "caption", maxCaption
	}
	kind := "text"
	var text string
	var entities []Entity
	if c.Params["rich_message"] != "" {
		kind = "rich"
		text, err = readRich(c)
	} else {
		text, entities, err = readText(c, field, limit)
	}
	if err != nil {
		return nil, err
	}
	markup, err := keyboard(c.Params["reply_markup"])
	if err != nil {
		return nil, err
	}
	if written := m.Kind == "text" || m.Kind == "rich"; (field == "text") != written {
		return nil, refuse("there is no text in the message to edit")
	} else if written {
		m.Kind = kind
	}
	if m.Text == text && slices.Equal(m.Entities, entities) && string(m.Markup) == string(markup) {
		return nil, refuse("message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message")
	}
	m.Text, m.Entities, m.Markup = text, entities, markup
	m.Edits++
	return s.messageJSON(chat, m), nil
}

func (s *Server) editMarkup(c Call) (any, error) {
	chat, m, err := s.ownMessage(c, "edit")
	if err != nil {
		return nil, err
	}
	markup, err := keyboard(c.Params["reply_markup"])
	if err != nil {
		return nil, err
	}
	if string(markup) == string(m.Markup) {
		return nil, refuse("message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message")
	}
	m.Markup = markup
	return s.messageJSON(chat, m), nil
}

func (s *Server) deleteMessage(c Call) (any, error) {
	chat, err := s.findChat(c)
	if err != nil {
		return nil, err
	}
	m := chat.find(int(atoi(c.Params["message_id"])))
	switch {
	case m == nil:
		return nil, refuse("message to delete not found")
	case m.From != BotID && !slices.Contains(chat.Admins, BotID), c.At.Sub(m.At) > 48*time.Hour:
		return nil, refuse("message can't be deleted")
	}
	m.Deleted = true
	return true, nil
}

func (s *Server) setReaction(c Call) (any, error) {
	chat, err := s.findChat(c)
	if err != nil {
		return nil, err
	}
	m := chat.find(int(atoi(c.Params["message_id"])))
	if m == nil {
		return nil, refuse("message to react not found")
	}
	var list []struct{ Type, Emoji string }
	if raw := c.Params["reaction"]; raw != "" && json.Unmarshal([]byte(raw), &list) != nil {
		return nil, refuse("can't parse reaction types JSON object")
	}
	m.Reactions = nil
	for _, r := range list {
		if r.Type != "emoji" || !strings.Contains("👍👎❤🔥🥰👏😁🤔🤯😱🎉🤩🙏👌👀💯🤝😢", r.Emoji) || r.Emoji == "" {
			return nil, refuse("REACTION_INVALID")
		}
		m.Reactions = append(m.Reactions, r.Emoji)
	}
	if len(m.Reactions) > 1 {
		return nil, refuse("REACTIONS_TOO_MANY")
	}
	return true, nil
}
