package discordtest

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
)

// units returns the length of a text in UTF-16 units.
func units(text string) int { return len(utf16.Encode([]rune(text))) }

// form is a message from a request, checked.
type form struct {
	Message
	enforce     bool                       // of the nonce
	strictReply bool                       // the reply fails if the other message does not exist
	fields      map[string]json.RawMessage // of the request
}

// written is the body of a request that sends or changes a message.
type written struct {
	Content   string          `json:"content"`
	Nonce     json.RawMessage `json:"nonce"`
	Enforce   bool            `json:"enforce_nonce"`
	Flags     int             `json:"flags"`
	Embeds    json.RawMessage `json:"embeds"`
	Parts     json.RawMessage `json:"components"`
	Poll      json.RawMessage `json:"poll"`
	Mentions  json.RawMessage `json:"allowed_mentions"`
	Reference *struct {
		Message string `json:"message_id"`
		Fail    *bool  `json:"fail_if_not_exists"`
	} `json:"message_reference"`
}

// form decodes and checks a new message; s.mu is held.
func (s *Server) form(call *Call, c *Channel) (*form, *failure) {
	f, refused := s.changes(call, c, &Message{})
	if refused != nil {
		return nil, refused
	}
	if f.Text == "" && len(f.Files) == 0 && empty(f.Embeds) && empty(f.Poll) && empty(f.Components) {
		return nil, &failure{status: 400, code: 50006, text: "Cannot send an empty message"}
	}
	return f, nil
}

func empty(raw json.RawMessage) bool {
	text := strings.TrimSpace(string(raw))
	return text == "" || text == "null" || text == "[]"
}

// changes decodes a request that changes a message, and returns the changed message.
func (s *Server) changes(call *Call, c *Channel, m *Message) (*form, *failure) {
	f := &form{Message: *m, fields: decode[map[string]json.RawMessage](call.Body)}
	w := decode[written](call.Body)
	s.allowed(call, w.Mentions)
	for field, set := range map[string]func(){
		"content":    func() { f.Text = strings.TrimSpace(w.Content) },
		"embeds":     func() { f.Embeds = w.Embeds },
		"components": func() { f.Components = w.Parts },
		"poll":       func() { f.Poll = w.Poll },
		"flags":      func() { f.Plain = w.Flags&(1<<2) != 0 },
	} {
		_, given := f.fields[field]
		if given {
			set()
		}
	}
	f.Mentions, f.Silent, f.enforce = w.Mentions, w.Flags&(1<<12) != 0 || m.Silent, w.Enforce
	f.Voice = w.Flags&(1<<13) != 0
	f.Hidden = w.Flags&(1<<6) != 0 || m.Hidden
	if len(w.Nonce) > 0 {
		f.nonce = strings.Trim(string(w.Nonce), `"`)
	}
	r := w.Reference
	if r != nil {
		f.ReplyTo, f.strictReply = r.Message, r.Fail == nil || *r.Fail
		if f.strictReply {
			s.breach("%s %s: a reply that fails if the other message was deleted", call.Method, call.Path)
		}
	}
	if len(call.Files) > 0 {
		f.Files = append(slices.Clip(f.Files), call.Files...)
	}
	return f, f.check()
}

// allowed records a breach if the bot may notify anybody but the user it replies to.
func (s *Server) allowed(call *Call, raw json.RawMessage) {
	var m struct {
		Parse []string `json:"parse"`
		Users []string `json:"users"`
		Roles []string `json:"roles"`
	}
	if empty(raw) || json.Unmarshal(raw, &m) != nil || m.Parse == nil || len(m.Parse)+len(m.Users)+len(m.Roles) > 0 {
		s.breach("%s %s: allowed_mentions is %s", call.Method, call.Path, raw)
	}
}

// Limits of the platform.
const (
	maxContent = 2000
	maxNonce   = 25
	maxFiles   = 10
	maxFile    = 10 << 20
	maxAlt     = 1024
)

func (f *form) check() *failure {
	size := 0
	for _, file := range f.Files {
		size += len(file.Data)
		if units(file.Alt) > maxAlt {
			return malformed("attachments", "BASE_TYPE_MAX_LENGTH")
		}
	}
	switch {
	case units(f.Text) > maxContent:
		return malformed("content", "BASE_TYPE_MAX_LENGTH")
	case len(f.nonce) > maxNonce:
		return malformed("nonce", "NONCE_TYPE_TOO_LONG")
	case len(f.Files) > maxFiles:
		return &failure{status: 400, code: 50035, text: "Too many files"}
	case size > maxFile:
		return &failure{status: 413, code: 40005, text: "Request entity too large"}
	}
	for _, check := range []func() *failure{f.checkVoice, f.checkEmbeds, f.checkComponents, f.checkPoll} {
		refused := check()
		if refused != nil {
			return refused
		}
	}
	return nil
}

