package memory

import (
	"fmt"
	"time"

	"synthbot/core"
)

// storedEntry is an entry as it is stored: with each person's reactions, so that one that is
// delivered again is not counted twice, and with the people whom it answers. The key holds
// path and number.
type storedEntry struct {
	core.Entry
	reactors map[string][]string // emoji by person
	answers  []string            // people; of the bot's messages, and of entries that continue a turn
}

// Tags of an entry's fields. They are part of the file's format: a number once
// given keeps its meaning.
const (
	tagKind       = 1
	tagID         = 2
	tagAuthor     = 3
	tagText       = 4
	tagTime       = 5
	tagVoice      = 6
	tagReplyTo    = 7
	tagAttachment = 8
	tagPrivate    = 9
	tagLocale     = 10
	tagScope      = 11
	tagAddressed  = 12
	tagTarget     = 13
	tagData       = 14
	tagCommand    = 15
	tagTo         = 16
	tagCount      = 17
	tagDue        = 18
	tagSelf       = 19
	tagRev        = 20
	tagDeleted    = 21
	tagReaction   = 22
	tagReactors   = 23
	tagReply      = 24
	tagAnswers    = 25
	tagForeign    = 26
	tagAhead      = 27
	tagStrangers  = 28
	tagHeard      = 29
	tagWritten    = 30
	tagMessage    = 31 // the kind is core.KindMessage
	tagNumber     = 32 // the message's id, if it is a number
	tagFirst      = 1  // within groups
	tagSecond     = 2
	tagThird      = 3
	tagFourth     = 4
	tagFifth      = 5
	tagSixth      = 6
	tagSeventh    = 7
	tagEighth     = 8
	tagNinth      = 9
)

func encodeEntry(l *storedEntry) []byte {
	c := codec{out: make([]byte, 0, 128+len(l.Message.Text))}
	l.fields(&c)
	return c.out
}

// decodeEntry reads the stored form. It copies: the value may go away.
func decodeEntry(value []byte, place core.Path, seq uint64) (l storedEntry, err error) {
	var c codec
	l.Message.Path, l.Message.Seq = place, seq
	if err := c.read(value, func() { l.fields(&c) }); err != nil {
		return storedEntry{}, fmt.Errorf("entry %s#%d: %w", place, seq, err)
	}
	return l, nil
}

func (l *storedEntry) fields(c *codec) {
	isMessage := l.Kind == core.KindMessage
	c.flag(tagMessage, &isMessage)
	if isMessage {
		l.Kind = core.KindMessage
	} else {
		text(c, tagKind, &l.Kind)
	}
	messageFields(c, &l.Message)
	text(c, tagTarget, &l.Target)
	text(c, tagData, &l.Data)
	if c.at(tagCommand) {
		l.Command = new(core.Command)
	}
	if l.Command != nil {
		c.group(tagCommand, func() {
			text(c, tagFirst, &l.Command.Name)
			c.texts(tagSecond, &l.Command.Args)
		})
	}
	c.path(tagTo, &l.To)
	signed(c, tagCount, &l.Count)
	c.flag(tagDue, &l.Due)
	c.flag(tagSelf, &l.Self)
	c.flag(tagStrangers, &l.Strangers)
	signed(c, tagRev, &l.Rev)
	c.flag(tagDeleted, &l.Deleted)
	text(c, tagReply, &l.Reply)
	mapped(c, tagReaction, &l.Reactions, func(n *int) { signed(c, tagSecond, n) })
	mapped(c, tagReactors, &l.reactors, func(emoji *[]string) { c.texts(tagSecond, emoji) })
	c.texts(tagAnswers, &l.answers)
}

func messageFields(c *codec, m *core.Message) {
	c.id(tagID, tagNumber, &m.ID)
	authorField(c, tagAuthor, &m.Author)
	text(c, tagText, &m.Text)
	c.time(tagTime, &m.Time)
	signed(c, tagAhead, &m.Ahead)
	c.flag(tagVoice, &m.Voice)
	signed(c, tagHeard, &m.Heard)
	signed(c, tagWritten, &m.Written)
	if c.at(tagReplyTo) {
		m.ReplyTo = new(core.Quote)
	}
	if m.ReplyTo != nil {
		c.group(tagReplyTo, func() {
			text(c, tagFirst, &m.ReplyTo.ID)
			authorField(c, tagSecond, &m.ReplyTo.From)
			text(c, tagThird, &m.ReplyTo.Text)
			c.time(tagFourth, &m.ReplyTo.Time)
		})
	}
	repeated(c, tagAttachment, &m.Attachments, func(a *core.Attachment) { attachmentField(c, a) })
	repeated(c, tagForeign, &m.Foreign, func(o *core.Foreign) { foreignField(c, o) })
	c.flag(tagPrivate, &m.Private)
	text(c, tagLocale, &m.Locale)
	repeated(c, tagScope, &m.Scopes, func(scope *core.Path) { c.path(tagScope, scope) })
	text(c, tagAddressed, &m.Addressed)
}

func authorField(c *codec, tag byte, a *core.Author) {
	if !c.reading && *a == (core.Author{}) {
		return
	}
	c.group(tag, func() {
		c.id(tagFirst, tagNinth, &a.ID)
		text(c, tagSecond, &a.Name)
		text(c, tagThird, &a.Tag)
		c.flag(tagFourth, &a.Bot)
		rank := uint64(a.Rank)
		c.number(tagFifth, &rank)
		a.Rank = core.Rank(min(rank, 255))
		text(c, tagSixth, &a.Channel)
	})
}

func foreignField(c *codec, o *core.Foreign) {
	c.group(tagForeign, func() {
		text(c, tagFirst, &o.Kind)
		authorField(c, tagSecond, &o.From)
		text(c, tagThird, &o.Text)
		c.time(tagFourth, &o.Time)
		c.flag(tagFifth, &o.Voice)
	})
}

func attachmentField(c *codec, a *core.Attachment) {
	c.group(tagAttachment, func() {
		text(c, tagFirst, &a.Kind)
		text(c, tagSecond, &a.Name)
		text(c, tagThird, &a.MIME)
		signed(c, tagFourth, &a.Size)
		signed(c, tagFifth, &a.Width)
		signed(c, tagSixth, &a.Height)
		signed(c, tagSeventh, &a.Duration)
		text(c, tagEighth, &a.Ref)
	})
}

// head is the state of a place as it is stored.
type head struct {
	last, answered uint64
	count          uint64 // entries that are there
	time           time.Time
	private        bool // an entry was
}

// Tags of a head's fields.
const (
	tagLast     = 1
	tagAnswered = 2
	tagEntries  = 3
	tagNewest   = 4
	tagShut     = 5
)

func (h *head) fields(c *codec) {
	c.number(tagLast, &h.last)
	c.number(tagAnswered, &h.answered)
	c.number(tagEntries, &h.count)
	c.time(tagNewest, &h.time)
	c.flag(tagShut, &h.private)
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
