package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"synthbot/core"
)

// words sees to it that what is to be said to people is no plan: some models write
// one into the other. A text in the inner one is taken; where there is none, it is
// a fault, and not said.
func (r *reader) words() {
	p := &r.plan
	if inner, ok := inside(p.Response); ok {
		if p.Response = inner.text("response"); p.Response == "" {
			r.fault("response", "is a plan itself; write what you say to people there, and actions beside it")
		}
	}
	i := -1
	p.Steps = slices.DeleteFunc(p.Steps, func(s core.Step) bool {
		i++
		if !strings.HasPrefix(s.Type, core.MessagePrefix) || !speaksAPlan(s.Payload) {
			return false
		}
		r.fault(fmt.Sprintf("actions[%d].payload.text", i), "is a plan; write what you say to people there")
		return true
	})
}

// speaksAPlan reports whether the text of a message is a plan.
func speaksAPlan(payload json.RawMessage) bool {
	var said struct{ Text, Message string }
	if json.Unmarshal(payload, &said) != nil {
		return false // what is wrong with it is told by its schema
	}
	_, text := inside(said.Text)
	_, message := inside(said.Message)
	return text || message
}

// inside reads a text that is a plan as a whole, in a fence or not.
func inside(text string) (f fields, ok bool) {
	text = strings.TrimSpace(text)
	if body, fenced := strings.CutPrefix(text, "```"); fenced {
		_, body, _ = strings.Cut(body, "\n")
		text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(body), "```"))
	}
	f, err := object([]byte(text))
	if err != nil {
		return f, false
	}
	step := (f.has("type") || f.has("action")) && slices.ContainsFunc(payloadKeys, f.has) // a type alone is much else, too
	return f, f.has("response") || f.has("actions") || step
}
