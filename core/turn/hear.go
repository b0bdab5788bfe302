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

// Speech is what is done with voice messages. The zero value leaves them to the model.
type Speech struct {
	// Hear returns what the sound of a voice message says, and how sure that is, in percent
	// (see core.Message.Heard). It blocks until that is known or ctx ends. A *core.Error has a
	// text for the author. Nil: there is no speech recognition.
	Hear func(ctx context.Context, s core.Scene, sound core.Attachment) (text string, percent int, err error)
	// Overhears says that Hear is also asked where only the words can tell whether a message is
	// for the bot.
	Overhears bool
	// Deaf says that the models cannot hear either.
	Deaf bool
	// Speak returns a voice message that says a text to these people; without Data if the
	// text is not to be spoken. Nil: nothing is spoken.
	Speak func(ctx context.Context, place core.Path, people []core.Path, text string) (core.Upload, error)
	// Always says that all answers are spoken, not only those to voice messages.
	Always bool
}

// Texts for authors of voice messages that are not understood.
const (
	deaf = "I'm sorry, I can't listen to voice messages here. Could you write it to me instead?"
	dull = "I'm sorry, I couldn't listen to your voice message just now. Could you write it, or try again later?"
)

// deafDepth is among how many latest entries the bot looks whether it said today that it is
// deaf.
const deafDepth = 500

// sound returns the sound of a voice message of its author; nil if the message has none.
func sound(m *core.Message) *core.Attachment {
	if !m.Voice {
		return nil
	}
	return anySound(m)
}

// forwardedSound returns the sound of a forwarded voice message, and what it is to the message;
// nil if there is none.
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

// hearing is how a turn hears the voice messages that it answers.
type hearing struct {
	*turn
	mu      sync.Mutex
	heard   []core.Event      // edits: what they say
	unheard map[string]string // what to tell the author instead, by the message's id
}

// hear writes down what voice messages say, before anything else is decided about them. It
// leaves out those that turn out not to be for the bot.
func (h *hearing) hear(ctx context.Context) error {
	var all sync.WaitGroup
	voices := false
	for i := range h.messages {
		m := &h.messages[i].Message
		forwarded, foreign := forwardedSound(m)
		switch {
		case m.Heard != 0:
			voices = voices || sound(m) != nil
		case sound(m) != nil:
			voices = true
			all.Go(func() { h.recognise(ctx, m) })
		case forwarded != nil && h.setup.Prompt.Speech.Hear != nil:
			all.Go(func() { h.recogniseForwarded(ctx, m, forwarded, foreign) })
		}
	}
	all.Wait()
	if !voices && len(h.heard) == 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	if len(h.heard) > 0 {
		if err := h.turns.store.Commit(ctx, &core.Batch{Change: h.heard}); err != nil {
			return fmt.Errorf("%w: %w", core.ErrUnwritten, err)
		}
	}
	h.messages = h.setup.wanted(h.messages) // gates know the words only now
	h.dropOverheard()
	return h.answerUnheard(ctx)
}

// recognise sets the text of a voice message. A caption stays in front of it.
func (h *hearing) recognise(ctx context.Context, m *core.Message) {
	speech := &h.setup.Prompt.Speech
	if speech.Hear == nil {
		if speech.Deaf {
			h.fail(m, deaf)
		}
		return
	}
	text, percent, err := h.understand(ctx, m, sound(m))
	if isLimit(err) {
		return // the model is refused, too, and that is said once in a while
	}
	if err != nil {
		level := slog.LevelWarn
		said, ok := errors.AsType[*core.Error](err)
		if ok && said.Text != "" && said.Err == nil {
			level = slog.LevelInfo // it is the author's matter
		} else if !ok || said.Text == "" {
			said = core.Errorf(core.Temporary, dull)
		}
		h.log.Log(ctx, level, "voice message not heard", "id", m.ID, "err", err)
		h.fail(m, said.Text)
		return
	}
	m.Caption(text)
	m.Heard = percent
	h.keep(m)
}

// recogniseForwarded sets the text of a forwarded voice message: words of others, which neither
// wake the bot nor give orders. If it is not understood, the model still sees that it is there.
func (h *hearing) recogniseForwarded(ctx context.Context, m *core.Message, a *core.Attachment, o *core.Foreign) {
	text, percent, err := h.understand(ctx, m, a)
	if err != nil {
		h.log.Info("forwarded voice message not heard", "id", m.ID, "err", err)
		return
	}
	o.Text, m.Heard = txt.Clip(strings.TrimSpace(o.Text+"\n"+text), core.MaxText/4), percent
	h.keep(m)
}

func (h *hearing) understand(
	ctx context.Context, m *core.Message, a *core.Attachment,
) (text string, percent int, err error) {
	scene := core.Scene{
		Path: h.path, Private: m.Private, Author: m.Author, Locale: m.Locale, Now: h.setup.Clock(),
		Recent: h.input.parts.History,
	}
	err = errors.New("it panicked")
	guard(h.log, "speech", func() { text, percent, err = h.setup.Prompt.Speech.Hear(ctx, scene, *a) })
	return text, percent, err
}

func (h *hearing) keep(m *core.Message) {
	edit := core.Event{Kind: core.KindEdit, Message: *m}
	if h.setup.mayChange(&edit) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.heard = append(h.heard, edit)
	}
}

func (h *hearing) fail(m *core.Message, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.unheard == nil {
		h.unheard = make(map[string]string)
	}
	h.unheard[m.ID] = text
}

// dropOverheard leaves out the voice messages that only waited to be heard. They are history
// for what is left.
func (h *hearing) dropOverheard() {
	here := h.setup.Settings(h.path)
	h.messages = slices.DeleteFunc(h.messages, func(e core.Entry) bool {
		m := &e.Message
		if e.Kind != core.KindMessage || sound(m) == nil || e.Reply != "" || m.Author.Bot {
			return false
		}
		h.setup.findName(m)
		drop := !h.setup.isForBot(m, &here)
		if drop && e.Spoken() {
			h.input.parts.History = append(h.input.parts.History, e)
		}
		return drop
	})
}

// answerUnheard decides what is said about voice messages that were not understood: the
// model says it if there is more to answer. That the bot is deaf is said once a day in a
// place.
func (h *hearing) answerUnheard(ctx context.Context) error {
	why, more := "", false
	for i := range h.messages {
		m := &h.messages[i].Message
		text, ok := h.unheard[m.ID]
		why = cmp.Or(why, text)
		more = more || !ok || m.Text != ""
	}
	switch {
	case why == "":
		return nil
	case more:
		h.input.unheard = why
		return nil
	}
	read := func(v core.View) ([]core.Entry, error) { return v.Last(h.path, deafDepth) }
	last, err := core.Read(ctx, h.turns.store, read)
	isKnown := func(e core.Entry) bool {
		return e.Self && e.Message.Text == deaf && h.setup.Clock().Sub(e.Message.Time) < 24*time.Hour
	}
	if h.unasked() || why == deaf && slices.ContainsFunc(last, isKnown) {
		h.messages = nil
	} else {
		h.messages[0].Reply = why
	}
	return err
}
