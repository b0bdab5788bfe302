package telegram

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"synthbot/core"
	"synthbot/core/command"
)

// span returns the part of a text that an entity marks; its numbers are UTF-16
// units, and foreign.
func span(text string, offset, length int) string {
	if offset < 0 || length <= 0 {
		return ""
	}
	begin := byteAt(text, offset)
	if begin < 0 {
		return ""
	}
	if size := byteAt(text[begin:], length); size >= 0 {
		return text[begin : begin+size]
	}
	return text[begin:]
}

// byteAt is the byte where the n-th UTF-16 unit begins, or -1.
func byteAt(text string, n int) int {
	units := 0
	for i, r := range text {
		if units >= n {
			return i
		}
		units += utf16.RuneLen(r)
	}
	if units >= n {
		return len(text)
	}
	return -1
}

// mentioned reports whether a text holds the platform's own mention of the bot.
func (c *converter) mentioned(text string, entities []tgbotapi.MessageEntity) bool {
	for _, e := range entities {
		switch e.Type {
		case "mention":
			if c.self.UserName != "" && strings.EqualFold(span(text, e.Offset, e.Length), "@"+c.self.UserName) {
				return true
			}
		case "text_mention":
			if e.User != nil && e.User.ID == c.self.ID {
				return true
			}
		case "bot_command":
			_, whom, _ := strings.Cut(span(text, e.Offset, e.Length), "@")
			if whom != "" && strings.EqualFold(whom, c.self.UserName) {
				return true
			}
		}
	}
	return false
}

// command reads a message that begins with one of the bot's commands.
func (c *converter) command(m *message) (name string, args []string, ok bool) {
	text, entities := m.content()
	at := slices.IndexFunc(entities, func(e tgbotapi.MessageEntity) bool { return e.Type == "bot_command" && e.Offset == 0 })
	if at < 0 || m.Forward != nil { // styles may begin there, too
		return "", nil, false
	}
	word := span(text, 0, entities[at].Length)
	name, whom, named := strings.Cut(strings.TrimPrefix(word, "/"), "@")
	if named && !strings.EqualFold(whom, c.self.UserName) {
		return "", nil, false
	}
	for i := range c.commands {
		if spec := &c.commands[i]; strings.EqualFold(spec.Name, name) {
			return spec.Name, arguments(spec, text[len(word):]), true
		}
	}
	return "", nil, false
}

// arguments cuts what follows a command; the last one may take the rest.
func arguments(spec *command.Spec, rest string) []string {
	rest = strings.TrimSpace(rest)
	var args []string
	for i := 0; rest != ""; i++ {
		if i < len(spec.Args) && spec.Args[i].Rest {
			return append(args, rest)
		}
		word := rest
		if at := strings.IndexFunc(rest, unicode.IsSpace); at >= 0 {
			word = rest[:at]
		}
		args = append(args, word)
		rest = strings.TrimSpace(rest[len(word):])
	}
	return args
}

// describe adds to a text what the message holds besides words.
func describe(m *message, text string) string {
	lines := []string{}
	if m.Forward != nil && !m.Linked {
		lines = append(lines, "[forwarded]")
	}
	if text = strings.TrimSpace(text); text != "" {
		lines = append(lines, text)
	}
	switch {
	case m.Sticker != nil && m.Sticker.Emoji != "":
		lines = append(lines, "[sticker "+oneLine(m.Sticker.Emoji)+"]")
	case m.Sticker != nil:
		lines = append(lines, "[sticker]")
	case m.Venue != nil:
		lines = append(lines, fmt.Sprintf("[venue: %s, %s%s]", oneLine(m.Venue.Title), oneLine(m.Venue.Address), m.Location.suffix()))
	case m.Location != nil:
		lines = append(lines, "[location"+m.Location.suffix()+"]")
	case m.Contact != nil:
		lines = append(lines, fmt.Sprintf("[contact: %s, %s]", oneLine(m.Contact.FirstName+" "+m.Contact.LastName), oneLine(m.Contact.PhoneNumber)))
	case m.Dice != nil:
		lines = append(lines, fmt.Sprintf("[dice %s: %d]", oneLine(m.Dice.Emoji), m.Dice.Value))
	case m.Poll != nil:
		lines = append(lines, m.Poll.describe())
	case m.Checklist != nil:
		lines = append(lines, m.Checklist.describe())
	}
	if len(lines) == 1 && m.Forward != nil && len(attachments(m)) == 0 {
		return "" // a forwarded notice of the platform
	}
	return strings.Join(lines, "\n")
}