// checkVoice refuses voice messages that are not exactly one sound with its waveform.
func (f *form) checkVoice() *failure {
	switch {
	case !f.Voice:
		return nil
	case f.Text != "" || !empty(f.Embeds) || !empty(f.Components):
		return &failure{status: 400, code: 50159, text: "Voice messages do not support additional content."}
	case len(f.Files) != 1:
		return &failure{status: 400, code: 50160, text: "Voice messages must have a single audio attachment."}
	case f.Files[0].Seconds <= 0 || len(f.Files[0].Waveform) == 0 || len(f.Files[0].Waveform) > 256:
		return &failure{status: 400, code: 50161, text: "Voice messages must have supporting metadata."}
	}
	return nil
}

func (f *form) checkEmbeds() *failure {
	if empty(f.Embeds) {
		return nil
	}
	var list []struct {
		Title       string `json:"title"`
		Description string `json:"description"`
		URL         string `json:"url"`
		Fields      []struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"fields"`
	}
	if json.Unmarshal(f.Embeds, &list) != nil || len(list) > 10 {
		return malformed("embeds", "BASE_TYPE_MAX_LENGTH")
	}
	all := 0
	for _, e := range list {
		all += units(e.Title) + units(e.Description)
		bad := units(e.Title) > 256 || units(e.Description) > 4096 || len(e.Fields) > 25 || e.URL != "" && !web(e.URL)
		for _, x := range e.Fields {
			all += units(x.Name) + units(x.Value)
			bad = bad || units(x.Name) < 1 || units(x.Name) > 256 || units(x.Value) < 1 || units(x.Value) > 1024
		}
		if bad || e.Title == "" && e.Description == "" && len(e.Fields) == 0 {
			return malformed("embeds", "BASE_TYPE_BAD_LENGTH")
		}
	}
	if all > 6000 {
		return malformed("embeds", "MAX_EMBED_SIZE_EXCEEDED")
	}
	return nil
}

func web(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

func (f *form) checkComponents() *failure {
	if empty(f.Components) {
		return nil
	}
	var rows []row
	bad := malformed("components", "COMPONENT_TYPE_INVALID")
	if json.Unmarshal(f.Components, &rows) != nil || len(rows) > 5 {
		return bad
	}
	seen := map[string]bool{}
	for _, r := range rows {
		if r.Type != 1 || len(r.Components) < 1 || len(r.Components) > 5 {
			return bad
		}
		for _, c := range r.Components {
			good := c.isButton()
			if c.Type == kindSelect {
				good = c.isSelect() && len(r.Components) == 1
			}
			if !good {
				return bad
			}
			link := c.URL != ""
			if units(c.Custom) > 100 || link && (!web(c.URL) || units(c.URL) > 512) || !link && seen[c.Custom] {
				return malformed("components", "COMPONENT_CUSTOM_ID_DUPLICATED")
			}
			seen[c.Custom] = true
		}
	}
	return nil
}

// row is a row of components.
type row struct {
	Type       int         `json:"type"`
	Components []component `json:"components"`
}

const kindSelect = 3 // a component that is a list of choices

type component struct {
	Type    int      `json:"type"`
	Style   int      `json:"style"`
	Label   string   `json:"label"`
	Custom  string   `json:"custom_id"`
	URL     string   `json:"url"`
	Options []choice `json:"options"`
}

type choice struct{ Label, Value string }

func (c *component) isButton() bool {
	link := c.Style == 5
	return c.Type == 2 && c.Style >= 1 && c.Style <= 5 && units(c.Label) >= 1 && units(c.Label) <= 80 &&
		link == (c.URL != "") && link != (c.Custom != "")
}

func (c *component) isSelect() bool {
	seen := map[string]bool{}
	for _, o := range c.Options {
		if units(o.Label) < 1 || units(o.Label) > 100 || units(o.Value) < 1 || units(o.Value) > 100 || seen[o.Value] {
			return false
		}
		seen[o.Value] = true
	}
	return c.Custom != "" && len(c.Options) >= 1 && len(c.Options) <= 25
}

func (f *form) checkPoll() *failure {
	if empty(f.Poll) {
		return nil
	}
	type media struct {
		Text string `json:"text"`
	}
	var p struct {
		Question media `json:"question"`
		Answers  []struct {
			Media media `json:"poll_media"`
		} `json:"answers"`
		Duration int `json:"duration"`
	}
	bad := json.Unmarshal(f.Poll, &p) != nil || units(p.Question.Text) < 1 || units(p.Question.Text) > 300 ||
		len(p.Answers) < 1 || len(p.Answers) > 10 || p.Duration < 1 || p.Duration > 768
	for _, a := range p.Answers {
		bad = bad || units(a.Media.Text) < 1 || units(a.Media.Text) > 55
	}
	if bad {
		return malformed("poll", "BASE_TYPE_BAD_LENGTH")
	}
	return nil
}
