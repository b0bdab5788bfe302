package plugintest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"path"
	"slices"
	"strconv"
	"strings"

	"synthbot/core"
	"synthbot/core/llm"
)

// happen executes a line by which somebody says or does something.
func (s *Script) happen(l *line) {
	e := s.event(l)
	s.here = e.Message.Path
	s.receive(e)
	if e.Kind == core.KindMessage {
		s.last[e.Message.Author.ID+s.here.String()] = e.Message.ID
	}
	if !l.has("presses") {
		s.speaker = l
	}
}

func (s *Script) receive(e core.Event) {
	if s.world == nil {
		s.Fatalf("the bot is not alive")
	}
	if err := s.world.turns.Inbox().Receive(context.Background(), e); err != nil {
		s.Fatalf("not received: %v", err)
	}
	s.settle()
}

// message returns the message of a line's event.
func (s *Script) message(l *line) core.Message {
	s.count++
	id := strings.ToLower(l.name)
	m := core.Message{
		Path: core.MustPath("room/1"), ID: fmt.Sprintf("m%d", s.count), Time: s.Now(), Text: l.arg,
		Author: core.Author{ID: id, Name: l.name}, Addressed: core.AddressedMention,
	}
	var err error
	if _, m.Private = l.is("private"); m.Private {
		m.Addressed = core.AddressedDirect
		m.Path, err = core.MakePath("room", id)
	}
	if l.place != "" {
		m.Path, err = core.ParsePath(l.place)
	}
	if err != nil {
		s.Fatalf("%v", err)
	}
	if _, ok := l.is("aside"); ok {
		m.Addressed = ""
	}
	if _, ok := l.is("moderator"); ok {
		m.Author.Rank = core.RankModerator
	}
	_, m.Author.Bot = l.is("bot")
	_, m.Voice = l.is("voice")
	m.Locale, _ = l.is("locale")
	return m
}

func (s *Script) event(l *line) core.Event {
	e := core.Event{Kind: core.KindMessage, Message: s.message(l)}
	m := &e.Message
	ofBot, his := s.last["bot"+m.Path.String()], s.last[m.Author.ID+m.Path.String()]
	switch to, ok := l.is("reply"); {
	case ok && to != "":
		to = strings.ToLower(to)
		m.ReplyTo = &core.Quote{ID: s.last[to+m.Path.String()], From: core.Author{ID: to}}
	case ok:
		m.ReplyTo, m.Addressed = &core.Quote{ID: ofBot, Text: s.heard[ofBot], From: core.Author{Name: "Aria", Bot: true}}, core.AddressedReply
	}
	for _, how := range l.how {
		if name, ok := strings.CutPrefix(how, "file "); ok {
			m.Attachments = append(m.Attachments, s.attachment(name))
		}
	}
	if l.has("forwards") {
		m.Text, m.Foreign = "", []core.Foreign{{Kind: core.ForeignForward, From: core.Author{Name: "Mallory"}, Text: m.Text}}
	}
	switch {
	case l.has("edit"):
		e.Kind, m.ID = core.KindEdit, his
	case l.has("delete"):
		e.Kind, e.Target, m.ID, m.Text = core.KindDeletion, his, "", ""
	case l.has("react"):
		e.Kind, e.Target, e.Data, m.ID, m.Text = core.KindReaction, ofBot, m.Text, "", ""
	case l.has("presses"):
		return s.button(e, m.Text)
	case strings.HasPrefix(m.Text, "/"):
		words := strings.Fields(m.Text[1:])
		if len(words) > 0 {
			e.Kind, e.Command = core.KindCommand, &core.Command{Name: words[0], Args: words[1:]}
		}
	}
	return e
}

func (l *line) has(way string) bool {
	_, ok := l.is(way)
	return ok
}

// button turns an event into a press of the newest button with a label.
func (s *Script) button(e core.Event, label string) core.Event {
	choices := s.room(e.Message.Path.Interface()).Choices()
	ids := slices.Collect(maps.Keys(choices))
	number := func(id string) int {
		n, _ := strconv.Atoi(id[strings.LastIndexByte(id, '-')+1:])
		return n
	}
	slices.SortFunc(ids, func(a, b string) int { return number(b) - number(a) })
	var there []string
	for _, id := range ids {
		for _, c := range choices[id] {
			if there = append(there, c.Label); c.Label == label {
				e.Kind, e.Target, e.Data, e.Message.Text = core.KindPress, id, c.Data, ""
				return e
			}
		}
	}
	s.Fatalf("there is no button %q, but %q", label, there)
	return e
}

func (s *Script) attachment(name string) core.Attachment {
	data, ok := s.content(name)
	if !ok {
		s.Fatalf("the script has no file %q", name)
	}
	kind := mime.TypeByExtension(path.Ext(name))
	a := core.Attachment{Kind: core.MediaFile, Name: name, MIME: kind, Size: int64(len(data)), Ref: name}
	for _, media := range []core.Media{core.MediaImage, core.MediaAudio, core.MediaVideo} {
		if strings.HasPrefix(kind, string(media)+"/") {
			a.Kind = media
		}
	}
	return a
}

// answer answers the model's question.
func (s *Script) answer() {
	if !s.until(func() bool { return s.model.pending() > 0 }) {
		s.listen()
		s.Fatalf("the model is not asked anything:\n%s", s.state())
	}
	s.model.say(s.answerOf(s.line))
	s.settle()
}

func (s *Script) answerOf(l *line) any {
	plan := map[string]any{"response": l.arg}
	switch l.name {
	case "model":
		return llm.Answer{Engine: "script", Text: l.arg}
	case "fails":
		err := failure(l.arg)
		if err == nil {
			s.Fatalf("%q is no llm.ErrorKind", l.arg)
		}
		return err
	case "does":
		name, payload, _ := strings.Cut(l.arg, " ")
		step := map[string]any{"type": name}
		if payload = strings.TrimSpace(payload); payload != "" {
			step["payload"] = json.RawMessage(payload)
		}
		plan = map[string]any{"actions": []any{step}}
	}
	text, err := json.Marshal(plan)
	if err != nil {
		s.Fatalf("the payload is no JSON: %v", err)
	}
	return llm.Answer{Engine: "script", Text: string(text)}
}
