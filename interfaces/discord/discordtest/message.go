package discordtest

import (
	"encoding/json"
	"maps"
	"mime"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// File is a file of a message.
type File struct {
	Name string
	MIME string
	Alt  string // the description
	Data []byte

	// Of voice messages.
	Seconds  float64
	Waveform []byte

	id, path string
	extra    map[string]any
}

// Message is a message in a channel.
type Message struct {
	ID, Channel, Author string
	Text                string
	ReplyTo             string
	Embeds              json.RawMessage
	Components          json.RawMessage
	Poll                json.RawMessage // as in the request
	Mentions            json.RawMessage // allowed_mentions of the request
	Files               []File
	Silent              bool
	Voice               bool     // a voice message
	Plain               bool     // without previews of links, and with its embeds hidden
	Previews            []string // the links with a preview
	Edits               int
	At                  time.Time
	Reactions           []string // the bot's own
	Interaction         string   // the id of the interaction that it answers
	Thinking            bool     // the sign that the bot is thinking
	Hidden              bool     // only one user sees it

	kind   int
	edited time.Time
	nonce  string
	pings  bool // a reply mentions the other author
	extra  map[string]any
}

// Buttons returns the custom ids of the message's buttons, or the addresses that they open.
func (m *Message) Buttons() []string {
	var ids []string
	type part struct {
		Custom     string `json:"custom_id"`
		URL        string `json:"url"`
		Components []part `json:"components"`
	}
	for _, row := range decode[[]part](m.Components) {
		for _, b := range row.Components {
			ids = append(ids, b.Custom+b.URL)
		}
	}
	return ids
}

// Messages returns the bot's messages in a channel, the oldest first.
func (s *Server) Messages(channel string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Message
	c := s.channels[channel]
	if c != nil {
		for _, m := range c.messages {
			if m.Author == BotID && !m.Thinking {
				list = append(list, *m)
			}
		}
	}
	return list
}

// Texts returns the texts of Messages.
func (s *Server) Texts(channel string) []string {
	var texts []string
	for _, m := range s.Messages(channel) {
		texts = append(texts, m.Text)
	}
	return texts
}

// Everything returns all messages in a channel, the oldest first.
func (s *Server) Everything(channel string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Message
	for _, m := range s.channels[channel].messages {
		list = append(list, *m)
	}
	return list
}

// Thinking counts the signs in a channel that the bot is thinking.
func (s *Server) Thinking(channel string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, m := range s.channels[channel].messages {
		if m.Thinking {
			n++
		}
	}
	return n
}

// Typing counts the typing requests of the bot in a channel.
func (s *Server) Typing(channel string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.channels[channel].typing
}

// Clear deletes all messages of a channel, without events.
func (s *Server) Clear(channel string) {
	s.mu.Lock()
	defer s.unlock()
	c := s.channels[channel]
	c.messages, c.nonces = nil, map[string]*Message{}
}

func (c *Channel) find(id string) *Message {
	i := slices.IndexFunc(c.messages, func(m *Message) bool { return m.ID == id })
	if i < 0 {
		return nil
	}
	return c.messages[i]
}

// Saying is what a user's message has besides its text.
type Saying struct {
	ReplyTo string
	NoPing  bool // the reply does not mention the other author
	Files   []File
	Extra   map[string]any // further fields of the message, as the platform writes them
}

// Say lets a user say something; the bot gets an event. It returns the message's id.
func (s *Server) Say(channel, person, text string, more ...Saying) string {
	s.mu.Lock()
	defer s.unlock()
	c := s.channels[channel]
	author := s.person(person).ID
	m := &Message{
		ID: s.id(), Channel: channel, Author: author, Text: text, At: time.Now().UTC(), extra: map[string]any{},
	}
	if c.thread() && len(c.messages) == 0 && s.channels[c.Parent] != nil && s.channels[c.Parent].Type == Forum {
		m.ID = c.ID // a post's first message has the post's id
	}
	for _, x := range more {
		m.ReplyTo, m.pings = x.ReplyTo, x.ReplyTo != "" && !x.NoPing
		for _, f := range x.Files {
			m.Files = append(m.Files, s.keep(channel, f))
		}
		maps.Copy(m.extra, x.Extra)
	}
	if m.ReplyTo != "" {
		m.kind = 19
	}
	c.messages = append(c.messages, m)
	s.dispatch(c.Guild, channel, "MESSAGE_CREATE", s.event(c, m))
	return m.ID
}

// keep puts a file on the file server; s.mu is held.
func (s *Server) keep(channel string, f File) File {
	if f.MIME == "" {
		f.MIME = mime.TypeByExtension(path.Ext(f.Name))
	}
	f.id = s.id()
	f.path = "/attachments/" + channel + "/" + f.id + "/" + f.Name
	s.files[f.path] = f.Data
	return f
}

// Edit changes a user's message.
func (s *Server) Edit(channel, id, text string) {
	s.mu.Lock()
	defer s.unlock()
	c := s.channels[channel]
	m := c.find(id)
	m.Text, m.edited = text, time.Now().UTC()
	m.Edits++
	s.dispatch(c.Guild, channel, "MESSAGE_UPDATE", s.event(c, m))
}

// Delete deletes messages. Several ids are one event.
func (s *Server) Delete(channel string, ids ...string) {
	s.mu.Lock()
	defer s.unlock()
	c := s.channels[channel]
	c.messages = slices.DeleteFunc(c.messages, func(m *Message) bool { return slices.Contains(ids, m.ID) })
	kind, data := "MESSAGE_DELETE", map[string]any{"id": ids[0], "channel_id": channel}
	if len(ids) > 1 {
		kind, data = "MESSAGE_DELETE_BULK", map[string]any{"ids": ids, "channel_id": channel}
	}
	if c.Guild != "" {
		data["guild_id"] = c.Guild
	}
	s.dispatch(c.Guild, channel, kind, data)
}

// React adds a user's reaction to a message or, if on is false, removes it.
func (s *Server) React(channel, id, person, emoji string, on bool) {
	s.mu.Lock()
	defer s.unlock()
	c, p := s.channels[channel], s.person(person)
	data := map[string]any{"user_id": p.ID, "channel_id": channel, "message_id": id, "emoji": map[string]any{"id": nil, "name": emoji}, "burst": false, "type": 0}
	kind := "MESSAGE_REACTION_REMOVE"
	if c.Guild != "" {
		data["guild_id"] = c.Guild
	}
	if on {
		kind = "MESSAGE_REACTION_ADD"
		if c.Guild != "" {
			member := s.member(c.Guild, person).json()
			member["user"] = p.json()
			data["member"] = member
		}
	}
	s.dispatch(c.Guild, channel, kind, data)
}

// Tell sends an event of any type to the bot's sessions.
func (s *Server) Tell(guild, channel, kind string, data map[string]any) {
	s.mu.Lock()
	defer s.unlock()
	s.dispatch(guild, channel, kind, data)
}

var (
	userMention = regexp.MustCompile(`<@!?(\d+)>`)
	roleMention = regexp.MustCompile(`<@&(\d+)>`)
)

// json returns a message as in the REST API; s.mu is held.
func (s *Server) json(m *Message) map[string]any {
	e := map[string]any{
		"id": m.ID, "channel_id": m.Channel, "content": m.Text, "type": m.kind, "timestamp": stamp(m.At), "edited_timestamp": nil,
		"author": s.person(m.Author).json(), "mentions": s.mentioned(m), "mention_roles": found(roleMention, m.Text),
		"mention_everyone": strings.Contains(m.Text, "@everyone"), "attachments": s.attached(m), "embeds": list(m.Embeds),
		"components": list(m.Components), "pinned": false, "tts": false, "flags": m.flags(),
	}
	if !m.edited.IsZero() {
		e["edited_timestamp"] = stamp(m.edited)
	}
	if m.nonce != "" {
		e["nonce"] = m.nonce
	}
	i := s.interactions[m.Interaction]
	if i != nil {
		e["interaction_metadata"] = map[string]any{"id": i.ID, "type": i.kind, "user": s.person(i.Person).json()}
	}
	if m.ReplyTo != "" {
		e["message_reference"] = map[string]any{"type": 0, "message_id": m.ReplyTo, "channel_id": m.Channel}
		e["referenced_message"] = nil
		to := s.channels[m.Channel].find(m.ReplyTo)
		if to != nil {
			inner := *to
			inner.ReplyTo = ""
			e["referenced_message"] = s.json(&inner)
		}
	}
	maps.Copy(e, m.extra)
	return e
}

func (m *Message) flags() int {
	n := 0
	if m.Silent {
		n |= 1 << 12
	}
	if m.Plain {
		n |= 1 << 2
	}
	if m.Hidden {
		n |= 1 << 6
	}
	if m.Thinking {
		n |= 1 << 7
	}
	return n
}

func stamp(t time.Time) string { return t.Format("2006-01-02T15:04:05.000000+00:00") }

func found(pattern *regexp.Regexp, text string) []string {
	ids := []string{}
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(ids, m[1]) {
			ids = append(ids, m[1])
		}
	}
	return ids
}

