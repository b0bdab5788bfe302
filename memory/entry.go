package memory

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"synthbot/core"
)

// line is an entry as it is stored: with who put which reaction on it, so that
// one that is delivered again or taken away is counted right, and with whom it
// answers. The key holds path and number.
type line struct {
	core.Entry
	reactors map[string][]string // emoji by person
	answers  []string            // people; of what the bot said and of what goes on with a turn
}

// Tags of an entry's fields. They are part of the file's format: a number once
// given keeps its meaning.
const (
	tagKind        = 1
	tagID          = 2
	tagAuthor      = 3
	tagText        = 4
	tagTime        = 5
	tagVoice       = 6
	tagReplyTo     = 7
	tagAttachment  = 8
	tagPrivate     = 9
	tagLocale      = 10
	tagScope       = 11
	tagAddressed   = 12
	tagTarget      = 13
	tagData        = 14
	tagCommand     = 15
	tagTo          = 16
	tagCount       = 17
	tagDue         = 18
	tagSelf        = 19
	tagRev         = 20
	tagDeleted     = 21
	tagReaction    = 22
	tagReactors    = 23
	tagReply       = 24
	tagAnswers     = 25
	tagForeign     = 26
	tagAhead       = 27
	tagStrangers   = 28
	tagFirst       = 1 // within groups
	tagSecond      = 2
	tagThird       = 3
	tagFourth      = 4
	tagFifth       = 5
	tagSixth       = 6
	tagSeventh     = 7
	tagEighth      = 8
	roomForAnEntry = 256
)

// encodeLine gives the stored form.
func encodeLine(l *line) []byte {
	f := make(fields, 0, roomForAnEntry+len(l.Message.Text))
	f.text(tagKind, string(l.Kind))
	encodeMessage(&f, &l.Message)
	f.text(tagTarget, l.Target)
	f.text(tagData, l.Data)
	if l.Command != nil {
		f.group(tagCommand, func(g *fields) { encodeCommand(g, l.Command) })
	}
	f.text(tagTo, l.To.String())
	f.signed(tagCount, int64(l.Count))
	f.flag(tagDue, l.Due)
	f.flag(tagSelf, l.Self)
	f.flag(tagStrangers, l.Strangers)
	f.signed(tagRev, int64(l.Rev))
	f.flag(tagDeleted, l.Deleted)
	f.text(tagReply, l.Reply)
	for _, emoji := range slices.Sorted(maps.Keys(l.Reactions)) {
		f.group(tagReaction, func(g *fields) {
			g.text(tagFirst, emoji)
			g.signed(tagSecond, int64(l.Reactions[emoji]))
		})
	}
	for _, person := range slices.Sorted(maps.Keys(l.reactors)) {
		f.group(tagReactors, func(g *fields) {
			g.text(tagFirst, person)
			for _, emoji := range l.reactors[person] {
				g.text(tagSecond, emoji)
			}
		})
	}
	encodeAnswers(&f, l.answers)
	return f
}

// encodeAnswers comes last, so that it can be added to what is encoded already.
func encodeAnswers(f *fields, people []string) {
	for _, person := range people {
		f.text(tagAnswers, person)
	}
}

func encodeMessage(f *fields, m *core.Message) {
	f.text(tagID, m.ID)
	if m.Author != (core.Author{}) {
		f.group(tagAuthor, func(g *fields) { encodeAuthor(g, &m.Author) })
	}
	f.text(tagText, m.Text)
	f.time(tagTime, m.Time)
	f.signed(tagAhead, int64(m.Ahead))
	f.flag(tagVoice, m.Voice)
	if m.ReplyTo != nil {
		f.group(tagReplyTo, func(g *fields) { encodeQuote(g, m.ReplyTo) })
	}
	for i := range m.Attachments {
		f.group(tagAttachment, func(g *fields) { encodeAttachment(g, &m.Attachments[i]) })
	}
	for i := range m.Foreign {
		f.group(tagForeign, func(g *fields) { encodeForeign(g, &m.Foreign[i]) })
	}
	f.flag(tagPrivate, m.Private)
	f.text(tagLocale, m.Locale)
	for _, scope := range m.Scopes {
		f.text(tagScope, scope.String())
	}
	f.text(tagAddressed, string(m.Addressed))
}

