package discordtest

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// nonceAge is how long a message's nonce is honoured.
const nonceAge = 3 * time.Minute

// HonourNonces sets how long a message's nonce is honoured; by default, three minutes.
func (s *Server) HonourNonces(age time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nonceAge = age
}

// reach returns a channel, if the bot sees it and has these permissions there.
func (s *Server) reach(id string, what uint64) (*Channel, *failure) {
	c := s.channels[id]
	switch {
	case c == nil:
		return nil, &failure{status: 404, code: 10003, text: "Unknown Channel"}
	case c.Refuse != 0:
		return nil, &failure{status: 403, code: c.Refuse, text: "Refused"}
	case c.Guild != "" && s.guild(c.Guild) == nil || !s.may(c, BotID, MayView):
		return nil, &failure{status: 403, code: 50001, text: "Missing Access"}
	case !s.may(c, BotID, what):
		return nil, &failure{status: 403, code: 50013, text: "Missing Permissions"}
	}
	return c, nil
}

func (s *Server) getChannel(_ *Call, ids []string) (any, *failure) {
	c, f := s.reach(ids[0], 0)
	if f != nil {
		return nil, f
	}
	return c.json(), nil
}

func (s *Server) postTyping(_ *Call, ids []string) (any, *failure) {
	c, f := s.reach(ids[0], 0)
	if f != nil {
		return nil, f
	}
	c.typing++
	return nil, nil
}

// getMessages lists messages, newest first.
func (s *Server) getMessages(call *Call, ids []string) (any, *failure) {
	c, f := s.reach(ids[0], 0)
	if f != nil {
		return nil, f
	}
	limit := 50
	text := call.query["limit"]
	if text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 100 {
			return nil, malformed("limit", "NUMBER_TYPE_MAX")
		}
		limit = n
	}
	list := []any{}
	if !s.may(c, BotID, MayReadHistory) {
		return list, nil
	}
	var all []*Message
	for _, m := range c.messages {
		after, before := call.query["after"], call.query["before"]
		if (after == "" || newer(m.ID, after)) && (before == "" || newer(before, m.ID)) && !m.Thinking {
			all = append(all, m)
		}
	}
	if call.query["after"] != "" {
		all = all[:min(limit, len(all))]
	} else {
		all = all[max(0, len(all)-limit):]
	}
	for _, m := range slices.Backward(all) {
		one := s.shown(c, m)
		delete(one, "nonce") // the platform keeps none
		list = append(list, one)
	}
	return list, nil
}

func (s *Server) getMessage(_ *Call, ids []string) (any, *failure) {
	c, f := s.reach(ids[0], MayReadHistory)
	if f != nil {
		return nil, f
	}
	m := c.find(ids[1])
	if m == nil {
		return nil, &failure{status: 404, code: 10008, text: "Unknown Message"}
	}
	return s.shown(c, m), nil
}

// shown returns a message as in a response: without the content intent, it has only what events of the gateway have.
func (s *Server) shown(c *Channel, m *Message) map[string]any {
	i := s.gateway.Intents
	if c.Guild == "" || i == 0 || i&intentContent != 0 {
		return s.json(m)
	}
	return blind(s.json(m))
}

// postMessage adds a message of the bot to a channel.
func (s *Server) postMessage(call *Call, ids []string) (any, *failure) {
	send := uint64(MaySend)
	c := s.channels[ids[0]]
	if c != nil && c.thread() {
		send = MaySendInThread
	}
	c, f := s.reach(ids[0], send)
	if f != nil {
		return nil, f
	}
	form, f := s.form(call, c)
	switch {
	case f != nil:
		return nil, f
	case c.Type == Category || c.Type == Forum:
		return nil, &failure{status: 400, code: 50008, text: "Cannot send messages in a non-text channel"}
	case c.Type == Direct && s.person(c.People[0]).Closed:
		return nil, &failure{status: 403, code: 50007, text: "Cannot send messages to this user"}
	case len(form.Files) > 0 && !s.may(c, BotID, MayAttach) || len(form.Poll) > 0 && !s.may(c, BotID, MayPoll):
		return nil, &failure{status: 403, code: 50013, text: "Missing Permissions"}
	}
	old := c.repeated(form, s.nonceAge)
	if old != nil {
		return s.json(old), nil
	}
	f = s.refer(c, form)
	if f != nil {
		return nil, f
	}
	m := s.put(c, &form.Message)
	s.dispatch(c.Guild, c.ID, "MESSAGE_CREATE", s.event(c, m))
	return s.json(m), nil
}

