package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/txt"
)

// Speech turns voice messages into text and back. The zero value leaves them to the model.
type Speech struct {
	// Hear transcribes a voice message. percent is the confidence (see core.Message.Heard). It blocks until the text
	// is known or ctx ends. A *core.Error has a text for the author. Nil: there is no speech recognition.
	Hear func(ctx context.Context, s core.Scene, sound core.Attachment) (text string, percent int, err error)
	// Overhears says that voice messages are also transcribed if only the text can tell whether they are for the bot.
	Overhears bool
	// Deaf says that the models cannot listen to sounds either.
	Deaf bool
	// Speak returns a text as a voice message for these people; without Data if the text should
	// not be spoken. Nil: nothing is spoken.
	Speak func(ctx context.Context, place core.Path, people []core.Path, text string) (core.Upload, error)
	// Always says that all answers are spoken, not only those to voice messages.
	Always bool
}

// Texts for authors of voice messages that were not transcribed.
const (
	deafText    = "I'm sorry, I can't listen to voice messages here. Could you write it to me instead?"
	unheardText = "I'm sorry, I couldn't listen to your voice message just now. Could you write it, or try again later?"
)

// deafDepth is how many of the latest entries are searched for deafText, which is sent once a day.
const deafDepth = 500

// sound returns the file of a voice message that its author recorded; nil if the message has none.
func sound(m *core.Message) *core.Attachment {
	if !m.Voice {
		return nil
	}
	return anySound(m)
}

// forwardedSound returns the file of a forwarded voice message, and its part of Foreign; nil if there is none.
func forwardedSound(m *core.Message) (*core.Attachment, *core.Foreign) {
	i := slices.IndexFunc(m.Foreign, func(o core.Foreign) bool { return o.Voice })
	if i < 0 {
		return nil, nil
	}
	m.Foreign = slices.Clone(m.Foreign)
	return anySound(m), &m.Foreign[i]
}

func anySound(m *core.Message) *core.Attachment {
	i := slices.IndexFunc(m.Attachments, func(a core.Attachment) bool {
		return a.Ref != "" && (a.Kind == core.MediaAudio || a.Kind == core.MediaVideo)
	})
	if i < 0 {
		return nil
	}
	return &m.Attachments[i]
}

// heard is the result of transcribing a voice message.
type heard struct {
	edit   bool   // the message was edited: it has the text now
	excuse string // what to tell the author instead; "": nothing
}

// hear transcribes voice messages before anything else is decided about them, and stores the
// texts. It drops messages that turn out not to be for the bot.
func (s *Speech) hear(ctx context.Context, t *turn) error {
	var all sync.WaitGroup
	voices, found := false, make([]heard, len(t.messages))
	for i := range t.messages {
		m := &t.messages[i].Message
		forwarded, foreign := forwardedSound(m)
		voices = voices || sound(m) != nil
		switch {
		case m.Heard != 0:
		case sound(m) != nil:
			all.Go(func() { found[i] = s.recognise(ctx, t, m) })
		case forwarded != nil && s.Hear != nil:
			voices = true
			all.Go(func() { found[i] = s.recogniseForwarded(ctx, t, m, forwarded, foreign) })
		}
	}
	all.Wait()
	if !voices || ctx.Err() != nil {
		return ctx.Err()
	}
	b, excuses := core.Batch{}, make(map[string]string) // by the ids of messages
	for i, f := range found {
		edit := core.Event{Kind: core.KindEdit, Message: t.messages[i].Message}
		if f.edit && t.setup.mayChange(&edit) {
			b.Change = append(b.Change, edit)
		}
		if f.excuse != "" {
			excuses[edit.Message.ID] = f.excuse
		}
	}
	if len(b.Change) > 0 {
		if err := t.turns.store.Commit(ctx, &b); err != nil {
			return fmt.Errorf("%w: %w", core.ErrUnwritten, err)
		}
	}
	t.input.dropUnwanted() // gates know the texts only now
	t.input.dropOverheard()
	return t.input.answerUnheard(ctx, excuses)
}

// recognise adds the text of a voice message, after its caption.
func (s *Speech) recognise(ctx context.Context, t *turn, m *core.Message) (h heard) {
	if s.Hear == nil {
		if s.Deaf {
			h.excuse = deafText
		}
		return h
	}
	text, percent, err := s.understand(ctx, t, m, sound(m))
	if isLimit(err) {
		return h // the model call is refused, too, which notifies the author
	}
	if err != nil {
		level := slog.LevelWarn
		said, ok := errors.AsType[*core.Error](err)
		if ok && said.Text != "" && said.Err == nil {
			level = slog.LevelInfo // only the author can do something about it
		} else if !ok || said.Text == "" {
			said = core.Errorf(core.Temporary, unheardText)
		}
		t.log.Log(ctx, level, "voice message not transcribed", "id", m.ID, "err", err)
		return heard{excuse: said.Text}
	}
	m.Caption(text)
	m.Heard = percent
	return heard{edit: true}
}

