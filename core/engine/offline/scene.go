package offline

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/engine/offline/who"
	"synthbot/core/llm"
	"synthbot/core/txt"
)

// scene holds the parts of a request that this engine uses.
type scene struct {
	persona  who.Persona
	rules    string // the instructions
	actions  map[string]json.RawMessage
	language string // from recon; "": unknown
	kind     string // input.type
	face     string // input.interface
	payload  payload
	history  []line
	memories []json.RawMessage
	zone     string  // the time zone that the user set; "": the bot's
	group    bool    // whether others take part
	notice   *notice // a correction or delivery; nil: a plain message
}

type payload struct {
	Text   string `json:"text"`
	Source struct {
		Path     string `json:"interface_path"`
		ID       string `json:"message_id"`
		Username string `json:"username"`
	} `json:"source"`
	Timestamp   time.Time                     `json:"timestamp"`
	Messages    []struct{ From, Text string } `json:"messages"`
	Image       json.RawMessage               `json:"image"`
	Video       json.RawMessage               `json:"video"`
	Attachments []json.RawMessage             `json:"attachments"`
}

type line struct {
	From string `json:"from"`
	Text string `json:"text"`
	Self bool   `json:"self"`
}

// notice is a system message of the bot to the model.
type notice struct {
	Type     string          `json:"type"`
	Original string          `json:"original_user_message"`
	Raw      json.RawMessage `json:"-"`
}

// readScene finds the newest message or notice of a request, with its context. ok is false if there is neither.
func readScene(r llm.Request) (s *scene, ok bool) {
	s = &scene{}
	s.readSystem(r.System)
	for _, u := range slices.Backward(r.Messages) {
		if u.Role != llm.RoleUser || u.CallID != "" {
			continue
		}
		ok = s.readUser(u.Text) || ok
		if ok && s.kind != "" {
			break
		}
	}
	return s, ok
}

func (s *scene) readSystem(parts []string) {
	for i, part := range parts {
		var catalogue struct{ Actions map[string]json.RawMessage }
		if json.Unmarshal([]byte(part), &catalogue) == nil && catalogue.Actions != nil {
			s.actions = catalogue.Actions
			continue
		}
		if i == 0 {
			s.persona = who.Read(part)
		}
		s.rules += part + " "
	}
}

// readUser reads one user message. The newest comes first, so that after a notice the prompt
// that it belongs to is read.
func (s *scene) readUser(text string) bool {
	var m struct {
		Context struct {
			History   []line                    `json:"history_current_chat"`
			Memories  []json.RawMessage         `json:"memories"`
			People    []json.RawMessage         `json:"participants"`
			Recon     struct{ Language string } `json:"recon"`
			Reminders struct {
				Zone string `json:"person_zone"`
			} `json:"reminders"`
		} `json:"context"`
		Input *struct {
			Type      string  `json:"type"`
			Interface string  `json:"interface"`
			Payload   payload `json:"payload"`
		} `json:"input"`
		Notice json.RawMessage `json:"system_message"`
	}
	if json.Unmarshal([]byte(text), &m) != nil {
		return false
	}
	if len(m.Notice) > 0 && s.notice == nil && m.Notice[0] == '{' {
		n := &notice{Raw: m.Notice}
		if json.Unmarshal(m.Notice, n) == nil {
			s.notice = n
		}
	}
	if m.Input != nil {
		s.kind, s.face, s.payload = cmp.Or(m.Input.Type, "message"), m.Input.Interface, m.Input.Payload
		for _, said := range s.payload.Messages { // of several waiting messages the last one counts
			s.payload.Text, s.payload.Source.Username = said.Text, said.From
		}
	}
	if m.Context.History != nil || s.history == nil {
		s.history, s.memories = m.Context.History, m.Context.Memories
	}
	s.group = s.group || len(m.Context.People) > 0
	s.language = cmp.Or(m.Context.Recon.Language, s.language)
	s.zone = cmp.Or(m.Context.Reminders.Zone, s.zone)
	return m.Input != nil || s.notice != nil
}

// message returns the first 1,000 bytes of the user's message, without leading mentions.
func (s *scene) message() string {
	text := s.payload.Text
	if text == "" && s.notice != nil {
		text = s.notice.Original
	}
	text = strings.TrimLeft(text, " ")
	for strings.HasPrefix(text, "@") {
		_, text, _ = strings.Cut(text, " ")
	}
	return txt.ClipBytes(text, 1000)
}

func (s *scene) has(action string) bool { return s.actions[action] != nil }

// messageAction returns the interface's message action, or "".
func (s *scene) messageAction() string {
	face, _, _ := strings.Cut(s.payload.Source.Path, "/")
	for _, name := range []string{core.MessagePrefix + face, core.MessagePrefix + s.face} {
		if s.has(name) {
			return name
		}
	}
	return ""
}

// botLines returns the bot's last n lines, newest first.
func (s *scene) botLines(n int) []string {
	lines := s.lines(func(l line) bool { return l.Self })
	return lines[:min(len(lines), n)]
}

// lastAnswer returns the bot's messages since the user's last one.
func (s *scene) lastAnswer() (text string) {
	for _, l := range slices.Backward(s.history) {
		if !l.Self {
			break
		}
		text = l.Text + "\n" + text
	}
	return text
}

func (s *scene) userLines() []string { return s.lines(s.isUserLine) }

func (s *scene) isUserLine(l line) bool {
	return !l.Self && (l.From == s.payload.Source.Username || l.From == "")
}

func (s *scene) lines(are func(line) bool) (lines []string) {
	for _, l := range slices.Backward(s.history) {
		if are(l) {
			lines = append(lines, l.Text)
		}
	}
	return lines
}
