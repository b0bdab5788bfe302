package memory

import (
	"fmt"
	"time"

	"synthbot/core"
)

// storedEntry is an entry as it is stored. It also holds who reacted, so that a reaction that is delivered
// twice counts once, and the people whom it answers. Path and number are in the key.
type storedEntry struct {
	core.Entry
	reactors map[string][]string // emoji by person
	answers  []string            // ids of people; of the bot's messages, and of entries that continue a turn
}

func encodeEntry(l *storedEntry) []byte {
	c := codec{out: make([]byte, 0, 128+len(l.Message.Text))}
	l.fields(&c)
	return c.out
}

// decodeEntry decodes an entry. The result does not share memory with value.
func decodeEntry(value []byte, place core.Path, seq uint64) (l storedEntry, err error) {
	var c codec
	l.Message.Path, l.Message.Seq = place, seq
	if err := c.read(value, func() { l.fields(&c) }); err != nil {
		return storedEntry{}, fmt.Errorf("entry %s#%d: %w", place, seq, err)
	}
	return l, nil
}

// fields numbers the fields of an entry. The numbers are part of the file's format: a number once given keeps its
// meaning. The next one is 33.
func (l *storedEntry) fields(c *codec) {
	isMessage := l.Kind == core.KindMessage
	c.flag(31, &isMessage)
	if isMessage {
		l.Kind = core.KindMessage
	} else {
		text(c, 1, &l.Kind)
	}
	messageFields(c, &l.Message)
	text(c, 13, &l.Target)
	text(c, 14, &l.Data)
	if c.isNext(15) {
		l.Command = new(core.Command)
	}
	if l.Command != nil {
		c.group(15, func() {
			text(c, 1, &l.Command.Name)
			c.texts(2, &l.Command.Args)
		})
	}
	c.path(16, &l.To)
	signed(c, 17, &l.Count)
	c.flag(18, &l.Due)
	c.flag(19, &l.Self)
	c.flag(28, &l.Strangers)
	signed(c, 20, &l.Rev)
	c.flag(21, &l.Deleted)
	text(c, 24, &l.Reply)
	mapped(c, 22, &l.Reactions, func(n *int) { signed(c, 2, n) })
	mapped(c, 23, &l.reactors, func(emoji *[]string) { c.texts(2, emoji) })
	c.texts(25, &l.answers)
}

func messageFields(c *codec, m *core.Message) {
	c.id(2, 32, &m.ID) // 32 if it is a number
	authorField(c, 3, &m.Author)
	text(c, 4, &m.Text)
	c.time(5, &m.Time)
	signed(c, 27, &m.Ahead)
	c.flag(6, &m.Voice)
	signed(c, 29, &m.Heard)
	signed(c, 30, &m.Written)
	if c.isNext(7) {
		m.ReplyTo = new(core.Quote)
	}
	if m.ReplyTo != nil {
		c.group(7, func() {
			text(c, 1, &m.ReplyTo.ID)
			authorField(c, 2, &m.ReplyTo.From)
			text(c, 3, &m.ReplyTo.Text)
			c.time(4, &m.ReplyTo.Time)
		})
	}
	repeated(c, 8, &m.Attachments, func(a *core.Attachment) {
		c.group(8, func() {
			text(c, 1, &a.Kind)
			text(c, 2, &a.Name)
			text(c, 3, &a.MIME)
			signed(c, 4, &a.Size)
			signed(c, 5, &a.Width)
			signed(c, 6, &a.Height)
			signed(c, 7, &a.Duration)
			text(c, 8, &a.Ref)
		})
	})
	repeated(c, 26, &m.Foreign, func(o *core.Foreign) {
		c.group(26, func() {
			text(c, 1, &o.Kind)
			authorField(c, 2, &o.From)
			text(c, 3, &o.Text)
			c.time(4, &o.Time)
			c.flag(5, &o.Voice)
		})
	})
	c.flag(9, &m.Private)
	text(c, 10, &m.Locale)
	repeated(c, 11, &m.Scopes, func(scope *core.Path) { c.path(11, scope) })
	text(c, 12, &m.Addressed)
}

// authorID is the first field of an author, or the ninth if the id is a number. Forgetting looks for both.
func authorID(c *codec, id *string) { c.id(1, 9, id) }

func authorField(c *codec, tag byte, a *core.Author) {
	if !c.reading && *a == (core.Author{}) {
		return
	}
	c.group(tag, func() {
		authorID(c, &a.ID)
		text(c, 2, &a.Name)
		text(c, 3, &a.Tag)
		c.flag(4, &a.Bot)
		rank := uint64(a.Rank)
		c.number(5, &rank)
		a.Rank = core.Rank(min(rank, 255))
		text(c, 6, &a.Channel)
	})
}

type head struct {
	last, answered uint64
	count          uint64 // stored entries
	time           time.Time
	private        bool // an entry was private
}

func (h *head) fields(c *codec) {
	c.number(1, &h.last)
	c.number(2, &h.answered)
	c.number(3, &h.count)
	c.time(4, &h.time)
	c.flag(5, &h.private)
}

func encodeHead(h head) []byte {
	c := codec{out: make([]byte, 0, 32)}
	h.fields(&c)
	return c.out
}

func decodeHead(value []byte) (h head, err error) {
	var c codec
	if err := c.read(value, func() { h.fields(&c) }); err != nil {
		return head{}, fmt.Errorf("head: %w", err)
	}
	return h, nil
}
