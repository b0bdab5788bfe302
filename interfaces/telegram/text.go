package telegram

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/sorting"
	"synthbot/core/txt"
)

// maxEntities is how many entities of a text are read; apps send at most 100.
const maxEntities = 1000

// offsets returns the byte offset of each UTF-16 unit of a text, and of its end. The second unit of a
// character has the offset of the next character.
func offsets(text string) []int {
	at := make([]int, 0, len(text)+1)
	for i, r := range text {
		at = append(at, i)
		if utf16.RuneLen(r) == 2 {
			at = append(at, i+utf8.RuneLen(r))
		}
	}
	return append(at, len(text))
}

// inBytes returns entities with offset and length in bytes. Those outside of the text are made empty, because they
// come from the network and cannot be trusted.
func inBytes(text string, entities []entity) []entity {
	list := slices.Clone(entities[:min(len(entities), maxEntities)])
	if len(list) == 0 {
		return nil
	}
	at := offsets(text)
	clamp := func(n int) int { return min(max(n, 0), len(at)-1) }
	for i := range list {
		e := &list[i]
		from := clamp(e.Offset)
		to := clamp(from + clamp(e.Length))
		if e.Offset < 0 {
			from = to
		}
		e.Offset, e.Length = at[from], at[to]-at[from]
	}
	return list
}

func entityText(text string, e entity) string { return text[e.Offset:end(e)] }

// mentioned reports whether an entity outside of quotes mentions the bot.
func (c *converter) mentioned(text string, entities []entity) bool {
	for _, e := range entities {
		if isQuoted(e, entities) {
			continue
		}
		part := entityText(text, e)
		switch e.Type {
		case "mention":
			if c.self.UserName != "" && strings.EqualFold(part, "@"+c.self.UserName) {
				return true
			}
		case "text_mention":
			if e.User != nil && e.User.ID == c.self.ID {
				return true
			}
		case "bot_command":
			_, whom, _ := strings.Cut(part, "@")
			if whom != "" && strings.EqualFold(whom, c.self.UserName) {
				return true
			}
		}
	}
	return false
}

func isQuote(e entity) bool { return e.Type == "blockquote" || e.Type == "expandable_blockquote" }

// isQuoted reports whether an entity begins within a quote.
func isQuoted(e entity, entities []entity) bool {
	return slices.ContainsFunc(entities, func(q entity) bool {
		return isQuote(q) && q.Offset <= e.Offset && e.Offset < end(q)
	})
}

// spoken returns a text in which spaces replace quotes, code and mentions by name; "" if it has none of them.
func spoken(text string, entities []entity) string {
	omitted := func(e entity) bool {
		return isQuote(e) || e.Type == "text_mention" || e.Type == "pre" || e.Type == "code"
	}
	if !slices.ContainsFunc(entities, omitted) {
		return ""
	}
	said := []byte(text)
	for _, e := range entities {
		if omitted(e) {
			copy(said[e.Offset:], bytes.Repeat([]byte{' '}, e.Length))
		}
	}
	return string(said)
}

// command reads a message that begins with one of the bot's chat commands.
func (c *converter) command(m *message) *core.Command {
	text, entities := m.content()
	at := slices.IndexFunc(entities, func(e entity) bool {
		return e.Type == "bot_command" && e.Offset == 0
	})
	if at < 0 || !m.isAuthorsOwn() || isQuoted(entities[at], entities) {
		return nil
	}
	word := entityText(text, entities[at])
	name, whom, named := strings.Cut(strings.TrimPrefix(word, "/"), "@")
	if named && !strings.EqualFold(whom, c.self.UserName) {
		return nil
	}
	known := c.commands()
	for i := range known {
		spec := &known[i]
		if strings.EqualFold(spec.Name, name) {
			return &core.Command{Name: spec.Name, Args: arguments(spec, text[len(word):])}
		}
	}
	return nil
}

// arguments splits the text after a command. The last argument may take the rest.
func arguments(spec *command.Spec, rest string) []string {
	rest = strings.TrimSpace(rest)
	var args []string
	for word := range strings.FieldsSeq(rest) {
		i := len(args)
		if i < len(spec.Args) && spec.Args[i].Rest {
			return append(args, rest)
		}
		args, rest = append(args, word), strings.TrimSpace(rest[len(word):])
	}
	return args
}

// description describes a part of the message that is not text, such as a sticker or a poll.
func (m *message) description() string {
	switch {
	case m.Sticker != nil:
		return core.StickerText(oneLine(m.Sticker.Emoji))
	case m.Venue != nil:
		return ""
	case m.Location != nil:
		return "[location" + m.Location.suffix() + "]"
	case m.Dice != nil:
		return fmt.Sprintf("[dice %s: %d]", oneLine(m.Dice.Emoji), m.Dice.Value)
	case m.Poll != nil:
		options := []string{}
		for _, o := range m.Poll.Options {
			options = append(options, oneLine(o.Text))
		}
		return fmt.Sprintf("[poll: %s: %s]", oneLine(m.Poll.Question), strings.Join(options, " | "))
	case m.Checklist != nil:
		return m.checklist()
	}
	return ""
}

