package turn

import (
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
	for _, d := range t.outcome {
		if words(&d) {
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

// words reports whether a step's outcome is for the model to tell about.
func words(d *action.Done) bool {
	switch d.Progress {
	case core.Done:
		return len(d.Output) > 0
	case core.Failed, core.Unknown, core.Skipped:
		_, control := action.Control(d.Action)
		return d.Outcome.Text != "" && !control
	}
	return false
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
