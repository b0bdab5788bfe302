package action

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"synthbot/core"
	"synthbot/core/schema"
)

func TestConditions(t *testing.T) {
	const facts = `{"n":5,"f":1.50,"big":9007199254740993,"s":"hello","t":"2026-11-20T12:00:00Z","list":[1,"a",{"k":1}],
		"o":{"k":1,"deep":{"er":[10,20]}},"no":false,"yes":true,"zero":0,"empty":"","null":null,"huge":1e999,"vast":1e9999,"bare":{},"bares":[],"hollow":{"x":null},"odd":{"":1},"digits":"12345"}`
	v, err := schema.Decode(json.RawMessage(facts))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		field, operator, value string
		want                   bool
	}{
		{"n", "eq", `5`, true}, {"n", "eq", `5.0`, true}, {"n", "eq", `5e0`, true}, {"n", "eq", `"5"`, false}, {"n", "eq", `6`, false},
		{"f", "eq", `1.5`, true}, {"big", "eq", `9007199254740993`, true}, {"big", "eq", `9007199254740992`, false},
		{"s", "eq", `"hello"`, true}, {"s", "eq", `"Hello"`, false}, {"yes", "eq", `true`, true}, {"yes", "eq", `1`, false}, {"yes", "eq", `"true"`, false},
		{"zero", "eq", `false`, false}, {"empty", "eq", `null`, false}, {"null", "eq", `null`, true}, {"missing", "eq", `null`, true}, {"missing", "eq", `0`, false},
		{"list", "eq", `[1,"a",{"k":1.0}]`, true}, {"list", "eq", `["a",1,{"k":1}]`, false}, {"o", "eq", `{"deep":{"er":[10,20]},"k":1}`, true}, {"o", "eq", `{"k":1}`, false},
		{"huge", "eq", `1e999`, true}, {"huge", "eq", `1e9999999999`, false},
		{"n", "neq", `5`, false}, {"n", "neq", `"5"`, true}, {"missing", "neq", `5`, true}, {"missing", "neq", `null`, false}, {"null", "neq", `1`, true},
		{"n", "gt", `4`, true}, {"n", "gt", `5`, false}, {"n", "gte", `5.0`, true}, {"n", "lt", `5.1`, true}, {"n", "lte", `4`, false}, {"n", "gt", `"4"`, false},
		{"big", "gt", `9007199254740992`, true}, {"s", "gt", `"hell"`, true}, {"s", "lt", `"Hello"`, false}, {"yes", "gt", `false`, false}, {"list", "gte", `[]`, false},
		{"t", "gt", `"2026-11-20T12:30:00+01:00"`, true}, {"t", "lt", `"2026-11-20T12:30:00Z"`, true}, {"t", "gte", `"2026-11-20T13:00:00+01:00"`, true},
		{"missing", "gt", `0`, false}, {"missing", "lte", `0`, false}, {"null", "lt", `1`, false}, {"huge", "gt", `1`, true}, {"n", "lt", `1e99999`, false},
		{"s", "contains", `"ell"`, true}, {"s", "contains", `"ELL"`, false}, {"s", "contains", `""`, true}, {"s", "contains", `5`, false}, {"n", "contains", `5`, true},
		{"list", "contains", `"a"`, true}, {"list", "contains", `1.0`, true}, {"list", "contains", `{"k":1}`, true}, {"list", "contains", `"b"`, false},
		{"digits", "contains", `234`, true}, {"digits", "contains", `9`, false}, {"n", "contains", `"5"`, true}, {"n", "contains", `7`, false},
		{"o", "contains", `"k"`, true}, {"o", "contains", `"x"`, false}, {"o", "contains", `1`, false}, {"missing", "contains", `""`, false},
		{"n", "exists", `true`, true}, {"n", "exists", ``, true}, {"n", "exists", `null`, true}, {"n", "exists", `"no"`, true}, {"n", "exists", `false`, false},
		{"no", "exists", `true`, true}, {"zero", "exists", `true`, true}, {"empty", "exists", `true`, true}, {"null", "exists", `true`, false}, {"missing", "exists", `true`, false}, {"missing", "exists", `false`, true},
		{"o.deep.er.1", "eq", `20`, true}, {"o.deep.er.2", "exists", `true`, false}, {"o.deep.er.-1", "exists", `true`, false}, {"o.deep.er.x", "exists", `true`, false}, {"s.x", "exists", `true`, false}, {"o.K", "exists", `true`, false},
		{"n", "lte", `5`, true}, {"n", "gte", `6`, false}, {"n", "lt", `5`, false}, {"t", "lte", `"2026-11-20T13:00:00+01:00"`, true},
		{"vast", "eq", `1`, false}, {"vast", "eq", `1e9999`, true}, {"vast", "gt", `1`, false}, {"n", "eq", `1e9999`, false},
		{"o", "eq", `{"k":1,"deep":{"er":[10,20]},"more":1}`, false}, {"o", "eq", `{"k":2,"deep":{"er":[10,20]}}`, false}, {"o", "eq", `{"k":1,"shallow":{"er":[10,20]}}`, false},
		{"o", "eq", `[1]`, false}, {"list", "eq", `{}`, false}, {"s", "gt", `5`, false}, {"s", "lt", `"2026-11-20T12:00:00Z"`, false}, {"t", "lt", `"hello"`, true},
		{"bare", "eq", `5`, false}, {"bares", "eq", `5`, false}, {"hollow", "eq", `{"y":null}`, false}, {"hollow", "eq", `{"x":null}`, true}, {"odd", "contains", `5`, false},
		{"n", "gte", `"5"`, false}, {"n", "lte", `"5"`, false}, {"s", "gte", `5`, false}, {"vast", "gte", `1`, false}, {"vast", "lte", `1`, false},
		{"n", "eq", `5 5`, false}, {"o.deep.er.0", "eq", `10`, true}, {"o.deep", "contains", `"er"`, true},
		{"n", "like", `5`, false}, {"n", "", `5`, false},
	}
	look := func(field string) any {
		at, _ := schema.Descend(v, strings.Split(field, "."))
		return at
	}
	for _, test := range tests {
		c := core.Condition{Field: test.field, Operator: test.operator, Value: json.RawMessage(test.value)}
		if got := holds(c, look(test.field)); got != test.want {
			t.Errorf("%s %s %s: got %v, want %v", test.field, test.operator, test.value, got, test.want)
		}
	}
}