func (m *message) checklist() string {
	tasks := []string{}
	for _, t := range m.Checklist.Tasks {
		box := map[bool]string{false: "☐ ", true: "☑ "}[t.Done != 0]
		tasks = append(tasks, box+oneLine(linked(t.Text, inBytes(t.Text, t.Entities))))
	}
	title := linked(m.Checklist.Title, inBytes(m.Checklist.Title, m.Checklist.Entities))
	return fmt.Sprintf("[checklist: %s: %s]", oneLine(title), strings.Join(tasks, " | "))
}

// card describes a venue or contact, whose text is not the author's own.
func (m *message) card() string {
	switch {
	case m.Venue != nil:
		return fmt.Sprintf("[venue: %s, %s%s]", oneLine(m.Venue.Title), oneLine(m.Venue.Address), m.Location.suffix())
	case m.Contact != nil:
		name := m.Contact.FirstName + " " + m.Contact.LastName
		return fmt.Sprintf("[contact: %s, %s]", oneLine(name), oneLine(m.Contact.PhoneNumber))
	}
	return ""
}

func (l *location) suffix() string {
	if l == nil {
		return ""
	}
	return fmt.Sprintf(": %.6g, %.6g", l.Latitude, l.Longitude)
}

// fullText returns all text of a message, with the addresses of its links and buttons.
func (m *message) fullText() string { return joinLines(m.ownText(linked(m.content())), m.card()) }

// ownText returns what the author wrote, m.description, and the addresses of buttons.
func (m *message) ownText(wrote string) string {
	said := []string{wrote, m.description()}
	for _, b := range m.buttons() {
		if b.URL != "" {
			said = append(said, "[button "+oneLine(b.Text)+": "+oneAddress(b.URL)+"]")
		}
	}
	return joinLines(said...)
}

// isAuthorsOwn reports whether the author wrote the message: it is neither forwarded nor from an inline bot.
func (m *message) isAuthorsOwn() bool { return !m.isForwarded() && m.Via == nil }

// isForwarded reports whether the message is forwarded. A post that a group gets from its linked channel is not, unless
// the channel forwarded it from somebody else.
func (m *message) isForwarded() bool {
	if m.Forward == nil {
		return false
	}
	from := m.Forward.Chat
	return !m.Linked || from != nil && (m.Sender == nil || from.ID != m.Sender.ID) ||
		m.Forward.User != nil || m.Forward.Hidden != "" || m.Forward.Sender != nil
}

// splitForeign separates the author's own text from that of others.
func (m *message) splitForeign() (own string, foreign []core.Foreign) {
	var o core.Foreign
	switch {
	case m.Via != nil:
		o = core.Foreign{Kind: core.ForeignEmbed, From: person(m.Via), Text: m.fullText()}
	case m.isForwarded():
		sent := unixTime(m.Forward.Date)
		o = core.Foreign{Kind: core.ForeignForward, From: m.Forward.author(), Text: m.fullText(), Time: sent}
		o.Voice = m.Voice != nil || m.VideoNote != nil
	default:
		wrote, quoted := splitQuotes(m.content())
		own = cut(m.ownText(wrote), core.MaxText/2)
		if quoted != "" {
			foreign = append(foreign, core.Foreign{Kind: core.ForeignQuote, Text: cut(quoted, core.MaxText/16)})
		}
		o = core.Foreign{Kind: core.ForeignEmbed, Text: m.card()}
	}
	o.Text = cut(o.Text, core.MaxText/4)
	if o.Text != "" || !m.isAuthorsOwn() && len(attachments(m)) > 0 {
		foreign = append(foreign, o)
	}
	return own, foreign
}

// joinLines joins the parts that are not empty, one per line.
func joinLines(parts ...string) string {
	var kept []string
	for _, p := range parts {
		p = strings.TrimSpace(p)
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, "\n")
}

// content returns the text, caption or rich text of a message, with its entities in bytes.
func (m *message) content() (text string, entities []entity) {
	switch {
	case m.Text != "":
		return m.Text, inBytes(m.Text, m.Entities)
	case m.Caption != "":
		return m.Caption, inBytes(m.Caption, m.CaptionEntities)
	}
	return readRich(m.Rich)
}

