package prompt

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"synthbot/core"
	"synthbot/core/llm"
)

// input writes what the turn answers. Its type is "message" if a user did something, else the kind of event.
func (p *Parts) input(w *writer, l llm.Limits) {
	last := p.last()
	w.open('{')
	w.text("type", p.inputType(last))
	w.text("interface", p.Interface)
	w.object("payload")
	text, foreign := p.said()
	w.slot("text", text, false)
	w.foreign(last.Message.Path, foreign)
	w.eventDetails(&last.Event)
	source := "text"
	if last.Message.Voice {
		source = "voice"
	}
	w.text("input_source", source)
	w.heard(&last.Message)
	p.source(w, &last.Message)
	w.time("timestamp", last.Message.Time)
	w.text("privacy", "default")
	w.text("scope", cmp.Or(p.Scope, "chat"))
	p.speakers(w)
	p.media(w, l)
	w.reply(last.Message.Path, p.quote())
	w.close('}')
	w.close('}')
}

func (p *Parts) inputType(last *core.Entry) string {
	switch last.Kind {
	case core.KindMessage, core.KindPress, core.KindCommand, "":
		if p.Kind == Beat {
			return "beat"
		}
		return "message"
	case core.KindReminder:
		return "event_reminder"
	}
	return string(last.Kind)
}

// manyWait is how many messages of one person the prompt joins to one text; more are also listed one by one.
const manyWait = 5

func (p *Parts) several() bool {
	return slices.ContainsFunc(p.Messages, func(e core.Entry) bool {
		return e.Message.Author.ID != p.Messages[0].Message.Author.ID
	})
}

// last returns the newest entry that the turn answers.
func (p *Parts) last() *core.Entry { return &p.Messages[len(p.Messages)-1] }

// said returns the text of the input, and the parts that its author did not write: of all messages if one person wrote
// them; else only of the last, and the list of messages holds the others.
func (p *Parts) said() (text string, foreign []core.Foreign) {
	list := p.Messages
	if p.several() {
		list = list[len(list)-1:]
	}
	lines := make([]string, 0, len(list))
	for i := range list {
		m := &list[i].Message
		if m.Text != "" {
			lines = append(lines, m.Text)
		}
		foreign = append(foreign, m.Foreign...)
	}
	return strings.Join(lines, "\n"), foreign
}

// foreign writes texts that the author of a message did not write, each with what is known about its own author.
func (w *writer) foreign(place core.Path, list []core.Foreign) {
	if len(list) == 0 {
		return
	}
	w.list("others_words")
	for i := range list {
		w.open('{')
		w.text("kind", string(list[i].Kind))
		w.optional("from", list[i].From.Name)
		w.optional("usertag", w.marks.tag(place, list[i].From))
		w.time("at", list[i].Time)
		w.slot("text", list[i].Text, true)
		w.close('}')
	}
	w.close(']')
}

// eventDetails writes the details of an event other than a message.
func (w *writer) eventDetails(e *core.Event) {
	switch e.Kind {
	case core.KindPress:
		w.object("press")
		w.text("message_id", e.Target)
		w.text("data", e.Data)
		w.close('}')
	case core.KindCommand:
		if e.Command == nil {
			return
		}
		w.object("command")
		w.text("name", e.Command.Name)
		w.texts("args", e.Command.Args)
		w.close('}')
	case core.KindReminder, core.KindBeat, core.KindMembership:
		w.optional("data", e.Data)
	}
	w.number("count", int64(e.Count))
}

// heard writes the confidence of speech recognition.
func (w *writer) heard(m *core.Message) {
	if m.Heard > 0 {
		w.key("confidence")
		w.WriteString(strconv.FormatFloat(float64(min(m.Heard, 100))/100, 'f', -1, 64))
	}
}

// spoken marks a text as transcribed by speech recognition, which may be wrong.
func (w *writer) spoken(m *core.Message) {
	if m.Heard != 0 {
		w.raw("spoken", "true")
		w.heard(m)
	}
}

