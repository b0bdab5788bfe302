package action

import (
	"encoding/json"
	"testing"

	"synthbot/core"
)

// TestRepeats: what a plan says twice is said once, and what only looks like it is
// not lost.
func TestRepeats(t *testing.T) {
	var w world
	s := w.catalogue(t)
	says := func(text string) string {
		return `message_telegram{"interface_path":"telegram/-100/7","priority":"normal","text":"` + text + `"}`
	}
	perhaps := func(s *core.Step) {
		s.Conditions = []core.Condition{{Field: "author.rank", Operator: "eq", Value: json.RawMessage(`"admin"`)}}
	}
	for name, tc := range map[string]struct {
		plan core.Plan
		want []string
	}{
		"a response within a word of a message": {
			core.Plan{Response: "Hi", Steps: []core.Step{step("message", `{"text":"Which one? This?"}`)}}, []string{says("Hi"), says("Which one? This?")}},
		"a response that begins a message": {
			core.Plan{Response: "hi", Steps: []core.Step{step("message", `{"text":"Hi, Jay!"}`)}}, []string{says("Hi, Jay!")}},
		"a response that a message may repeat": {
			core.Plan{Response: "Hi", Steps: []core.Step{step("message", `{"text":"Hi!"}`, perhaps)}}, []string{says("Hi"), says("Hi!")}},
		"a message twice": {
			core.Plan{Steps: []core.Step{step("message", `{"text":"Hi"}`), step("message_telegram", `{"message":"Hi"}`), step("message", `{"text":"Hi!"}`)}},
			[]string{says("Hi"), says("Hi!")}},
	} {
		t.Run(name, func(t *testing.T) {
			plan, faults := s.Check(tc.plan, by(0))
			same2(t, "outcome", outcome(plan, faults), tc.want)
		})
	}
}
