package telegram

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/recent"
)

// Telegram's own accounts, which are the sender of messages that somebody else wrote.
const (
	groupAnonymousBot = 1087968824
	channelBot        = 136817688
	telegramService   = 777000
)

// converter converts updates to events. It makes no calls. It records what updates say about chats in places.
type converter struct {
	name     string
	self     user
	commands func() []command.Spec
	places   *places
	keys     *signer
	pressed  *recent.Cache[[2]int64, string] // by chat and message: the query of the first valid press
	now      func() time.Time
	ahead    func() time.Duration // how far now is ahead of Telegram's clock
}

// converted is the result of an update: events for the inbox, and work for the driver.
type converted struct {
	events []core.Event
	album  string // that the message belongs to
	press  *press
	admins int64 // the chat whose administrators changed
}

type press struct {
	query   string
	chat    int64
	message int64
	choice  bool
	refused string // what the user reads; empty: the press is valid
}

func (c *converter) convert(u *update) converted {
	said, edited := cmp.Or(u.Message, u.ChannelPost), cmp.Or(u.EditedMessage, u.EditedChannelPost)
	switch {
	case said != nil:
		return c.message(said)
	case edited != nil:
		return c.edit(edited)
	case u.Callback != nil:
		return c.press(u.Callback)
	case u.Reaction != nil:
		return c.reaction(u.Reaction, u.ID)
	case u.MyMember != nil:
		return c.membership(u.MyMember, u.ID)
	case u.Member != nil && (u.Member.Old.isAdmin() || u.Member.New.isAdmin()):
		return converted{admins: u.Member.Chat.ID}
	}
	return converted{}
}

// message converts a new message. Service messages have no events, except migrations.
func (c *converter) message(m *message) converted {
	c.places.noteMessage(m)
	from, to := m.Chat.ID, m.MigrateTo
	if m.MigrateFrom != 0 {
		from, to = m.MigrateFrom, m.Chat.ID
	}
	if to != 0 {
		c.places.noteMigration(from, to)
		return converted{events: []core.Event{c.migrationEvent(from, to)}}
	}
	said, ok := c.coreMessage(m)
	if !ok {
		return converted{}
	}
	e := core.Event{Kind: core.KindMessage, Message: said, Command: c.command(m)}
	if e.Command != nil {
		e.Kind = core.KindCommand
	}
	return converted{events: []core.Event{e}, album: m.Album}
}

// edit converts an edited message. Live locations, which change every few seconds, are ignored.
func (c *converter) edit(m *message) converted {
	c.places.noteMessage(m)
	said, ok := c.coreMessage(m)
	if !ok || m.Location != nil {
		return converted{}
	}
	if m.Album != "" {
		said.Attachments = nil // they would replace those of the whole album
	}
	return converted{events: []core.Event{{Kind: core.KindEdit, Message: said, Command: c.command(m)}}}
}

// coreMessage converts a message. ok is false if it has neither text nor files, or is the bot's own.
func (c *converter) coreMessage(m *message) (core.Message, bool) {
	own, foreign := m.splitForeign()
	files := attachments(m)
	if own == "" && len(foreign) == 0 && len(files) == 0 {
		return core.Message{}, false
	}
	author := c.author(m)
	if m.ID <= 0 || m.Chat.ID == 0 || author.ID == "" || author.ID == id(c.self.ID) {
		return core.Message{}, false
	}
	thread := int64(0) // outside of forums, m.Thread is only a chain of replies
	if m.IsTopic {
		thread = m.Thread
	}
	out := core.Message{
		Path: place(c.name, m.Chat.ID, thread), ID: c.places.messageID(m.Chat.ID, m.ID), Author: author, Text: own,
		Foreign: foreign, Time: unixTime(m.Date), Ahead: c.ahead().Round(time.Minute), Attachments: files,
		Voice:   m.isAuthorsOwn() && (m.Voice != nil || m.VideoNote != nil),
		Private: m.Chat.Type == "private",
	}
	if m.isAuthorsOwn() {
		out.Spoken = spoken(m.content())
	}
	c.setReply(m, &out)
	if m.From != nil && m.Sender == nil {
		out.Locale = cut(m.From.LanguageCode, 35)
	}
	switch r := m.ReplyTo; {
	case out.Private:
		out.Addressed = core.AddressedDirect
	case m.isAuthorsOwn() && c.mentioned(m.content()):
		out.Addressed = core.AddressedMention
	case r != nil && r.TopicCreated == nil && r.From != nil && r.From.ID == c.self.ID:
		out.Addressed = core.AddressedReply
	}
	return out, true
}

func (c *converter) author(m *message) core.Author {
	s := m.Sender
	standIns := []int64{groupAnonymousBot, channelBot, telegramService}
	if s != nil && (m.From == nil || slices.Contains(standIns, m.From.ID)) {
		a := chatAuthor(s)
		a.Channel = core.ChannelOther
		if m.Linked {
			a.Channel = core.ChannelLinked
		}
		if s.ID == m.Chat.ID { // an anonymous administrator, or the channel itself
			a.Rank, a.Channel = core.RankModerator, core.ChannelLinked
			if m.Signature != "" {
				a.Name = cut(m.Signature, core.MaxName)
			}
		}
		return a
	}
	return person(m.From)
}