// repeated returns the message for which the form's nonce was used lately; nil if there is none.
func (c *Channel) repeated(form *form, age time.Duration) *Message {
	old := c.nonces[form.nonce]
	if form.nonce == "" || !form.enforce || old == nil || time.Since(old.At) > age {
		return nil
	}
	return old
}

// refer checks the message that the form replies to.
func (s *Server) refer(c *Channel, form *form) *failure {
	if form.ReplyTo == "" {
		return nil
	}
	if _, err := strconv.ParseUint(form.ReplyTo, 10, 64); err != nil {
		return malformed("message_reference.message_id", "NUMBER_TYPE_COERCE")
	}
	if !s.may(c, BotID, MayReadHistory) {
		return &failure{status: 403, code: 160002, text: "Cannot reply without permission to read message history"}
	}
	if c.find(form.ReplyTo) != nil {
		form.kind = 19
		return nil
	}
	if form.strictReply {
		return malformed("message_reference", "MESSAGE_REFERENCE_UNKNOWN_MESSAGE")
	}
	form.ReplyTo = ""
	return nil
}

// put adds a message of the bot to a channel; s.mu is held.
func (s *Server) put(c *Channel, m *Message) *Message {
	m.ID, m.Channel, m.Author, m.At = s.id(), c.ID, BotID, time.Now().UTC()
	for i := range m.Files {
		m.Files[i] = s.keep(c.ID, m.Files[i])
	}
	c.messages = append(c.messages, m)
	if m.nonce != "" {
		c.nonces[m.nonce] = m
	}
	m.preview()
	return m
}

var (
	noLink = regexp.MustCompile("(?s)\\\\.|```.*?```|``.*?``|`[^`]*`|<https?://[^\\s<>]+>")
	aLink  = regexp.MustCompile(`(?i)https?://[^\s<>]+`)
)

// preview adds previews of the links in a message's text, except for those in code or
// in angle brackets.
func (m *Message) preview() {
	if !m.Plain {
		m.Previews = append(m.Previews, aLink.FindAllString(noLink.ReplaceAllString(m.Text, " "), -1)...)
	}
}

// own returns a message in a channel that the bot sees.
func (s *Server) own(ids []string) (*Channel, *Message, *failure) {
	c, f := s.reach(ids[0], 0)
	if f != nil {
		return nil, nil, f
	}
	m := c.find(ids[1])
	if m == nil {
		return nil, nil, &failure{status: 404, code: 10008, text: "Unknown Message"}
	}
	return c, m, nil
}

func (s *Server) patchMessage(call *Call, ids []string) (any, *failure) {
	c, m, f := s.own(ids)
	if f != nil {
		return nil, f
	}
	if m.Author != BotID {
		return nil, &failure{status: 403, code: 50005, text: "Cannot edit a message authored by another user"}
	}
	return s.change(call, c, m)
}

// change changes a message of the bot; fields that the request does not have stay.
func (s *Server) change(call *Call, c *Channel, m *Message) (any, *failure) {
	form, f := s.changes(call, c, m)
	if f != nil {
		return nil, f
	}
	*m = form.Message
	m.preview()
	m.Edits++
	if !m.Thinking { // replacing the sign is not an edit
		m.edited = time.Now().UTC()
	}
	m.Thinking = false
	s.dispatch(c.Guild, c.ID, "MESSAGE_UPDATE", s.event(c, m))
	return s.json(m), nil
}

func (s *Server) deleteMessage(_ *Call, ids []string) (any, *failure) {
	c, m, f := s.own(ids)
	if f != nil {
		return nil, f
	}
	if m.Author != BotID && (c.Guild == "" || !s.may(c, BotID, MayManage)) {
		return nil, &failure{status: 403, code: 50013, text: "Missing Permissions"}
	}
	s.remove(c, m)
	return nil, nil
}

