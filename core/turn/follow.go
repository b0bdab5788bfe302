package turn

import (
	"slices"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/prompt"
)

// worthWords reports whether what came of the round goes back to the model, and
// prepares the next round's prompt for it.
func (t *turn) worthWords(round uint16, p core.Plan) bool {
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
	t.parts.Actions = slices.DeleteFunc(slices.Clone(t.parts.Actions), func(a prompt.Action) bool {
		return !t.speaks(a.Name) && (round+1 >= lastRound || called(p, a.Name))
	})
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

// speaks reports whether the action is the place's message action.
func (t *turn) speaks(name string) bool {
	d, ok := t.snapshot.Message(t.path.Interface())
	return ok && d.Name == name
}

func called(p core.Plan, name string) bool {
	return slices.ContainsFunc(p.Steps, func(s core.Step) bool { return s.Type == name })
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