func TestConditionRoots(t *testing.T) {
	var w world
	s := w.catalogue(t, w.act("invoices.get", func(a *core.Action) { a.Do = w.do("get", `{"amount":12.5}`) }))
	who := by(core.RankModerator)
	job := newJournal().job(s, who)
	job.Plan.Context = core.State{Topic: "tea", SlotsFilled: map[string]json.RawMessage{"cups": json.RawMessage("2")}}
	job.State = core.State{Entities: map[string]json.RawMessage{"town": json.RawMessage(`"Rome"`)}}
	job.Message = &core.Message{Text: "hello", Voice: true}
	e := NewRuntime(Options{}).begin(job, 0)
	e.outputs["invoices.get"] = json.RawMessage(`{"amount":12.5}`)
	for field, want := range map[string]string{
		"context.topic": `"tea"`, "context.slotsFilled.cups": "2", "state.entities.town": `"Rome"`, "conversation_state.entities.town": `"Rome"`,
		"message.text": `"hello"`, "message.voice": "true", "message.attachments": "0", "message.path": `"telegram/-100/7"`,
		"town": `"Rome"`, "cups": "2", // entities and slots of the conversation
		"author.rank": `"moderator"`, "author.id": `"1"`, "results.invoices.get.amount": "12.5", "results.INVOICES_GET.amount": "12.5",
	} {
		got := string(core.JSON(e.find(field)))
		if got != want {
			t.Errorf("%s: got %s, want %s", field, got, want)
		}
	}
	for _, field := range []string{"context.entities.x", "results.web_search", "results.web_search.n", "results", "results.nothing", "nothing.at.all", "state.topic"} {
		if v := e.find(field); v != nil {
			t.Errorf("%s: got %v, want nothing", field, v)
		}
	}
	for rank, want := range map[core.Rank]string{core.RankMember: "member", core.RankAdmin: "admin", core.RankBot: "bot", core.RankBot + 1: ""} {
		e.Who = by(rank)
		if v := e.find("author.rank"); v != want {
			t.Errorf("unexpected value %v for rank %d", v, rank)
		}
	}
	e.Message = nil
	if v := e.find("message.text"); v != "" {
		t.Errorf("the text without a message: got %v, want nothing", v)
	}
	e.Who = by(core.RankMember, core.RankMember)
	if e.find("author.id") != nil {
		t.Error("a turn of several users has an author")
	}
}

