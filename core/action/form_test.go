package action

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"synthbot/core"
)

// fields is a schema with a property of each type.
const fields = `{"type":"object","required":["text","size","on","list","user","kind","ref","dated"],"properties":{
 "text":{"type":"string","minLength":2},"size":{"type":"integer","maximum":9},"on":{"type":"boolean"},
 "list":{"type":"array"},"user":{"type":"string"},"kind":{"enum":[10,2,1]},
 "ref":{"$ref":"#/$defs/color"},"dated":{"type":"string","default":"today"}},
 "$defs":{"color":{"type":"string","enum":["Red","Light blue"]}}}`

// fieldsOf returns a catalogue with an action that has these fields.
func fieldsOf(t *testing.T, change ...func(*core.Action)) (*Snapshot, *Definition) {
	t.Helper()
	var w world
	shape := func(a *core.Action) { a.Schema = json.RawMessage(fields) }
	s := w.catalogue(t, w.act("fill", append(change, shape)...))
	d, _ := s.Resolve("fill")
	return s, d
}

// TestMissing: the bot asks for a missing value if one user can write it in a line. Otherwise it is
// a fault.
func TestMissing(t *testing.T) {
	const rest = `"list":[],"user":"7","kind":2,"ref":"Red"}`
	one := by(core.RankMember)
	for name, test := range map[string]struct {
		payload string
		who     Requester
		slots   []string
		unit    string
		missing []string
		fault   bool
	}{
		"nothing": {payload: `{"text":"abc","size":1,"on":true,` + rest, who: one, slots: []string{"size"}},
		"null": {
			payload: `{"text":null,"size":1,"on":null,"list":[],"user":"7","kind":null,"ref":null}`, who: one,
			missing: []string{"text", "on", "kind", "ref"},
		},
		"by name": {
			payload: `{"size":1,"on":true,"list":[],"user":"7","kind":2,"ref":""}`, who: one,
			slots: []string{"Text", "ref", "dated"}, missing: []string{"text", "ref"},
		},
		"not named":        {payload: `{"size":1,"on":true,` + rest, who: one, fault: true},
		"another named":    {payload: `{"size":1,"on":true,` + rest, who: one, slots: []string{"other"}, fault: true},
		"empty, not named": {payload: `{"text":"","size":1,"on":true,` + rest, who: one, fault: true},
		"a list": {
			payload: `{"text":"abc","size":1,"on":true,"list":null,"user":"7","kind":2,"ref":"Red"}`, who: one, fault: true,
		},
		"the person": {
			payload: `{"text":"abc","size":1,"on":true,"list":[],"user":null,"kind":2,"ref":"Red"}`,
			who:     by(core.RankAdmin), fault: true,
		},
		"another is wrong": {payload: `{"text":null,"size":70,"on":true,` + rest, who: one, fault: true},
		"several people": {
			payload: `{"text":null,"size":1,"on":true,` + rest, who: by(core.RankMember, core.RankMember), fault: true,
		},
		"nobody":             {payload: `{"text":null,"size":1,"on":true,` + rest, who: Requester{Path: here}, fault: true},
		"inside of a unit":   {payload: `{"text":null,"size":1,"on":true,` + rest, who: one, unit: "u", fault: true},
		"whole, in any unit": {payload: `{"text":"abc","size":1,"on":true,` + rest, who: one, unit: "u"},
	} {
		s, _ := fieldsOf(t, func(a *core.Action) { a.Concerns = "user" })
		one := step("fill", test.payload)
		one.Unit = test.unit
		about := core.State{SlotsRequired: test.slots}
		p, faults := s.Check(core.Plan{Steps: []core.Step{one}, Context: about}, test.who)
		if (len(faults) > 0) != test.fault {
			t.Errorf("%s: got faults %q, want some: %v", name, faults, test.fault)
		}
		if !test.fault && (len(p.Steps) != 1 || !slices.Equal(p.Steps[0].Missing, test.missing)) {
			t.Errorf("%s: got %+v, want the missing values %q", name, p.Steps, test.missing)
		}
	}
}

// TestFormValues: a user's answers are converted to the types of the schema.
func TestFormValues(t *testing.T) {
	_, d := fieldsOf(t)
	for _, test := range []struct{ name, answer, want string }{
		{"text", "12", `"12"`}, {"size", "12", `12`}, {"size", "many", `"many"`}, {"size", "1e1", `10`},
		{"on", "Yes", `true`}, {"on", "no", `false`}, {"on", "2", `false`}, {"on", "perhaps", `"perhaps"`},
		{"kind", "10", `10`}, {"kind", "1", `1`}, {"kind", "2", `2`}, {"kind", "3", `1`}, {"kind", "4", `"4"`},
		{"ref", "light BLUE", `"Light blue"`}, {"ref", "1", `"Red"`}, {"ref", "0", `"0"`},
	} {
		if got := string(core.JSON(d.value(test.name, test.answer))); got != test.want {
			t.Errorf("%s %q is %s, want %s", test.name, test.answer, got, test.want)
		}
	}
}