func (s *Server) mentioned(m *Message) []any {
	users := []any{}
	ids := found(userMention, m.Text)
	to := s.channels[m.Channel].find(m.ReplyTo)
	if m.pings && to != nil && !slices.Contains(ids, to.Author) {
		ids = append(ids, to.Author)
	}
	for _, id := range ids {
		u := s.person(id).json()
		c := s.channels[m.Channel]
		if c != nil && c.Guild != "" {
			u["member"] = s.member(c.Guild, id).json()
		}
		users = append(users, u)
	}
	return users
}

func (s *Server) attached(m *Message) []any {
	files := []any{}
	for _, f := range m.Files {
		address := s.signed(f.path, time.Now().Add(24*time.Hour))
		a := map[string]any{"id": f.id, "filename": f.Name, "size": len(f.Data), "url": address, "proxy_url": address}
		if f.MIME != "" {
			a["content_type"] = f.MIME
		}
		if f.Alt != "" {
			a["description"] = f.Alt
		}
		maps.Copy(a, f.extra)
		files = append(files, a)
	}
	return files
}

// event returns a message as in events of the gateway; s.mu is held.
func (s *Server) event(c *Channel, m *Message) map[string]any {
	e := s.json(m)
	if c.Guild != "" {
		e["guild_id"] = c.Guild
		_, webhook := m.extra["webhook_id"]
		if !webhook {
			e["member"] = s.member(c.Guild, m.Author).json()
		}
	}
	return e
}
