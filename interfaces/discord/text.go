package discord

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/txt"
)

// short shortens a text visibly to n bytes.
func short(s string, n int) string { return txt.ClipBytes(strings.TrimSpace(s), n) }

// line puts a text on one line and shortens it visibly to n bytes.
func line(s string, n int) string { return txt.ClipBytes(txt.Line(s), n) }

// references matches mentions, emoji and times in a text. It is large, so it is compiled when it is first needed.
var references = txt.Pattern(`<(@!?|@&|#|a?:\w{1,64}:|/[^:<>]{1,100}:|t:|id:)(-?\w{1,24})(?::([tTdDfFR]))?>`)

// reader makes the text of a message readable: with names instead of ids.
type reader struct {
	cache *cache
	guild string
	users []user
	chans []named
	bare  bool // leave references out instead
}

func (c *cache) reader(m *message, guild string) reader {
	return reader{cache: c, guild: guild, users: m.Mentions, chans: m.Channels}
}

// resolveReferences replaces mentions, emoji and times with what users see.
func (r reader) resolveReferences(s string) string {
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
	mark, name := kind[:1], ""
	switch {
	case kind == "@" || kind == "@!":
		name = r.person(id)
	case kind == "@&":
		name = r.cache.roleName(r.guild, id)
	case kind == "#":
		name = r.channel(id)
	case kind == "t:":
		if n, err := strconv.ParseInt(id, 10, 64); err == nil && n > -1<<40 && n < 1<<40 {
			return time.Unix(n, 0).UTC().Format("2006-01-02 15:04 MST")
		}
	case strings.HasPrefix(kind, "/"):
		return strings.TrimSuffix(kind, ":")
	case strings.HasSuffix(kind, ":") && kind != "id:":
		return strings.TrimPrefix(kind, "a")
	}
	if name == "" {
		return ""
	}
	return mark + name
}

func (r reader) person(id string) string {
	for i, u := range r.users {
		if u.ID == id {
			return displayName(&r.users[i], u.Member)
		}
	}
	self, _ := r.cache.bot()
	if self.ID == id {
		return displayName(&self, nil)
	}
	return ""
}

func (r reader) channel(id string) string {
	for _, c := range r.chans {
		if c.ID == id {
			return line(c.Name, core.MaxName)
		}
	}
	p, _ := r.cache.place(id)
	return p.name
}

// displayName returns the name of a user that others see.
func displayName(u *user, m *member) string {
	nick := cmp.Or(m, &member{}).Nick
	return cmp.Or(line(nick, core.MaxName), line(u.Shown, core.MaxName), line(u.Name, core.MaxName), u.ID)
}

var (
	// code matches code in a text, which must be closed.
	code = txt.Pattern("(?s)```.*?```|``.*?``|`.*?`")
	// quotes matches quoted lines of a text, and blocks of code, which have no quotes.
	quotes = txt.Pattern("(?ms)```.*?```|^ *>>> .*|^ *> [^\n]*\n?")
)

// splitQuotes separates what the author of a text wrote from what they quote in it.
func splitQuotes(text string) (own, quoted string) {
	if !strings.Contains(text, "> ") {
		return text, ""
	}
	own = quotes().ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, "`") {
			return found
		}
		quoted += strings.TrimLeft(found, " >")
		return ""
	})
	return own, quoted
}

// ownWords returns a text without quotes and code, in which mentions do not count.
func ownWords(text string) string {
	own, _ := splitQuotes(text)
	return code().ReplaceAllString(own, " ")
}

// ownText returns what the author of a message wrote: a text, which may be a part of the content, and polls.
func (r reader) ownText(m *message, text string) string {
	parts := []string{r.resolveReferences(text)}
	if m.Poll != nil {
		parts = append(parts, m.Poll.text())
	}
	for _, e := range m.Embeds {
		if e.Type == "poll_result" {
			parts = append(parts, e.result())
		}
	}
	return joinLines(parts)
}

// embedTexts returns the stickers and embeds of a message as texts, without previews of links.
func (r reader) embedTexts(m *message) (cards []string) {
	for _, s := range m.Stickers {
		cards = append(cards, "[sticker: "+line(s.Name, 100)+"]")
	}
	for _, e := range m.Embeds {
		if e.Type == "" || e.Type == "rich" {
			cards = append(cards, r.resolveReferences(e.text()))
		}
	}
	return cards
}

// fullText returns all texts of a message, except those that it forwards.
func (r reader) fullText(m *message) string {
	return joinLines(append([]string{r.ownText(m, m.Content)}, r.embedTexts(m)...))
}

// forwards returns the messages that a message forwards. Discord does not say who wrote them, only where they are.
func (r reader) forwards(m *message) (list []core.Foreign) {
	var from core.Path
	id := ""
	if m.Reference != nil && m.Reference.Type == 1 {
		from, _ = r.cache.pathOf(m.Reference.Channel)
		id = m.Reference.Message
	}
	for i := range m.Snapshots[:min(len(m.Snapshots), core.MaxForeign/4)] {
		inner := &m.Snapshots[i].Message
		o := core.Foreign{
			Kind: core.ForeignForward, Text: short(r.fullText(inner), core.MaxText/16), Time: inner.Time.Time,
			Path: from, ID: id, Voice: inner.Flags&flagVoice != 0,
		}
		if o.Text != "" || len(inner.Attachments) > 0 {
			list = append(list, o)
		}
	}
	return list
}

// quotes returns what the author of a message quotes in its text.
func (r reader) quotes(m *message) []core.Foreign {
	_, quoted := splitQuotes(m.Content)
	quoted = short(r.resolveReferences(quoted), core.MaxText/16)
	if quoted == "" {
		return nil
	}
	return []core.Foreign{{Kind: core.ForeignQuote, Text: quoted}}
}

// foreign returns the foreign texts of a message.
func (r reader) foreign(m *message) []core.Foreign {
	list := append(r.forwards(m), r.quotes(m)...)
	text := short(joinLines(r.embedTexts(m)), core.MaxText/4)
	if text != "" {
		list = append(list, core.Foreign{Kind: core.ForeignEmbed, Text: text})
	}
	return list
}

// joinLines joins the parts that are not blank, each on its own line.
func joinLines(parts []string) string {
	blank := func(p string) bool { return strings.TrimSpace(p) == "" }
	return short(strings.Join(slices.DeleteFunc(parts, blank), "\n"), core.MaxText)
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

// result returns how a poll ended.
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
	for i, p := range parts {
		parts[i] = short(p, 4096)
	}
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" || p == ":" })
	if len(parts) == 0 {
		return ""
	}
	return "[embed: " + strings.Join(parts, " — ") + "]"
}