func person(u *user) core.Author {
	if u == nil || u.ID == 0 {
		return core.Author{}
	}
	return core.Author{
		ID: id(u.ID), Name: cut(strings.TrimSpace(u.FirstName+" "+u.LastName), core.MaxName),
		Tag: tag(u.UserName), Bot: u.IsBot,
	}
}

func chatAuthor(s *chat) core.Author {
	name := cmp.Or(s.Title, strings.TrimSpace(s.FirstName+" "+s.LastName))
	return core.Author{ID: id(s.ID), Name: cut(name, core.MaxName), Tag: tag(s.Username)}
}

func tag(username string) string {
	if username == "" {
		return ""
	}
	return "@" + cut(username, core.MaxName-1)
}

// setReply sets what the message replies to. If that was forwarded, its text is foreign. The service message that
// created a topic does not count: every message of the topic replies to it.
func (c *converter) setReply(m *message, out *core.Message) {
	part := ""
	if m.Quote != nil {
		part = m.Quote.Text
	}
	switch r := m.ReplyTo; {
	case r != nil && r.TopicCreated == nil:
		text := r.fullText()
		if part != "" {
			text = r.quotedPart(part, m.Quote.Position)
		}
		q := &core.Quote{ID: c.places.messageID(m.Chat.ID, r.ID), From: c.author(r), Time: unixTime(r.Date)}
		out.ReplyTo = q
		_, foreign := r.splitForeign()
		if r.isAuthorsOwn() {
			q.Text = cut(text, core.MaxQuote)
			if q.From.ID == out.Author.ID {
				out.Foreign = append(out.Foreign, foreign...)
			}
		} else if len(foreign) > 0 {
			foreign[0].Text = cut(text, core.MaxQuote)
			out.Foreign = append(out.Foreign, foreign[0])
		}
	case m.External != nil:
		q := &core.Quote{Text: cut(part, core.MaxQuote)}
		o := m.External.Origin
		if o != nil {
			q.From, q.Time = o.author(), unixTime(o.Date)
		}
		out.ReplyTo = q
	}
}

func (o *origin) author() core.Author {
	switch {
	case o.User != nil:
		return person(o.User)
	case o.Chat != nil:
		return chatAuthor(o.Chat)
	case o.Sender != nil:
		return chatAuthor(o.Sender)
	}
	return core.Author{Name: cut(o.Hidden, core.MaxName)}
}

func (c *converter) migrationEvent(from, to int64) core.Event {
	return core.Event{
		Kind: core.KindMigration, To: place(c.name, to, 0),
		Message: core.Message{Path: place(c.name, from, 0), ID: fmt.Sprintf("migration:%d", to), Time: c.now()},
	}
}

func (c *converter) reaction(r *reaction, id int64) converted {
	e := core.Event{Kind: core.KindReaction, Target: c.places.messageID(r.Chat.ID, r.Message)}
	switch {
	case r.User != nil:
		e.Message.Author = person(r.User)
	case r.Actor != nil:
		e.Message.Author = chatAuthor(r.Actor)
		e.Message.Author.Channel = core.ChannelOther
		if r.Actor.ID == r.Chat.ID {
			e.Message.Author.Channel = core.ChannelLinked
		}
	}
	if e.Message.Author.ID == "" || r.Chat.ID == 0 {
		return converted{}
	}
	e.Message.Path = place(c.name, r.Chat.ID, c.places.thread(r.Chat.ID, r.Message))
	e.Message.ID = fmt.Sprintf("reaction:%d:%s:%d:%d", r.Message, e.Message.Author.ID, r.Date, id)
	e.Message.Time, e.Message.Private = unixTime(r.Date), r.Chat.Type == "private"
	var out converted
	for _, sign := range r.changes() {
		e.Data = sign
		out.events = append(out.events, e)
	}
	return out
}

// changes lists the emoji that the author removed, then those that they added. Removed ones begin with core.TakenAway.
func (r *reaction) changes() (signs []string) {
	const maxReactions = 32 // users have three at most
	if len(r.New) == 0 {
		return []string{core.TakenAway}
	}
	for _, o := range r.Old {
		if !slices.Contains(r.New, o) {
			signs = append(signs, core.TakenAway+o.name())
		}
	}
	for _, n := range r.New {
		if !slices.Contains(r.Old, n) {
			signs = append(signs, n.name())
		}
	}
	return signs[:min(len(signs), maxReactions)]
}

// name returns the emoji, or the type of one without a character.
func (r reactionType) name() string { return cut(cmp.Or(r.Emoji, r.Type), 64) }

func (c *converter) membership(m *membership, id int64) converted {
	out := converted{admins: m.Chat.ID}
	private := m.Chat.Type == "private"
	data, now := "removed", m.New.isPresent()
	switch {
	case m.Old.isPresent() == now || m.Chat.ID == 0:
		return out
	case now:
		data = "added"
	case private:
		data = "blocked"
	}
	out.events = []core.Event{{Kind: core.KindMembership, Data: data, Message: core.Message{
		Path: place(c.name, m.Chat.ID, 0), ID: fmt.Sprintf("member:%d:%d", m.Date, id), Author: person(&m.From),
		Time: unixTime(m.Date), Private: private,
	}}}
	return out
}

func unixTime(unix int64) time.Time {
	const lastMoment = 253402300799 // the end of the year 9999, the last that JSON can express
	if unix <= 0 || unix > lastMoment {
		return time.Time{}
	}
	return time.Unix(unix, 0).UTC()
}
