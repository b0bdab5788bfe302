package telegramtest

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Person is a user or bot.
type Person struct {
	ID       int64
	Name     string
	Username string
	Language string
	Bot      bool
}

func (p *Person) json() map[string]any {
	m := map[string]any{"id": p.ID, "is_bot": p.Bot, "first_name": p.Name}
	if p.Username != "" {
		m["username"] = p.Username
	}
	if p.Language != "" {
		m["language_code"] = p.Language
	}
	return m
}

// Chat is a chat. A forum has topics. General, with thread id 1, need not be listed.
type Chat struct {
	ID       int64
	Type     string // private, group, supergroup, channel
	Title    string
	Forum    bool
	Topics   map[int]string // thread id → "" for an open topic, or "closed"
	Admins   []int64
	Gone     string // Telegram's text of a 403, if the bot cannot write here
	Upgraded int64  // the supergroup that this group became
	Linked   int64  // the group's linked channel

	next     int
	messages []*Message
	drafts   []Draft
}

// Draft is a text of sendMessageDraft. It is not a message.
type Draft struct {
	ID     int64
	Thread int
	Text   string
	At     time.Time
}

// Drafts returns all drafts that were shown in a chat, in order.
func (s *Server) Drafts(chat int64) []Draft {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.chats[chat]; c != nil {
		return slices.Clone(c.drafts)
	}
	return nil
}

func (c *Chat) json() map[string]any {
	m := map[string]any{"id": c.ID, "type": c.Type}
	if c.Type == "private" {
		m["first_name"] = c.Title
	} else {
		m["title"] = c.Title
	}
	if c.Forum {
		m["is_forum"] = true
	}
	return m
}

// Message is a message in a chat. Text is the visible text.
type Message struct {
	Chat      int64
	ID        int
	Thread    int
	From      int64
	Text      string
	HTML      bool // it was sent with a parse mode
	Entities  []Entity
	Kind      string // text, rich, photo, document, voice, audio, video, animation, poll
	File      []byte
	Source    string // the address or id of a file that was not uploaded
	ReplyTo   int
	Markup    json.RawMessage
	Silent    bool
	Edits     int
	Deleted   bool
	Reactions []string // the bot's
	At        time.Time
}

// AddPerson adds a user with their private chat, or a bot.
func (s *Server) AddPerson(p Person) *Person {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.people[p.ID] = &p
	if !p.Bot {
		s.chats[p.ID] = &Chat{ID: p.ID, Type: "private", Title: p.Name}
	}
	return &p
}

// AddChat adds a chat.
func (s *Server) AddChat(c Chat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chats[c.ID] = &c
}

// Change changes a chat under the server's lock.
func (s *Server) Change(id int64, f func(*Chat)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.chats[id])
}

// Messages returns the bot's messages in a chat, the oldest first.
func (s *Server) Messages(chat int64) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Message
	if c := s.chats[chat]; c != nil {
		for _, m := range c.messages {
			if m.From == BotID && !m.Deleted {
				list = append(list, *m)
			}
		}
	}
	return list
}

// find returns a message that is not deleted, or nil.
func (c *Chat) find(id int) *Message {
	i := slices.IndexFunc(c.messages, func(m *Message) bool { return m.ID == id && !m.Deleted })
	if i < 0 {
		return nil
	}
	return c.messages[i]
}

func (c *Chat) add(m *Message) {
	c.next++
	m.ID, m.Chat = c.next, c.ID
	c.messages = append(c.messages, m)
}

// Saying is a message for Say.
type Saying struct {
	Text    string
	Thread  int
	ReplyTo int
	Extra   map[string]any // further fields of the message's JSON
}

// Say sends a message as a user. The bot gets an update. Say returns the message's id.
func (s *Server) Say(chat, person int64, what Saying) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, p := s.chats[chat], s.people[person]
	m := &Message{From: person, Text: what.Text, Thread: what.Thread, ReplyTo: what.ReplyTo, Kind: "text", At: time.Now()}
	c.add(m)
	raw := s.messageJSON(c, m)
	raw["from"] = p.json()
	if c.Type == "channel" {
		delete(raw, "from")
		raw["sender_chat"] = c.json()
	}
	maps.Copy(raw, what.Extra)
	kind := "message"
	if c.Type == "channel" {
		kind = "channel_post"
	}
	s.push(map[string]any{kind: raw})
	return m.ID
}