// TestFormInAUnit: a later step of a unit is skipped if it lacks a value, as a unit cannot wait.
func TestFormInAUnit(t *testing.T) {
	var w world
	s := w.catalogue(t,
		w.act("begin", func(a *core.Action) {
			a.Do = func(context.Context, core.Call) (core.Result, error) {
				return core.Result{Next: []core.Step{step("fill", `{"n":null}`)}}, nil
			}
		}),
		w.act("fill", func(a *core.Action) {
			a.Schema = json.RawMessage(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`)
		}))
	j := newJournal()
	done := run(t, NewRuntime(Options{}), j.job(s, by(core.RankMember), in("u", step("begin", `{}`))))
	wantLines(t, "unit", describe(done), []string{"1 begin done", "2 fill skipped for 1: fill needs n, and nobody can be asked for it"})
}

// filled runs a plan whose step lacks values. It returns functions that answer its form and read
// its state.
func filled(t *testing.T, s *Snapshot, steps ...core.Step) (
	*journal, func(step uint16, a Answer) []string, func(step uint16) *Held) {
	t.Helper()
	p, faults := s.Check(core.Plan{Steps: steps}, by(core.RankMember))
	if len(faults) > 0 {
		t.Fatalf("faults: %q", faults)
	}
	j := newJournal()
	r := NewRuntime(Options{Clock: func() time.Time { return noon }})
	job := j.job(s, by(core.RankMember), p.Steps...)
	run(t, r, job)
	job.Plan = core.Plan{}
	held := func(step uint16) *Held {
		record, _ := j.Find(core.Key{Turn: job.Turn, Round: 1, Step: step})
		h, err := ReadHeld(record)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	return j, func(step uint16, a Answer) []string {
		done, err := r.Resume(t.Context(), job, step, a)
		if err != nil {
			t.Fatal(err)
		}
		return describe(done)
	}, held
}

// TestFormIsFilled: each answer is taken once, and the last one starts the step.
func TestFormIsFilled(t *testing.T) {
	var w world
	s := w.catalogue(t, w.act("fill", func(a *core.Action) {
		a.Schema = json.RawMessage(`{"type":"object","title":"Fill","required":["n","to"],"properties":{` +
			`"n":{"type":"integer","maximum":9,"title":"Number","description":"A\n number"},"to":{"enum":["a","b"]}}}`)
	}))
	w.did()
	_, answer, held := filled(t, s, step("fill", `{"n":null,"to":null}`))
	h := held(1)
	if h.Question != "Fill – Number?\nA number" || h.Asks != 0 || h.Form.Choices != nil || !h.Expires.After(noon) {
		t.Errorf("unexpected question %+v", h)
	}
	wantLines(t, "a misfit", answer(1, Answer{Agreed: true, Text: "many"}), []string{"1 fill pending"})
	h = held(1)
	if h.Question != "“many” is not a number\nFill – Number?\nA number" || h.Asks != 1 || h.Form.Misfits != 1 {
		t.Errorf("unexpected question %+v with form %+v", h, h.Form)
	}
	wantLines(t, "an old question", answer(1, Answer{Agreed: true, Text: "5"}), []string{"1 fill pending"})
	wantLines(t, "an old question, cancelled", answer(1, Answer{}), []string{"1 fill pending"})
	if h = held(1); h.Asks != 1 || len(h.Step.Missing) != 2 {
		t.Errorf("an answer to an old question was taken: %+v", h)
	}
	wantLines(t, "a number", answer(1, Answer{Agreed: true, Ask: 1, Text: "5"}), []string{"1 fill pending"})
	h = held(1)
	if h.Question != "Fill – to?" || h.Asks != 2 || h.Form.Misfits != 0 || !slices.Equal(h.Form.Choices, []string{"a", "b"}) {
		t.Errorf("unexpected question %+v with form %+v", h, h.Form)
	}
	wantLines(t, "no choice", answer(1, Answer{Agreed: true, Ask: 2, Text: "c"}), []string{"1 fill pending"})
	if h = held(1); h.Question != "“c” is not one of the choices\nFill – to?" {
		t.Errorf("unexpected question %q", h.Question)
	}
	wantLines(t, "calls so far", w.did(), nil)
	wantLines(t, "a choice", answer(1, Answer{Agreed: true, Ask: 3, Text: "2"}), []string{"1 fill done"})
	wantLines(t, "calls", w.did(), []string{`fill{"n":5,"to":"b"}`})
	wantLines(t, "once more", answer(1, Answer{Agreed: true, Ask: 3, Text: "2"}), []string{"1 fill done"})
	wantLines(t, "much later", answer(1, Answer{Agreed: true, Ask: 9, Text: "2"}), []string{"1 fill done"})
	wantLines(t, "calls", w.did(), nil)
}

// TestMessagesHaveNoForm: missing values of messages, and of actions with their own follow-up
// question, are not asked for.
func TestMessagesHaveNoForm(t *testing.T) {
	var w world
	s := w.catalogue(t, w.act("ask", func(a *core.Action) {
		a.Schema = json.RawMessage(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`)
		a.Then = func(json.RawMessage) []core.Step { return nil }
	}))
	for _, one := range []core.Step{step("message_telegram", `{"text":null}`), step("ask", `{"n":null}`)} {
		p, faults := s.Check(core.Plan{Steps: []core.Step{one}}, by(core.RankMember))
		if len(faults) == 0 {
			t.Errorf("%s: unexpected steps %+v", one.Type, p.Steps)
		}
	}
}

