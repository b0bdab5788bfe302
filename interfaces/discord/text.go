package discord

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"synthbot/core"
)

// short cuts a text to at most n bytes, visibly and between characters.
func short(s string, n int) string {
	s = strings.ToValidUTF8(strings.TrimSpace(s), "\uFFFD")
	if len(s) <= n {
		return s
	}
	n = max(n-len("…"), 0)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// line is a text on one line, without characters that control what stands
// around it.
func line(s string, n int) string {
	return short(strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), r == '\u2028', r == '\u2029':
			return ' '
		case r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069':
			return -1 // the direction of writing
		}
		return r
	}, s)), " "), n)
}

// references is what the platform's texts hold besides words. It is large, and so made
// when it is first needed.
var references = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`<(@!?|@&|#|a?:\w{1,64}:|/[^:<>]{1,100}:|t:|id:)(-?\w{1,24})(?::([tTdDfFR]))?>`)
})

// reader makes the text of a message readable: names for ids.
type reader struct {
	b     *cache
	guild string
	users []user
	chans []channelMention
	bare  bool // names that stand for ids are left out
}

func (b *cache) reader(m *message, guild string) reader {
	return reader{b: b, guild: guild, users: m.Mentions, chans: m.Channels}
}

// unnamed is a reader that leaves out the names that stand for ids.
func (r reader) unnamed() reader {
	r.bare = true
	return r
}

// words resolves mentions, emoji and times.
func (r reader) words(s string) string {
	if !strings.Contains(s, "<") {
		return s
	}
	return references().ReplaceAllStringFunc(s, func(found string) string {
		m := references().FindStringSubmatch(found)
		switch text := r.resolve(m[1], m[2]); {
		case text == "":
			return found
		case r.bare:
			return " "
		default:
			return text
		}
	})
}

func (r reader) resolve(kind, id string) string {
	switch {
	case kind == "@" || kind == "@!":
		return prefixed("@", r.person(id))
	case kind == "@&":
		return prefixed("@", r.b.roleName(r.guild, id))
	case kind == "#":
		return prefixed("#", r.channel(id))
	case kind == "t:":
		if n, err := strconv.ParseInt(id, 10, 64); err == nil && n > -1<<40 && n < 1<<40 {
			return time.Unix(n, 0).UTC().Format("2006-01-02 15:04 MST")
		}
	case strings.HasPrefix(kind, "/"):
		return strings.TrimSuffix(kind, ":")
	case strings.HasSuffix(kind, ":") && kind != "id:":
		return strings.TrimPrefix(kind, "a")
	}
	return ""
}

func prefixed(mark, name string) string {
	if name == "" {
		return ""
	}
	return mark + name
}

func (r reader) person(id string) string {
	for i := range r.users {
		if r.users[i].ID == id {
			return called(&r.users[i], r.users[i].Member)
		}
	}
	self, _ := r.b.me()
	if self.ID == id {
		return called(&self, nil)
	}
	return ""
}

func (r reader) channel(id string) string {
	for _, c := range r.chans {
		if c.ID == id {
			return line(c.Name, core.MaxName)
		}
	}
	return r.b.channelName(id)
}

// called is what people call somebody here.
func called(u *user, m *member) string {
	for _, name := range []string{nick(m), u.Shown, u.Name} {
		name = line(name, core.MaxName)
		if name != "" {
			return name
		}
	}
	return u.ID
}

func nick(m *member) string {
	if m == nil {
		return ""
	}
	return m.Nick
}

// own is what the author of a message put into words.
func (r reader) own(m *message) string {
	parts := []string{r.words(m.Content)}
	if m.Poll != nil {
		parts = append(parts, m.Poll.text())
	}
	for i := range m.Embeds {
		e := &m.Embeds[i]
		if e.Type == "poll_result" {
			parts = append(parts, e.result())
		}
	}
	return joined(parts)
}

// cards are what stands beside the words of a message: stickers, and what an embed
// says. A link's own preview is left out.
func (r reader) cards(m *message) (cards []string) {
	for _, s := range m.Stickers {
		cards = append(cards, "[sticker: "+line(s.Name, 100)+"]")
	}
	for i := range m.Embeds {
		e := &m.Embeds[i]
		if e.Type == "" || e.Type == "rich" {
			cards = append(cards, r.words(e.text()))
		}
	}
	return cards
}

// said is all that a message says but what it forwards.
func (r reader) said(m *message) string {
	return joined(append([]string{r.own(m)}, r.cards(m)...))
}

// forwards are the messages that a message passes on. The platform does not tell who
// wrote them.
func (r reader) forwards(m *message) (list []core.Foreign) {
	for i := range m.Snapshots[:min(len(m.Snapshots), core.MaxForeign/4)] {
		inner := &m.Snapshots[i].Message
		o := core.Foreign{Kind: core.Forwarded, Text: short(r.said(inner), core.MaxText/16), Time: inner.Time.Time}
		if o.Text != "" || len(inner.Attachments) > 0 {
			list = append(list, o)
		}
	}
	return list
}

// foreign is what a message says in others' words.
func (r reader) foreign(m *message) []core.Foreign {
	list := r.forwards(m)
	text := short(joined(r.cards(m)), core.MaxText/4)
	if text != "" {
		list = append(list, core.Foreign{Kind: core.Embedded, Text: text})
	}
	return list
}

// joined is what is not blank, a line each.
func joined(parts []string) string {
	var said []string
	for _, p := range parts {
		if strings.TrimSpace(p) != "" {
			said = append(said, p)
		}
	}
	return short(strings.Join(said, "\n"), core.MaxText)
}

func (p *poll) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[poll: %s", line(p.Question.Text, 400))
	for i, a := range p.Answers {
		text := a.Media.Text
		if a.Media.Emoji != nil {
			text = a.Media.Emoji.text() + " " + text
		}
		fmt.Fprintf(&b, " %d) %s", i+1, line(text, 100))
	}
	if p.Multiple {
		b.WriteString(" (several answers allowed)")
	}
	return b.String() + "]"
}

// result is how a poll ended.
func (e *embed) result() string {
	said := make(map[string]string)
	for _, f := range e.Fields {
		said[f.Name] = line(f.Value, 400)
	}
	won := "no answer won"
	text := strings.TrimSpace(said["victor_answer_emoji_name"] + " " + said["victor_answer_text"])
	if text != "" {
		won = text + " won with " + said["victor_answer_votes"]
	}
	return fmt.Sprintf("[poll closed: %s %s of %s votes]", said["poll_question_text"], won, said["total_votes"])
}

func (e *embed) text() string {
	parts := []string{e.Author.Name, e.Title, e.Description}
	for _, f := range e.Fields {
		parts = append(parts, f.Name+": "+f.Value)
	}
	parts = append(parts, e.Footer.Text, e.URL)
	var said []string
	for _, p := range parts {
		p = short(p, 4096)
		if p != "" && p != ":" {
			said = append(said, p)
		}
	}
	if len(said) == 0 {
		return ""
	}
	return "[embed: " + strings.Join(said, " — ") + "]"
}