// TestConditionsOnEntities: a field without a root is an entity or slot, first of the plan and then
// of the conversation. An unknown one is a fault, unless the condition asks whether it exists.
func TestConditionsOnEntities(t *testing.T) {
	var w world
	s := w.catalogue(t)
	entities := func(balance string) core.State {
		return core.State{Entities: map[string]json.RawMessage{"account": json.RawMessage(`{"balance":` + balance + `}`)}}
	}
	for name, tc := range map[string]struct {
		before, now core.State
		want        string
		exists      string // the field of the condition
	}{
		"none is known": {want: "done", exists: "false"},
		"one is wanted": {want: "skipped", exists: "true"},
		"unknown":       {want: "fault"},
		"another field": {before: core.State{Entities: map[string]json.RawMessage{"account": json.RawMessage(`{"name":"x"}`)}}, want: "fault"},
		"before":        {before: entities("100"), want: "done"},
		"too little":    {before: entities("5"), want: "skipped"},
		"now":           {before: entities("5"), now: entities("90"), want: "done"},
		"less by now":   {before: entities("90"), now: entities("5"), want: "skipped"},
		"a slot":        {before: core.State{SlotsFilled: entities("100").Entities}, want: "done"},
	} {
		who := by(core.RankMember)
		who.State = tc.before
		condition := core.Condition{Field: "account.balance", Operator: "gte", Value: json.RawMessage("85.50")}
		if tc.exists != "" {
			condition = core.Condition{Field: "account.balance", Operator: "exists", Value: json.RawMessage(tc.exists)}
		}
		plan, faults := s.Check(core.Plan{Context: tc.now, Steps: []core.Step{step("web_search", `{}`, func(s *core.Step) {
			s.Conditions = []core.Condition{condition}
		})}}, who)
		got := "fault"
		if len(faults) == 0 {
			job := newJournal().job(s, by(core.RankMember), plan.Steps...)
			job.Plan.Context, job.State = tc.now, tc.before
			got = string(run(t, NewRuntime(Options{}), job)[0].Progress)
		}
		if got != tc.want {
			t.Errorf("%s: got %s with faults %v, want %s", name, got, faults, tc.want)
		}
	}
}

// TestConditionsOnOutputs: a condition on a field that the output's schema excludes is a fault.
// Fields that the schema leaves open are looked up when the output is there.
func TestConditionsOnOutputs(t *testing.T) {
	const properties = `"type":"object","properties":{"balance":{"type":"number"},"currency":{"type":"string"}}`
	for _, tc := range []struct{ output, field, want string }{
		{`{` + properties + `}`, "results.check.balance", ""},
		{`{` + properties + `}`, "results.check", ""},
		{`{` + properties + `}`, "results.check.amount", `the output of check has no "amount", only balance, currency`},
		{`{"$ref":"#/$defs/A","$defs":{"A":{` + properties + `,"additionalProperties":false}}}`, "results.check.amount", "only balance, currency"},
		{`{` + properties + `,"additionalProperties":true}`, "results.check.amount", ""},
		{`{` + properties + `,"anyOf":[{"properties":{"amount":{}}}]}`, "results.check.amount", ""},
		{`{"type":"array"}`, "results.check.0.amount", ""},
		{`{"type":"object"}`, "results.check.amount", ""},
		{``, "results.check.amount", ""},
	} {
		var w world
		s := w.catalogue(t, w.act("check", func(a *core.Action) { a.Output = json.RawMessage(tc.output) }))
		_, faults := s.Check(core.Plan{Steps: []core.Step{step("web_search", `{}`, func(s *core.Step) {
			s.Conditions = []core.Condition{{Field: tc.field, Operator: "gte", Value: json.RawMessage("85.50")}}
		})}}, by(core.RankMember))
		got := ""
		if len(faults) > 0 {
			got = faults[0].Text
		}
		if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s of %s: got fault %q, want %q", tc.field, tc.output, got, tc.want)
		}
	}
}