func encodeAuthor(f *fields, a *core.Author) {
	f.text(tagFirst, a.ID)
	f.text(tagSecond, a.Name)
	f.text(tagThird, a.Tag)
	f.flag(tagFourth, a.Bot)
	f.number(tagFifth, uint64(a.Rank))
	f.text(tagSixth, string(a.Channel))
}

func encodeQuote(f *fields, q *core.Quote) {
	f.text(tagFirst, q.ID)
	if q.From != (core.Author{}) {
		f.group(tagSecond, func(g *fields) { encodeAuthor(g, &q.From) })
	}
	f.text(tagThird, q.Text)
	f.time(tagFourth, q.Time)
}

func encodeForeign(f *fields, o *core.Foreign) {
	f.text(tagFirst, string(o.Kind))
	if o.From != (core.Author{}) {
		f.group(tagSecond, func(g *fields) { encodeAuthor(g, &o.From) })
	}
	f.text(tagThird, o.Text)
	f.time(tagFourth, o.Time)
}

func encodeAttachment(f *fields, a *core.Attachment) {
	f.text(tagFirst, string(a.Kind))
	f.text(tagSecond, a.Name)
	f.text(tagThird, a.MIME)
	f.signed(tagFourth, a.Size)
	f.signed(tagFifth, int64(a.Width))
	f.signed(tagSixth, int64(a.Height))
	f.signed(tagSeventh, int64(a.Duration))
	f.text(tagEighth, a.Ref)
}

func encodeCommand(f *fields, c *core.Command) {
	f.text(tagFirst, c.Name)
	for _, arg := range c.Args {
		// An empty argument is one too, and text would leave it out.
		f.group(tagSecond, func(g *fields) { *g = append(*g, arg...) })
	}
}

// decodeLine reads the stored form. It copies: the value may go away.
func decodeLine(value []byte, place core.Path, seq uint64) (line, error) {
	var l line
	l.Message.Path, l.Message.Seq = place, seq
	err := each(string(value), l.read)
	if err != nil {
		return line{}, fmt.Errorf("entry %s#%d: %w", place, seq, err)
	}
	return l, nil
}

func (l *line) read(f field) error {
	switch f.tag {
	case tagKind:
		l.Kind = core.Kind(f.text)
	case tagTarget:
		l.Target = f.text
	case tagData:
		l.Data = f.text
	case tagCommand:
		l.Command = new(core.Command)
		return each(f.text, func(g field) error { return readCommand(g, l.Command) })
	case tagTo:
		return l.To.UnmarshalText([]byte(f.text))
	case tagCount:
		return f.setInt(&l.Count)
	case tagDue:
		l.Due = true
	case tagSelf:
		l.Self = true
	case tagStrangers:
		l.Strangers = true
	case tagRev:
		return f.setInt(&l.Rev)
	case tagDeleted:
		l.Deleted = true
	case tagReaction:
		return l.readReaction(f.text)
	case tagReactors:
		return l.readReactors(f.text)
	case tagReply:
		l.Reply = f.text
	case tagAnswers:
		if f.text != "" {
			l.answers = append(l.answers, f.text)
		}
	}
	return readMessage(f, &l.Message)
}

func (l *line) readReaction(text string) error {
	var emoji string
	var count int
	err := each(text, func(f field) error {
		switch f.tag {
		case tagFirst:
			emoji = f.text
		case tagSecond:
			return f.setInt(&count)
		}
		return nil
	})
	if l.Reactions == nil {
		l.Reactions = make(map[string]int)
	}
	l.Reactions[emoji] = count
	return err
}

func (l *line) readReactors(text string) error {
	var person string
	var emoji []string
	err := each(text, func(f field) error {
		switch f.tag {
		case tagFirst:
			person = f.text
		case tagSecond:
			emoji = append(emoji, f.text)
		}
		return nil
	})
	if l.reactors == nil {
		l.reactors = make(map[string][]string)
	}
	l.reactors[person] = emoji
	return err
}

