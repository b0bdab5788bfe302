package turn

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/plan"
	"synthbot/core/prompt"
	"synthbot/core/txt"
	"synthbot/core/watch"
)

// maxSummary is how many characters of outputs a user is shown.
const maxSummary = 1500

// results holds the results of a turn's rounds.
type results struct {
	turn      *turn
	latest    []action.StepResult // of the latest round
	all       []action.StepResult
	about     core.State    // the state of the conversation that the plans report
	strangers bool          // a plan was made after reading what strangers wrote
	data      string        // of a plugin, stored with its messages in the log
	end       watch.TurnEnd // as far as it is known; the intent is that of the latest plan that names one
}

func (r *results) add(p core.Plan, done []action.StepResult) {
	r.latest = done
	if len(r.all) > 0 {
		done = append(r.all, done...)
	}
	r.all = slices.Clip(done)
	if p.Intent != "" {
		r.end.Intent, r.end.Confidence = p.Intent, 0
	}
	if p.Confidence != nil {
		r.end.Confidence = *p.Confidence
	}
	now := r.turn.setup.Clock()
	r.about = plan.Merge(r.about, now, now, 0, p.Context)
}

// outputs returns the results of the latest round that go back to the model. Messages that may not have
// arrived are left out: deliver mentions them.
func (r *results) outputs() (outputs []prompt.Output) {
	silent := r.needsAcknowledgement()
	for _, d := range r.latest {
		hasWords := false
		switch d.Progress {
		case core.ProgressDone:
			hasWords = len(d.Output) > 0
		case core.ProgressFailed, core.ProgressUnknown, core.ProgressSkipped:
			_, control := action.Control(d.Action)
			hasWords = d.Outcome.Text != "" && !control && d.Outcome.Kind != core.Unsure
		}
		if hasWords && !r.isReplaced(&d) || silent && d.Progress == core.ProgressDone {
			outputs = append(outputs, prompt.Output{
				Action: d.Action, Payload: d.Call.Payload, Progress: d.Progress, Output: d.Output, Text: d.Outcome.Text,
			})
		}
	}
	return outputs
}

// isReplaced reports whether the plan's message for the failure of this step was sent here. The model need not say it.
func (r *results) isReplaced(d *action.StepResult) bool {
	return slices.ContainsFunc(r.latest, func(f action.StepResult) bool {
		_, to := r.turn.snapshot.MessageOf(&f.Call, r.turn.path)
		return to == r.turn.path && f.For == d.Step
	})
}

// cannotWrite reports whether the platform does not let the bot write in the turn's place.
func (r *results) cannotWrite() bool {
	return slices.ContainsFunc(r.latest, func(d action.StepResult) bool {
		_, to := r.turn.snapshot.MessageOf(&d.Call, r.turn.path)
		refused := d.Refused || d.Progress == core.ProgressFailed
		return to == r.turn.path && refused && d.Outcome.Kind == core.Forbidden
	})
}

// worked reports whether anything was done, or waits to be confirmed.
func (r *results) worked() bool {
	return slices.ContainsFunc(r.all, func(d action.StepResult) bool {
		return d.Progress == core.ProgressDone || d.Progress == core.ProgressPending
	})
}

func (r *results) did(name string) bool {
	return slices.ContainsFunc(r.all, func(d action.StepResult) bool {
		return d.Action == name && d.Progress == core.ProgressDone
	})
}

// updateAttention updates the attention to a group: whom the bot answered, or that it left the conversation.
func (r *results) updateAttention(spoke bool) {
	t := r.turn
	now := t.setup.Clock()
	author, _ := t.who.Author()
	switch {
	case r.hasLeft():
		t.turns.attention.with(t.path, now, func(e *placeAttention) { e.to, e.left = "", true })
	case spoke:
		t.turns.attention.with(t.path, now, func(e *placeAttention) { e.answered, e.to = now, author.ID })
	}
}

// hasLeft reports whether the bot left the conversation. Ignoring an overheard message counts only
// if the bot had answered its author before.
func (r *results) hasLeft() bool {
	t, to := r.turn, ""
	if !r.did(action.Ignore) || !t.unasked() {
		return r.did(action.Ignore)
	}
	t.turns.attention.with(t.path, t.setup.Clock(), func(e *placeAttention) { to = e.to })
	author, _ := t.who.Author()
	return to != "" && to == author.ID
}

// inDoubt reports whether a message may not have arrived, and is not sent again.
func (r *results) inDoubt() bool {
	return slices.ContainsFunc(r.all, func(d action.StepResult) bool { return d.Outcome.Kind == core.Unsure })
}

// needsAcknowledgement reports whether somebody waits for a reply and nothing was sent or shown to them.
func (r *results) needsAcknowledgement() bool {
	first := r.turn.messages[0].Kind
	if first == core.KindContinue || first == core.KindPress || r.turn.unasked() || r.inDoubt() {
		return false
	}
	return len(r.turn.journal.texts()) == 0 && !slices.ContainsFunc(r.all, r.isVisible)
}

// isVisible reports whether a step needs no message: the platform shows its result, or it only controls the turn.
func (r *results) isVisible(d action.StepResult) bool {
	_, control := action.Control(d.Action)
	if control || d.Progress == core.ProgressPending || d.Outcome.Result.Shown {
		return true
	}
	def, ok := r.turn.snapshot.Resolve(d.Action)
	if !ok || d.Progress != core.ProgressDone {
		return false
	}
	_, platform := r.turn.snapshot.Message(def.Owner)
	return platform
}

// dropRepeated removes steps from a plan that were done in an earlier round with the same payload.
func (r *results) dropRepeated(p core.Plan) core.Plan {
	p.Steps = slices.DeleteFunc(slices.Clone(p.Steps), func(s core.Step) bool {
		return slices.ContainsFunc(r.all, func(d action.StepResult) bool {
			return d.Progress == core.ProgressDone && d.Action == s.Type && bytes.Equal(d.Call.Payload, s.Payload)
		})
	})
	return p
}

// repeatedBy reports whether a plan only repeats steps of earlier rounds, although there were outputs: the model
// overlooked them.
func (r *results) repeatedBy(p core.Plan) bool {
	hasOutput := func(d action.StepResult) bool { return len(d.Output) > 0 }
	return len(p.Steps) > 0 && len(r.dropRepeated(p).Steps) == 0 && slices.ContainsFunc(r.all, hasOutput)
}

// summary returns the outputs of the turn's actions as a text for users, for when the model sent none.
func (r *results) summary() string {
	var texts []string
	for i := range r.all {
		text := r.all[i].Words()
		if text != "" {
			texts = append(texts, text)
		}
	}
	return cmp.Or(txt.Clip(strings.Join(texts, "\n"), maxSummary), doneText)
}

// report returns the summary if any action was done that sends no message; "" if none was.
func (r *results) report() string {
	isDone := func(d action.StepResult) bool {
		def, ok := r.turn.snapshot.Resolve(d.Action)
		return ok && d.Progress == core.ProgressDone && !def.IsMessage()
	}
	if !slices.ContainsFunc(r.all, isDone) {
		return ""
	}
	return r.summary()
}
