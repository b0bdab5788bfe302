package turn

import (
	"context"
	"slices"
	"strings"

	"synthbot/core"
)

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