// Edit changes a user's message. The bot gets an update.
func (s *Server) Edit(chat int64, id int, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chat]
	m := c.find(id)
	m.Text = text
	raw := s.messageJSON(c, m)
	raw["from"], raw["edit_date"] = s.people[m.From].json(), time.Now().Unix()
	s.push(map[string]any{"edited_message": raw})
}

// React sets a user's reaction on a message; "" removes it.
func (s *Server) React(chat int64, id int, person int64, emoji string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []any{}
	if emoji != "" {
		list = append(list, map[string]any{"type": "emoji", "emoji": emoji})
	}
	s.push(map[string]any{"message_reaction": map[string]any{
		"chat": s.chats[chat].json(), "message_id": id, "user": s.people[person].json(), "date": time.Now().Unix(),
		"old_reaction": []any{}, "new_reaction": list,
	}})
}

// Press presses the n-th button of a message as a user, counted from 0. It returns the id of the callback query.
func (s *Server) Press(chat int64, id int, person int64, n int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chat]
	m := c.find(id)
	var markup struct {
		Rows [][]struct {
			Data string `json:"callback_data"`
		} `json:"inline_keyboard"`
	}
	_ = json.Unmarshal(m.Markup, &markup)
	buttons := slices.Concat(markup.Rows...)
	raw := s.messageJSON(c, m)
	raw["from"] = s.bot()
	s.nextID++
	query := "43" + strconv.Itoa(1000000+s.nextID)
	s.queries[query] = false
	s.push(map[string]any{"callback_query": map[string]any{
		"id": query, "from": s.people[person].json(), "message": raw, "chat_instance": "-42", "data": buttons[n].Data,
	}})
	return query
}

// Answered reports whether a callback query was answered.
func (s *Server) Answered(query string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queries[query]
}

func (s *Server) bot() map[string]any {
	return (&Person{ID: BotID, Name: "Aria", Username: BotName, Bot: true}).json()
}

// messageJSON returns a message as in the Bot API.
func (s *Server) messageJSON(c *Chat, m *Message) map[string]any {
	raw := map[string]any{"message_id": m.ID, "date": m.At.Unix(), "chat": c.json()}
	if m.Kind == "rich" {
		raw["rich_message"] = map[string]any{"blocks": []any{map[string]any{"type": "paragraph", "text": m.Text}}}
	} else if m.Text != "" {
		raw["text"] = m.Text
		if e := slices.Concat(m.Entities, autoEntities(m.Text)); len(e) > 0 {
			raw["entities"] = e
		}
	}
	if m.Thread > 1 {
		raw["message_thread_id"] = m.Thread
		if c.Forum {
			raw["is_topic_message"] = true
		}
	}
	if len(m.Markup) > 0 {
		raw["reply_markup"] = m.Markup
	}
	if to := c.find(m.ReplyTo); to != nil {
		quoted := s.messageJSON(c, &Message{
			ID: to.ID, Text: to.Text, Kind: to.Kind, Thread: to.Thread, Entities: to.Entities, At: to.At,
		})
		if quoted["from"] = s.bot(); to.From != BotID {
			quoted["from"] = s.people[to.From].json()
		}
		raw["reply_to_message"] = quoted
	}
	return raw
}

var (
	aMention = regexp.MustCompile(`@[A-Za-z0-9_]{4,32}`)
	aCommand = regexp.MustCompile(`(?:^|\s)/[A-Za-z0-9_]{1,32}(?:@[A-Za-z0-9_]{4,32})?`)
)

// autoEntities returns the entities that Telegram finds in plain text: mentions and commands.
func autoEntities(text string) []Entity {
	if !strings.ContainsAny(text, "@/") {
		return nil
	}
	var list []Entity
	for kind, pattern := range map[string]*regexp.Regexp{"mention": aMention, "bot_command": aCommand} {
		for _, at := range pattern.FindAllStringIndex(text, -1) {
			begin := at[1] - len(strings.TrimLeft(text[at[0]:at[1]], " \n\t"))
			list = append(list, Entity{Type: kind, Offset: units(text[:begin]), Length: units(text[begin:at[1]])})
		}
	}
	slices.SortFunc(list, func(a, b Entity) int { return a.Offset - b.Offset })
	return list
}
