package action

import (
	"encoding/json"
	"strings"
	"testing"

	"synthbot/core"
)

// TestRepeats: a text that a plan repeats is sent once; a text that only looks like a repetition is
// kept.
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
		"a response within another word": {
			core.Plan{Response: "Hi", Steps: []core.Step{step("message", `{"text":"Him"}`)}}, []string{says("Hi"), says("Him")}},
		"a response within a number": {
			core.Plan{Response: "12", Steps: []core.Step{step("message", `{"text":"123, 312"}`)}}, []string{says("12"), says("123, 312")}},
		"a response within a word and by itself": {
			core.Plan{Response: "hi", Steps: []core.Step{step("message", `{"text":"This hi"}`)}}, []string{says("This hi")}},
		"a response before a letter": {
			core.Plan{Response: "Hi!", Steps: []core.Step{step("message", `{"text":"Hi!You"}`)}}, []string{says("Hi!You")}},
		"a response without an accent": {
			core.Plan{Response: "Cafe", Steps: []core.Step{step("message", `{"text":"Cafe\u0301"}`)}}, []string{says("Cafe"), says("Cafe\u0301")}},
		"a response that is signs": {
			core.Plan{Response: "?!", Steps: []core.Step{step("message", `{"text":"What?!"}`)}}, []string{says("What?!")}},
		"a response that is said elsewhere": {
			core.Plan{Response: "Hi", Steps: []core.Step{step("message", `{"text":"Hi","interface_path":"telegram/-100/7/8"}`)}},
			[]string{says("Hi"), strings.Replace(says("Hi"), "/7", "/7/8", 1)}},
		"a response in another action": {
			core.Plan{Response: "Hi", Steps: []core.Step{step("web_search", `{"text":"Hi"}`)}}, []string{says("Hi"), `web_search{"text":"Hi"}`}},
		"an action twice": {
			core.Plan{Steps: []core.Step{step("web_search", `{"text":"Hi"}`), step("web_search", `{"text":"Hi"}`)}},
			[]string{`web_search{"text":"Hi"}`, `web_search{"text":"Hi"}`}},
		"a conditional message": {
			core.Plan{Steps: []core.Step{step("message", `{"text":"Hi"}`), step("message", `{"text":"Hi"}`, perhaps)}}, []string{says("Hi"), says("Hi")}},
		"a message twice": {
			core.Plan{Steps: []core.Step{step("message", `{"text":"Hi"}`), step("message_telegram", `{"message":"Hi"}`), step("message", `{"text":"Hi!"}`)}},
			[]string{says("Hi"), says("Hi!")}},
	} {
		t.Run(name, func(t *testing.T) {
			plan, faults := s.Check(tc.plan, by(0))
			wantLines(t, "outcome", outcome(plan, faults), tc.want)
		})
	}
}

// TestRepeatsOfAnotherKind: steps of different actions are not repetitions, even with the same
// payload.
func TestRepeatsOfAnotherKind(t *testing.T) {
	var w world
	m := w.message("telegram")
	m.Schema = json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)
	s, err := Build(iface{plug{"telegram", []core.Action{m}}}, plug{"tools", []core.Action{w.act("note")}})
	if err != nil {
		t.Fatal(err)
	}
	plan, faults := s.Check(core.Plan{Steps: []core.Step{step("note", `{"text":"Hi"}`), step("message", `{"text":"Hi"}`)}}, by(0))
	wantLines(t, "outcome", outcome(plan, faults), []string{`note{"text":"Hi"}`, `message_telegram{"text":"Hi"}`})
}