// TestFormEnds: a form ends with the third invalid answer, when it is cancelled, and when its
// action is gone.
func TestFormEnds(t *testing.T) {
	var w world
	shape := func(a *core.Action) {
		a.Schema = json.RawMessage(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`)
	}
	s := w.catalogue(t, w.act("fill", shape))
	open := step("fill", `{"n":null}`)
	_, answer, _ := filled(t, s, open)
	wantLines(t, "cancelled", answer(1, Answer{}), []string{"1 fill skipped: it was cancelled"})

	_, answer, _ = filled(t, s, open)
	answer(1, Answer{Agreed: true, Text: "x"})
	answer(1, Answer{Agreed: true, Ask: 1, Text: "y"})
	wantLines(t, "three misfits", answer(1, Answer{Agreed: true, Ask: 2, Text: "z"}),
		[]string{"1 fill skipped: no answer to the question was valid"})

	j, _, _ := filled(t, s, open)
	job := j.job(w.catalogue(t), by(core.RankMember))
	done, err := NewRuntime(Options{Clock: func() time.Time { return noon }}).Resume(t.Context(), job, 1,
		Answer{Agreed: true, Text: "1"})
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, "gone", describe(done), []string{"1 fill skipped: fill is no longer available"})
}

// TestTwoForms: two forms are filled in one after the other.
func TestTwoForms(t *testing.T) {
	var w world
	s := w.catalogue(t, w.act("fill", func(a *core.Action) {
		a.Schema = json.RawMessage(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"},"user":{"type":"string"}}}`)
	}))
	_, answer, held := filled(t, s, step("fill", `{"n":null}`), step("fill", `{"n":null,"user":"x"}`))
	if held(1).On != 0 || held(2).On != 1 || held(2).Question != "" {
		t.Errorf("unexpected forms %+v, %+v", held(1), held(2))
	}
	wantLines(t, "the first", answer(1, Answer{Agreed: true, Text: "1"}), []string{"1 fill done", "2 fill pending"})
	if h := held(2); h.On != 0 || h.Question != "Do fill – n?" {
		t.Errorf("unexpected second question %+v", h)
	}
	wantLines(t, "the second", answer(2, Answer{Agreed: true, Ask: held(2).Asks, Text: "2"}), []string{"2 fill done"})
}

// TestFormAddresses: an address in a form's answer counts as written by the user.
func TestFormAddresses(t *testing.T) {
	var w world
	s := w.catalogue(t, w.act("fill", func(a *core.Action) {
		a.Schema = json.RawMessage(`{"type":"object","required":["url","n"],"properties":{"url":{"type":"string"},"n":{"type":"integer"}}}`)
	}))
	_, answer, held := filled(t, s, step("fill", `{"url":null,"n":null}`))
	answer(1, Answer{Agreed: true, Text: "https://a.example/x"})
	if known := held(1).Read.Addresses; !slices.Contains(known, canonical("https://a.example/x")) {
		t.Errorf("unexpected known addresses %q", known)
	}
}

// TestChoicesOfAForm: choices that are too long or too many for buttons are listed in the text.
func TestChoicesOfAForm(t *testing.T) {
	var many []string
	for n := range maxChoices + 1 {
		many = append(many, fmt.Sprintf("c%d", n))
	}
	for name, test := range map[string]struct {
		values any
		want   int
	}{
		"most":    {many[:maxChoices], maxChoices},
		"more":    {many, 0},
		"longest": {[]string{strings.Repeat("x", maxChoice)}, 1},
		"long":    {[]string{strings.Repeat("x", maxChoice+1)}, 0},
		"hidden":  {[]string{"a\u200bb"}, 0},
		"others":  {[]any{1, 2.5, true}, 3},
	} {
		var w world
		s := w.catalogue(t, w.act("fill", func(a *core.Action) {
			a.Schema = core.JSON(map[string]any{"type": "object", "properties": map[string]any{"x": map[string]any{"enum": test.values}}})
		}))
		d, _ := s.Resolve("fill")
		if got := d.choices("x"); len(got) != test.want {
			t.Errorf("%s: unexpected choices %q", name, got)
		}
	}
}