func readMessage(f field, m *core.Message) error {
	switch f.tag {
	case tagID:
		m.ID = f.text
	case tagAuthor:
		return each(f.text, func(g field) error { return readAuthor(g, &m.Author) })
	case tagText:
		m.Text = f.text
	case tagTime:
		return f.setTime(&m.Time)
	case tagAhead:
		return f.setSigned((*int64)(&m.Ahead))
	case tagVoice:
		m.Voice = true
	case tagReplyTo:
		m.ReplyTo = new(core.Quote)
		return each(f.text, func(g field) error { return readQuote(g, m.ReplyTo) })
	case tagAttachment:
		m.Attachments = append(m.Attachments, core.Attachment{})
		a := &m.Attachments[len(m.Attachments)-1]
		return each(f.text, func(g field) error { return readAttachment(g, a) })
	case tagForeign:
		m.Foreign = append(m.Foreign, core.Foreign{})
		o := &m.Foreign[len(m.Foreign)-1]
		return each(f.text, func(g field) error { return readForeign(g, o) })
	case tagPrivate:
		m.Private = true
	case tagLocale:
		m.Locale = f.text
	case tagScope:
		m.Scopes = append(m.Scopes, core.Path{})
		return m.Scopes[len(m.Scopes)-1].UnmarshalText([]byte(f.text))
	case tagAddressed:
		m.Addressed = core.Addressed(f.text)
	}
	return nil
}

func readAuthor(f field, a *core.Author) error {
	switch f.tag {
	case tagFirst:
		a.ID = f.text
	case tagSecond:
		a.Name = f.text
	case tagThird:
		a.Tag = f.text
	case tagFourth:
		a.Bot = true
	case tagFifth:
		var rank uint64
		err := f.set(&rank)
		a.Rank = core.Rank(min(rank, 255))
		return err
	case tagSixth:
		a.Channel = core.Channel(f.text)
	}
	return nil
}

func readQuote(f field, q *core.Quote) error {
	switch f.tag {
	case tagFirst:
		q.ID = f.text
	case tagSecond:
		return each(f.text, func(g field) error { return readAuthor(g, &q.From) })
	case tagThird:
		q.Text = f.text
	case tagFourth:
		return f.setTime(&q.Time)
	}
	return nil
}

func readForeign(f field, o *core.Foreign) error {
	switch f.tag {
	case tagFirst:
		o.Kind = core.ForeignKind(f.text)
	case tagSecond:
		return each(f.text, func(g field) error { return readAuthor(g, &o.From) })
	case tagThird:
		o.Text = f.text
	case tagFourth:
		return f.setTime(&o.Time)
	}
	return nil
}

func readAttachment(f field, a *core.Attachment) error {
	switch f.tag {
	case tagFirst:
		a.Kind = core.Media(f.text)
	case tagSecond:
		a.Name = f.text
	case tagThird:
		a.MIME = f.text
	case tagFourth:
		return f.setSigned(&a.Size)
	case tagFifth:
		return f.setInt(&a.Width)
	case tagSixth:
		return f.setInt(&a.Height)
	case tagSeventh:
		return f.setSigned((*int64)(&a.Duration))
	case tagEighth:
		a.Ref = f.text
	}
	return nil
}

func readCommand(f field, c *core.Command) error {
	switch f.tag {
	case tagFirst:
		c.Name = f.text
	case tagSecond:
		c.Args = append(c.Args, f.text)
	}
	return nil
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

func encodeHead(h head) []byte {
	f := make(fields, 0, 32)
	f.number(tagLast, h.last)
	f.number(tagAnswered, h.answered)
	f.number(tagEntries, h.count)
	f.time(tagNewest, h.time)
	f.flag(tagShut, h.private)
	return f
}

func decodeHead(value []byte) (head, error) {
	var h head
	err := each(string(value), func(f field) error {
		switch f.tag {
		case tagLast:
			return f.set(&h.last)
		case tagAnswered:
			return f.set(&h.answered)
		case tagEntries:
			return f.set(&h.count)
		case tagNewest:
			return f.setTime(&h.time)
		case tagShut:
			h.private = true
		}
		return nil
	})
	if err != nil {
		return head{}, fmt.Errorf("head: %w", err)
	}
	return h, nil
}