// remove deletes a message and sends the event; s.mu is held.
func (s *Server) remove(c *Channel, m *Message) {
	c.messages = slices.DeleteFunc(c.messages, func(o *Message) bool { return o == m })
	data := map[string]any{"id": m.ID, "channel_id": c.ID}
	if c.Guild != "" {
		data["guild_id"] = c.Guild
	}
	s.dispatch(c.Guild, c.ID, "MESSAGE_DELETE", data)
}

func (s *Server) putReaction(_ *Call, ids []string) (any, *failure) {
	c, f := s.reach(ids[0], MayReact|MayReadHistory)
	if f != nil {
		return nil, f
	}
	m := c.find(ids[1])
	switch emoji := ids[2]; {
	case m == nil:
		return nil, &failure{status: 404, code: 10008, text: "Unknown Message"}
	case emoji == "" || strings.ContainsAny(emoji, " <>") || len(emoji) < 128 && isPlain(emoji) && !strings.Contains(emoji, ":"):
		return nil, &failure{status: 400, code: 10014, text: "Unknown Emoji"}
	case !slices.Contains(m.Reactions, emoji):
		m.Reactions = append(m.Reactions, emoji)
	}
	return nil, nil
}

// isPlain reports whether a text is ASCII, as no emoji is.
func isPlain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r > 127 })
}

func (s *Server) deleteReaction(_ *Call, ids []string) (any, *failure) {
	_, m, f := s.own(ids)
	if f != nil {
		return nil, f
	}
	if !slices.Contains(m.Reactions, ids[2]) {
		return nil, &failure{status: 404, code: 10014, text: "Unknown Emoji"}
	}
	m.Reactions = slices.DeleteFunc(m.Reactions, func(e string) bool { return e == ids[2] })
	return nil, nil
}

// postThread opens a thread, or a post in a forum.
func (s *Server) postThread(call *Call, ids []string) (any, *failure) {
	c, f := s.reach(ids[0], MayOpenThreads)
	if f != nil {
		return nil, f
	}
	body := decode[struct {
		Name    string    `json:"name"`
		Type    int       `json:"type"`
		Message *struct{} `json:"message"`
	}](call.Body)
	made := Channel{ID: s.id(), Guild: c.Guild, Parent: c.ID, Type: PublicThread, Name: body.Name}
	switch {
	case c.Guild == "" || c.thread() || c.Type == Category:
		return nil, &failure{status: 400, code: 50024, text: "Cannot execute action on this channel type"}
	case units(body.Name) < 1 || units(body.Name) > 100:
		return nil, malformed("name", "BASE_TYPE_BAD_LENGTH")
	case len(ids) > 1 && c.find(ids[1]) == nil:
		return nil, &failure{status: 404, code: 10008, text: "Unknown Message"}
	case len(ids) > 1 && s.channels[ids[1]] != nil:
		return nil, &failure{status: 400, code: 160004, text: "A thread has already been created for this message"}
	case len(ids) > 1:
		made.ID = ids[1] // a thread has the id of the message that it begins with
	case c.Type == Forum && body.Message == nil:
		return nil, malformed("message", "BASE_TYPE_REQUIRED")
	case c.Type != Forum && body.Type == 0:
		made.Type = 12 // a private thread, which is the default
	case c.Type == News && body.Type != NewsThread || c.Type == Text && body.Type == NewsThread:
		return nil, &failure{status: 400, code: 50024, text: "Cannot execute action on this channel type"}
	case c.Type == News:
		made.Type = NewsThread
	}
	return s.openThread(call, c, made)
}

func (s *Server) openThread(call *Call, c *Channel, made Channel) (any, *failure) {
	var first *form
	if c.Type == Forum {
		inner := *call
		inner.Body = decode[struct {
			Message json.RawMessage `json:"message"`
		}](call.Body).Message
		var f *failure
		first, f = s.form(&inner, c)
		if f != nil {
			return nil, f
		}
	}
	t := s.open(made)
	s.dispatch(c.Guild, c.ID, "THREAD_CREATE", t.json())
	out := t.json()
	if first != nil {
		m := s.put(t, &first.Message)
		m.ID = t.ID
		s.dispatch(c.Guild, t.ID, "MESSAGE_CREATE", s.event(t, m))
		out["message"] = s.json(m)
	}
	return out, nil
}