func TestConditionsDecideAtTheirTime(t *testing.T) {
	var w world
	s := w.catalogue(t)
	when := func(field, op, value string) func(*core.Step) {
		return func(s *core.Step) {
			c := core.Condition{Field: field, Operator: op, Value: json.RawMessage(value)}
			s.Conditions = append(s.Conditions, c)
		}
	}
	plan, faults := s.Check(core.Plan{Steps: []core.Step{
		step("web_fetch", `{"n":1}`, when("results.web_search.n", "eq", "1")),
		step("web_fetch", `{"n":2}`, when("results.web_search.n", "gt", "1"), func(s *core.Step) {
			f := step("message", `{"text":"nothing found"}`)
			s.Fallback = &f
		}),
		step("web_search", `{}`),
	}}, by(core.RankMember))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	done := run(t, NewRuntime(Options{}), newJournal().job(s, by(core.RankMember), plan.Steps...))
	wantLines(t, "done", describe(done), []string{
		"3 web_search done", "1 web_fetch done", "2 web_fetch skipped: the condition on results.web_search.n does not hold", "4 message_telegram done for 2",
	})
}

func FuzzConditions(f *testing.F) {
	f.Add("o.k", "eq", `1`, `{"o":{"k":1}}`)
	f.Add("list.0", "contains", `"a"`, `{"list":["a"]}`)
	f.Add("n", "gte", `1e400`, `{"n":1e-400}`)
	f.Fuzz(func(t *testing.T, field, operator, value, facts string) {
		v, err := schema.Decode(json.RawMessage(facts))
		if err != nil {
			return
		}
		look := func(field string) any {
			at, _ := schema.Descend(v, strings.Split(field, "."))
			return at
		}
		is := func(op string) bool {
			return holds(core.Condition{Field: field, Operator: op, Value: json.RawMessage(value)}, look(field))
		}
		is(operator)
		if is("eq") == is("neq") {
			t.Fatal("eq and neq both hold or both fail")
		}
		if is("gt") && is("lte") || is("lt") && is("gte") || is("gt") && is("lt") {
			t.Fatal("the values are both less and greater")
		}
		if !is("exists") && (is("contains") || is("gt") || is("gte") || is("lt") || is("lte")) {
			t.Fatal("a condition on a missing field holds")
		}
	})
}

// TestConditionsOfEverything: any step whose condition fails is skipped, built-ins too.
func TestConditionsOfEverything(t *testing.T) {
	var w world
	s := w.catalogue(t)
	for _, name := range []string{Continue, "IGNORE", "web_search", "message_telegram"} {
		for city, want := range map[string]core.Progress{`"Rome"`: core.ProgressDone, `"Oslo"`: core.ProgressSkipped} {
			job := newJournal().job(s, by(core.RankMember), step(name, `{"text":"x"}`, func(s *core.Step) {
				s.Conditions = []core.Condition{{Field: "city", Operator: "eq", Value: json.RawMessage(`"Rome"`)}}
			}))
			job.State.Entities = map[string]json.RawMessage{"city": json.RawMessage(city)}
			done := run(t, NewRuntime(Options{}), job)
			if calls := w.did(); done[0].Progress != want || want == core.ProgressSkipped && len(calls) > 0 {
				t.Errorf("%s in %s: unexpected progress %s or calls %q", name, city, done[0].Progress, calls)
			}
		}
	}
}

// TestUnwrittenStartReleasesTheAction: an action is not busy if the start of its step could not be
// journalled.
func TestUnwrittenStartReleasesTheAction(t *testing.T) {
	var w world
	s := w.catalogue(t, w.act("look", func(a *core.Action) { a.Busy = core.BusyRefuse }))
	r, j := NewRuntime(Options{}), newJournal()
	j.fail = core.ErrUnwritten
	if _, err := r.Execute(t.Context(), j.job(s, by(core.RankMember), step("look", `{}`))); !errors.Is(err, core.ErrUnwritten) {
		t.Fatal(err)
	}
	if done := run(t, r, newJournal().job(s, by(core.RankMember), step("look", `{}`))); done[0].Progress != core.ProgressDone {
		t.Errorf("the next call ended as %+v, want it done", done[0])
	}
}