// source writes where the message comes from, and all ids if there are several messages.
func (p *Parts) source(w *writer, m *core.Message) {
	w.object("source")
	w.text("interface_path", m.Path.String())
	w.text("message_id", m.ID)
	if len(p.Messages) > 1 {
		w.list("message_ids")
		for i := range p.Messages {
			w.item(p.Messages[i].Message.ID)
		}
		w.close(']')
	}
	w.text("username", m.Author.Name)
	w.optional("usertag", w.marks.tag(m.Path, m.Author))
	w.text("interface", p.Interface)
	w.close('}')
}

// speakers lists the messages if several people wrote them, or if there are many.
func (p *Parts) speakers(w *writer) {
	if !p.several() && len(p.Messages) <= manyWait {
		return
	}
	w.list("messages")
	for i := range p.Messages {
		m := &p.Messages[i].Message
		w.open('{')
		w.text("from", m.Author.Name)
		w.optional("usertag", w.marks.Of(m.Path, m.Author))
		w.slot("text", m.Text, false)
		w.spoken(m)
		w.foreign(m.Path, m.Foreign)
		w.text("message_id", m.ID)
		w.close('}')
	}
	w.close(']')
}

// media describes the attachments: the first image and the first video under their own keys, all others in the list.
func (p *Parts) media(w *writer, l llm.Limits) {
	var image, video *core.Attachment
	var rest []*core.Attachment
	for i := range p.Messages {
		list := p.Messages[i].Message.Attachments
		for j := range list {
			switch a := &list[j]; {
			case a.Kind == core.MediaImage && image == nil:
				image = a
			case a.Kind == core.MediaVideo && video == nil:
				video = a
			default:
				rest = append(rest, a)
			}
		}
	}
	if image != nil {
		w.key("image")
		p.attachment(w, l, image)
	}
	if len(rest) > 0 {
		w.list("attachments")
		for _, a := range rest {
			p.attachment(w, l, a)
		}
		w.close(']')
	}
	if video != nil {
		w.key("video")
		p.attachment(w, l, video)
	}
}

// attachment describes one file. Its data, if any, is sent outside of the JSON.
func (p *Parts) attachment(w *writer, l llm.Limits, a *core.Attachment) {
	w.open('{')
	w.text("kind", string(a.Kind))
	w.optional("name", a.Name)
	w.optional("mime", a.MIME)
	w.number("size", a.Size)
	w.number("width", int64(a.Width))
	w.number("height", int64(a.Height))
	w.number("seconds", int64(a.Duration.Round(1e9).Seconds()))
	if _, ok := p.Pictures[a.Ref]; ok && l.Vision && a.Kind == core.MediaImage {
		w.raw("shown", "true")
	}
	if _, ok := p.Sounds[a.Ref]; ok && l.Hearing && a.Kind == core.MediaAudio {
		w.raw("heard", "true")
	}
	if p.Texts[a.Ref] != "" {
		w.slot("text", p.Texts[a.Ref], true)
	}
	w.close('}')
}

// attached returns the files of one kind whose data the engine gets besides the text, in the order of the text.
func (p *Parts) attached(kind core.Media, files map[string]llm.File) (list []llm.File) {
	for i := range p.Messages {
		for _, a := range p.Messages[i].Message.Attachments {
			file, ok := files[a.Ref]
			if ok && a.Kind == kind {
				list = append(list, file)
			}
		}
	}
	return list
}

// quote returns what the newest reply among the messages replies to; nil if none is a reply.
func (p *Parts) quote() *core.Quote {
	for i := range slices.Backward(p.Messages) {
		q := p.Messages[i].Message.ReplyTo
		if q != nil {
			return q
		}
	}
	return nil
}

func (w *writer) reply(place core.Path, q *core.Quote) {
	if q == nil {
		return
	}
	w.object("reply_message_id")
	w.text("message_id", q.ID)
	text := q.Text
	if q.From.Bot {
		text = llm.Unthink(text)
	}
	if text != "" {
		w.slot("text", text, false)
	}
	w.time("timestamp", q.Time)
	if q.From != (core.Author{}) {
		w.object("from")
		w.text("username", q.From.Name)
		w.optional("usertag", w.marks.tag(place, q.From))
		w.close('}')
	}
	w.close('}')
}