// attachments returns the file of a message, if it has one; of a photo, the largest size.
func attachments(m *message) []core.Attachment {
	var photo *file
	if len(m.Photo) > 0 {
		size := func(a, b file) int { return cmp.Compare(a.Width*a.Height, b.Width*b.Height) }
		largest := slices.MaxFunc(m.Photo, size)
		photo = &largest
	}
	for _, one := range []struct {
		*file
		kind core.Media
		mime string // if Telegram does not say
	}{
		{photo, core.MediaImage, "image/jpeg"},
		{m.Voice, core.MediaAudio, ""},
		{m.Audio, core.MediaAudio, ""},
		{m.Video, core.MediaVideo, ""},
		{m.VideoNote, core.MediaVideo, "video/mp4"},
		{m.Animation, core.MediaVideo, ""}, // is also in m.Document
		{m.Document, core.MediaFile, ""},
		{m.Sticker, core.MediaImage, "image/webp"},
	} {
		f := one.file
		switch {
		case f == nil:
			continue
		case f.IsVideo:
			one.kind, one.mime = core.MediaVideo, "video/webm"
		case f.IsAnimated:
			one.kind, one.mime = core.MediaFile, "application/x-tgsticker"
		case one.kind == core.MediaFile && strings.HasPrefix(f.MimeType, "image/"):
			one.kind = core.MediaImage
		}
		return []core.Attachment{{
			Kind: one.kind, MIME: cut(cmp.Or(one.mime, f.MimeType), 128),
			Name: oneLine(cut(f.FileName, core.MaxName)), Ref: f.FileID,
			Width: cmp.Or(f.Width, f.Length), Height: cmp.Or(f.Height, f.Length), Size: int64(max(f.FileSize, 0)),
			Duration: time.Duration(min(max(f.Duration, 0), 1<<30)) * time.Second,
		}}
	}
	return nil
}

// cut shortens a text from the network to max bytes, visibly, and replaces NUL.
func cut(s string, max int) string {
	return txt.ClipBytes(strings.ReplaceAll(s, "\x00", "\uFFFD"), max)
}

// oneLine makes a text from the network safe within brackets.
func oneLine(s string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("[", "(", "]", ")").Replace(cut(s, 512))), " ")
}

// linked returns a text with the address after each link that does not show it: "words (https://…)".
func linked(text string, entities []entity) string {
	links := slices.DeleteFunc(slices.Clone(entities), func(e entity) bool {
		return e.Type != "text_link" || showsAddress(entityText(text, e), e.URL)
	})
	sorting.SortStable(links, byEnd)
	var out strings.Builder
	from := 0
	for _, e := range links {
		out.WriteString(text[from:end(e)] + " (" + oneAddress(e.URL) + ")")
		from = end(e)
	}
	return out.String() + text[from:]
}

func end(e entity) int { return e.Offset + e.Length }

func byEnd(a, b entity) int { return cmp.Compare(end(a), end(b)) }

// showsAddress reports whether a text is the address itself, or the address is empty.
func showsAddress(text, address string) bool {
	return address == "" || normalAddress(text) == normalAddress(address)
}

// normalAddress returns an address without the parts that people omit: the scheme and the last slash.
func normalAddress(address string) string {
	address = strings.TrimSpace(address)
	if _, rest, ok := strings.Cut(address, "://"); ok && strings.HasPrefix(strings.ToLower(address), "http") {
		address = rest
	}
	return strings.TrimSuffix(address, "/")
}

// oneAddress removes white space from an address, so that it cannot look like more text.
func oneAddress(s string) string { return cut(strings.Join(strings.Fields(s), ""), 2048) }

func (m *message) buttons() []keyboardButton { return slices.Concat(m.Markup.Rows...) }

// quotedPart returns a quoted part of the message, with the addresses of its links. Telegram gives quotes without
// links. position, in UTF-16 units, tells apart parts with the same words.
func (m *message) quotedPart(quoted string, position int) string {
	text, entities := m.content()
	at, bytes := strings.Index(text, quoted), offsets(text)
	if position >= 0 && position < len(bytes) && strings.HasPrefix(text[bytes[position]:], quoted) {
		at = bytes[position]
	}
	if at < 0 {
		return quoted
	}
	return linked(quoted, entitiesBetween(entities, at, at+len(quoted)))
}

// entitiesBetween returns the entities of the part of a text between two offsets, relative to from.
func entitiesBetween(entities []entity, from, to int) (list []entity) {
	for _, e := range entities {
		if e.Offset < to && end(e) > from {
			e.Offset, e.Length = max(e.Offset-from, 0), min(end(e), to)-max(e.Offset, from)
			list = append(list, e)
		}
	}
	return list
}

// splitQuotes separates what an author wrote from what they quote, with the addresses of links.
func splitQuotes(text string, entities []entity) (own, quoted string) {
	part := func(from, to int) string {
		return linked(text[from:min(to, len(text))], entitiesBetween(entities, from, to))
	}
	from := 0
	for _, q := range sorting.SortedStable(slices.Values(entities), byEnd) {
		if isQuote(q) {
			own, quoted = joinLines(own, part(from, max(from, q.Offset))), joinLines(quoted, part(q.Offset, end(q)))
			from = max(from, end(q))
		}
	}
	return joinLines(own, part(from, math.MaxInt)), quoted
}