func (l *location) suffix() string {
	if l == nil {
		return ""
	}
	return fmt.Sprintf(": %.6g, %.6g", l.Latitude, l.Longitude)
}

func (p *poll) describe() string {
	options := []string{}
	for _, o := range p.Options {
		options = append(options, oneLine(o.Text))
	}
	return fmt.Sprintf("[poll: %s: %s]", oneLine(p.Question), strings.Join(options, " | "))
}

func (l *checklist) describe() string {
	tasks := []string{}
	for _, t := range l.Tasks {
		box := "☐ "
		if t.Done != 0 {
			box = "☑ "
		}
		tasks = append(tasks, box+oneLine(linked(t.Text, t.Entities)))
	}
	return fmt.Sprintf("[checklist: %s: %s]", oneLine(linked(l.Title, l.Entities)), strings.Join(tasks, " | "))
}

// told is what a message says, with where its links and buttons lead.
func (m *message) told() string {
	text, entities := m.content()
	lines := offers(m)
	if text = describe(m, linked(text, entities)); text != "" {
		lines = append([]string{text}, lines...)
	}
	return strings.Join(lines, "\n")
}

// content is the text of a message, in whichever field it stands.
func (m *message) content() (string, []tgbotapi.MessageEntity) {
	switch {
	case m.Text != "":
		return m.Text, m.Entities
	case m.Caption != "":
		return m.Caption, m.CaptionEntities
	}
	return readRich(m.Rich), nil
}

// attachments lists the files of a message; of a photo the largest size.
func attachments(m *message) []core.Attachment {
	switch {
	case len(m.Photo) > 0:
		p := m.Photo[0]
		for _, other := range m.Photo {
			if other.Width*other.Height > p.Width*p.Height {
				p = other
			}
		}
		return one(core.Attachment{Kind: core.Image, MIME: "image/jpeg", Width: p.Width, Height: p.Height, Ref: p.FileID}, p.FileSize, 0)
	case m.Voice != nil:
		return one(core.Attachment{Kind: core.Audio, MIME: m.Voice.MimeType, Ref: m.Voice.FileID}, m.Voice.FileSize, m.Voice.Duration)
	case m.Audio != nil:
		return one(core.Attachment{Kind: core.Audio, MIME: m.Audio.MimeType, Name: m.Audio.FileName, Ref: m.Audio.FileID}, m.Audio.FileSize, m.Audio.Duration)
	case m.Video != nil:
		v := m.Video
		return one(core.Attachment{Kind: core.Video, MIME: v.MimeType, Name: v.FileName, Width: v.Width, Height: v.Height, Ref: v.FileID}, v.FileSize, v.Duration)
	case m.VideoNote != nil:
		v := m.VideoNote
		return one(core.Attachment{Kind: core.Video, MIME: "video/mp4", Width: v.Length, Height: v.Length, Ref: v.FileID}, v.FileSize, v.Duration)
	case m.Animation != nil: // it comes as a document too
		a := m.Animation
		return one(core.Attachment{Kind: core.Video, MIME: a.MimeType, Name: a.FileName, Width: a.Width, Height: a.Height, Ref: a.FileID}, a.FileSize, a.Duration)
	case m.Document != nil:
		d := m.Document
		kind := core.File
		if strings.HasPrefix(d.MimeType, "image/") {
			kind = core.Image
		}
		return one(core.Attachment{Kind: kind, MIME: d.MimeType, Name: d.FileName, Ref: d.FileID}, d.FileSize, 0)
	case m.Sticker != nil:
		s := m.Sticker
		a := core.Attachment{Kind: core.Image, MIME: "image/webp", Width: s.Width, Height: s.Height, Ref: s.FileID}
		if s.Video {
			a.Kind, a.MIME = core.Video, "video/webm"
		} else if s.Animated {
			a.Kind, a.MIME = core.File, "application/x-tgsticker"
		}
		return one(a, int(s.Size), 0)
	}
	return nil
}

func one(a core.Attachment, size, seconds int) []core.Attachment {
	a.Name, a.MIME = oneLine(cut(a.Name, core.MaxName)), cut(a.MIME, 128)
	a.Size = int64(max(size, 0))
	a.Duration = time.Duration(min(max(seconds, 0), 1<<30)) * time.Second
	return []core.Attachment{a}
}

// cut shortens a foreign text to max bytes, visibly, and makes it valid.
func cut(s string, max int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) <= max {
		return s
	}
	const mark = "…"
	end := max - len(mark)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}

// oneLine keeps a foreign name from passing for more than it is.
func oneLine(s string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("[", "(", "]", ")").Replace(cut(s, 512))), " ")
}
