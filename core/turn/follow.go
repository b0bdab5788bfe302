package turn

import (
	"bytes"
	"encoding/json"
	"slices"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/prompt"
)

// worthWords reports whether what came of the round goes back to the model, and
// prepares the next round's prompt for it.
func (t *turn) worthWords() bool {
	if t.fixed() { // there is no model to tell it, and what was done is not to be done again
		return false
	}
	var outputs []prompt.Output
	unheard := t.unheard()
	for _, d := range t.outcome {
		if words(&d) && !t.mended(&d) || unheard && d.Progress == core.Done {
			outputs = append(outputs, prompt.Output{
				Action: d.Action, Payload: d.Call.Payload, Progress: d.Progress, Output: d.Output, Text: d.Outcome.Text,
			})
		}
	}
	if len(outputs) == 0 {
		return false
	}
	t.parts.Kind = prompt.Delivery
	t.parts.Outputs = append(t.parts.Outputs, outputs...)
	t.parts.Said = t.said()
	return true
}

// words reports whether a step's outcome is for the model to tell about. Of a message
// that may not have arrived, the turn itself tells.
func words(d *action.Done) bool {
	switch d.Progress {
	case core.Done:
		return len(d.Output) > 0
	case core.Failed, core.Unknown, core.Skipped:
		_, control := action.Control(d.Action)
		return d.Outcome.Text != "" && !control && d.Outcome.Kind != core.Unsure
	}
	return false
}

// mended reports whether what was planned to be said here for the case that a step
// fails was said: then there is nothing to add.
func (t *turn) mended(d *action.Done) bool {
	return slices.ContainsFunc(t.outcome, func(f action.Done) bool {
		def, ok := t.snapshot.Resolve(f.Action)
		var to struct {
			Path core.Path `json:"interface_path"`
		}
		return ok && def.IsMessage() && f.For == d.Step &&
			json.Unmarshal(f.Call.Payload, &to) == nil && (to.Path.IsZero() || to.Path == t.path)
	})
}

// unheard reports whether somebody waits for a word and nothing was said or shown
// to him: what was done, he does not know.
func (t *turn) unheard() bool {
	first := t.messages[0].Kind
	if t.unasked() || t.inDoubt() || first == core.KindContinue || first == core.KindPress || len(t.said()) > 0 {
		return false
	}
	return !slices.ContainsFunc(t.finished, t.shows)
}

// shows reports whether people see what became of a step: the platform shows it,
// or it was to keep silent.
func (t *turn) shows(d action.Done) bool {
	if _, control := action.Control(d.Action); control || d.Progress == core.Pending || d.Outcome.Result.Shown {
		return true
	}
	def, ok := t.snapshot.Resolve(d.Action)
	if !ok || d.Progress != core.Done {
		return false
	}
	_, platform := t.snapshot.Resolve(core.MessagePrefix + def.Owner)
	return platform
}

// anew leaves out of a plan what was done in an earlier round, to the letter: a
// model that repeats itself does nothing twice.
func (t *turn) anew(p core.Plan) core.Plan {
	p.Steps = slices.DeleteFunc(slices.Clone(p.Steps), func(s core.Step) bool {
		return slices.ContainsFunc(t.finished, func(d action.Done) bool {
			return d.Progress == core.Done && d.Action == s.Type && bytes.Equal(d.Call.Payload, s.Payload)
		})
	})
	return p
}

// called reports whether the turn called the action in an earlier round.
func (t *turn) called(name string) bool {
	return slices.ContainsFunc(t.finished, func(d action.Done) bool { return d.Action == name })
}

// said is what the turn sent so far.
func (t *turn) said() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	texts := make([]string, len(t.sent))
	for i, s := range t.sent {
		texts[i] = s.Text
	}
	return texts
}