// recogniseForwarded sets the text of a forwarded voice message. These are the words of others: they neither
// address the bot nor give it orders. Without a text, the model still sees that the message exists.
func (s *Speech) recogniseForwarded(
	ctx context.Context, t *turn, m *core.Message, a *core.Attachment, o *core.Foreign,
) heard {
	text, percent, err := s.understand(ctx, t, m, a)
	if err != nil {
		t.log.Info("forwarded voice message not transcribed", "id", m.ID, "err", err)
		return heard{}
	}
	m.Caption("") // the transcript is not part of the author's text
	o.Text, m.Heard = txt.Clip(strings.TrimSpace(o.Text+"\n"+text), core.MaxText/4), percent
	return heard{edit: true}
}

func (s *Speech) understand(
	ctx context.Context, t *turn, m *core.Message, a *core.Attachment,
) (text string, percent int, err error) {
	scene := core.Scene{
		Path: t.path, Private: m.Private, Author: m.Author, Locale: m.Locale, Now: t.setup.Clock(),
		Recent: t.input.parts.History,
	}
	err = errors.New("it panicked")
	guard(t.log, "speech", func() { text, percent, err = s.Hear(ctx, scene, *a) })
	return text, percent, err
}

// dropOverheard drops voice messages whose text is not for the bot. They become history for the other messages.
func (in *input) dropOverheard() {
	t := in.turn
	here := t.setup.Settings(t.path)
	t.messages = slices.DeleteFunc(t.messages, func(e core.Entry) bool {
		m := &e.Message
		if e.Kind != core.KindMessage || sound(m) == nil || e.Reply != "" || m.Author.Bot {
			return false
		}
		t.setup.findName(m)
		drop := !t.setup.isForBot(m, &here)
		if drop && e.Spoken() {
			in.parts.History = append(in.parts.History, e)
		}
		return drop
	})
}

// answerUnheard decides how to reply to voice messages without a text. If there is more to answer, the
// model mentions it; else the excuse is the reply. deafText is sent once a day in a place.
func (in *input) answerUnheard(ctx context.Context, excuses map[string]string) error {
	t, why, more := in.turn, "", false
	for i := range t.messages {
		m := &t.messages[i].Message
		text, ok := excuses[m.ID]
		why = cmp.Or(why, text)
		more = more || !ok || m.Text != ""
	}
	switch {
	case why == "":
		return nil
	case more:
		in.unheard = why
		return nil
	}
	read := func(v core.View) ([]core.Entry, error) { return v.Last(t.path, deafDepth) }
	last, err := core.Read(ctx, t.turns.store, read)
	isKnown := func(e core.Entry) bool {
		return e.Self && e.Message.Text == deafText && t.setup.Clock().Sub(e.Message.Time) < 24*time.Hour
	}
	if t.unasked() || why == deafText && slices.ContainsFunc(last, isKnown) {
		t.messages = nil
	} else {
		t.messages[0].Reply = why
	}
	return err
}

// answerAloud also sends the turn's messages to its place as one voice message, if that is wanted.
// A failure is only logged, because the text was sent.
func (s *Speech) answerAloud(ctx context.Context, t *turn) {
	voice := func(e core.Entry) bool { return e.Message.Voice }
	first := &t.messages[0]
	if first.Reply != "" || first.Kind == core.KindCommand || t.who.Mute ||
		!s.Always && !slices.ContainsFunc(t.messages, voice) {
		return
	}
	carrier := t.setup.Places.Carrier(t.path)
	step := core.Key{Turn: t.journal.id, Round: voiceRound, Step: 1}
	part := step
	part.Part = 1
	_, begun := t.journal.Find(part)
	text := t.results.written()
	if carrier == nil || begun || text == "" {
		return
	}
	guard(t.log, "speech", func() {
		f, err := s.Speak(ctx, t.path, t.causers(), text)
		if err == nil && len(f.Data) > 0 {
			err = carrier.SendFile(ctx, t.journal.Parts(step), 1, core.Sent{Path: t.path}, f)
		}
		if err != nil && ctx.Err() == nil {
			t.log.Warn("voice message not sent", "err", err)
		}
	})
}

// written returns the turn's messages to its place, a paragraph each.
func (r *results) written() string {
	var texts []string
	for i := range r.all {
		d := &r.all[i]
		text, to := r.turn.snapshot.MessageOf(&d.Call, r.turn.path)
		if text != "" && to == r.turn.path && d.Progress == core.ProgressDone {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n\n")
}
