package action

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"synthbot/core"
)

// outcome describes the steps and faults of a checked plan, one a line.
func outcome(p core.Plan, faults []core.Fault) (lines []string) {
	for i := range p.Steps {
		line := ""
		for s := &p.Steps[i]; s != nil; s = s.Fallback {
			if line != "" {
				line += " else "
			}
			line += s.Type + string(s.Payload)
			if s.Confirm {
				line += " confirm"
			}
		}
		lines = append(lines, line)
	}
	for _, f := range faults {
		lines = append(lines, fmt.Sprintf("! %s [%s]", f, f.Action))
	}
	return lines
}

// checking is a plan and the outcome of Check.
type checking struct {
	name string
	who  Requester
	plan core.Plan
	want []string
}

// at is the rest of the payload of a message to the place.
const at = `"interface_path":"telegram/-100/7","priority":"normal"`

func confirm(s *core.Step) { s.Confirm = true }

// checks checks the plans with the usual catalogue and two more actions.
func checks(t *testing.T, tests []checking) {
	t.Helper()
	var w world
	s := w.catalogue(t, w.act("book", func(a *core.Action) {
		a.Schema = json.RawMessage(`{"type":"object","properties":{
			"seats":{"type":"integer","maximum":9},"id":{"type":"integer"},"class":{"type":"string","enum":["a","b"],"default":"b"},
			"who":{"$ref":"#/$defs/who"},"interface_path":{"type":"string"}},
			"required":["seats"],"$defs":{"who":{"type":"object","properties":{"name":{"type":"string"},"vip":{"type":"boolean","default":false}},"required":["name"]}}}`)
	}), w.act("draw", func(a *core.Action) {
		a.Schema = json.RawMessage(`{"type":"object","properties":{
			"numbers":{"type":"array","items":{"type":"integer"}},"a~1b":{"type":"integer"},"a/b":{"type":"string"},"c/d":{"type":"object","properties":{"e":{}},"required":["e"]},"when":{"type":["integer","null"]},
			"word":{"type":"string","enum":["` + strings.Repeat("long", 100) + `"]}}}`)
	}))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			plan, faults := s.Check(test.plan, test.who)
			wantLines(t, "outcome", outcome(plan, faults), test.want)
			if plan.Response != "" || plan.Extra != nil {
				t.Error("the checked plan still has a response or extra keys")
			}
			again, faults := s.Check(plan, test.who)
			if plan.Repaired || len(faults) > 0 {
				return
			}
			wantLines(t, "checked again", outcome(again, nil), outcome(plan, nil))
		})
	}
}

func TestCheck(t *testing.T) {
	fallback := func(f core.Step) func(*core.Step) { return func(s *core.Step) { s.Fallback = &f } }
	falls := func(n int) core.Step {
		s := step("web_search", `{}`)
		for range n {
			s = step("web_search", `{}`, fallback(s))
		}
		return s
	}
	checks(t, []checking{
		{"response", by(0), core.Plan{Response: "hi"}, []string{`message_telegram{` + at + `,"text":"hi"}`}},
		{"response that a message repeats", by(0), core.Plan{Response: "Hi  there", Steps: []core.Step{step("message", `{"text":"hi there!"}`)}},
			[]string{`message_telegram{` + at + `,"text":"hi there!"}`}},
		{"generic message", by(0), core.Plan{Steps: []core.Step{step("MESSAGE", `{"message":"hi"}`)}}, []string{`message_telegram{` + at + `,"text":"hi"}`}},
		{"older names", by(0), core.Plan{Steps: []core.Step{step("message_telegram", `{"text":"hi","interface_path":"telegram_bot/-100/7/"}`)}}, []string{`message_telegram{` + at + `,"text":"hi"}`}},
		{"below", by(0), core.Plan{Steps: []core.Step{step("message_telegram", `{"text":"hi","interface_path":"telegram/-100/7/8"}`)}},
			[]string{`message_telegram{"interface_path":"telegram/-100/7/8","priority":"normal","text":"hi"}`}},
		{"above", by(0), core.Plan{Steps: []core.Step{step("message_telegram", `{"text":"hi","interface_path":"telegram/-100"}`)}},
			[]string{`! actions[0].payload.interface_path: cannot send messages there, only to telegram/-100/7 and what lies below it [message_telegram]`}},
		{"a neighbour of like name", by(0), core.Plan{Steps: []core.Step{step("message_telegram", `{"text":"hi","interface_path":"telegram/-100/77"}`)}},
			[]string{`! actions[0].payload.interface_path: cannot send messages there, only to telegram/-100/7 and what lies below it [message_telegram]`}},
		{"elsewhere", by(core.RankAdmin), core.Plan{Steps: []core.Step{step("message", `{"text":"hi","interface_path":"discord/1"}`)}},
			[]string{`! actions[0].payload.interface_path: cannot send messages there, only to telegram/-100/7 and what lies below it [message_discord]`}},
		{"another's path", by(0), core.Plan{Steps: []core.Step{step("message_telegram", `{"text":"hi","interface_path":"discord/1"}`)}},
			[]string{`! actions[0].payload.interface_path: message_telegram serves paths that begin with telegram [message_telegram]`}},
		{"no interface", by(0), core.Plan{Steps: []core.Step{step("message_telegram", `{"text":"hi","interface_path":"matrix/1"}`)}},
			[]string{`! actions[0].payload.interface_path: no interface is called matrix [message_telegram]`}},
		{"recipient", by(0), core.Plan{Steps: []core.Step{step("message_telegram", `{"text":"hi","recipient":"@ann"}`)}},
			[]string{`! actions[0].payload.recipient: names are not looked up here; give interface_path instead [message_telegram]`}},
		{"suggestions", by(0), core.Plan{Response: "tea?", Suggestions: []string{"yes", "no"}}, []string{`message_telegram{` + at + `,"suggestions":["yes","no"],"text":"tea?"}`}},
		{"defaults", by(0), core.Plan{Steps: []core.Step{step("book", `{"seats":2.0,"id":9007199254740993,"who":{"name":"x"}}`)}},
			[]string{`book{"class":"b","id":9007199254740993,"interface_path":"telegram/-100/7","seats":2,"who":{"name":"x","vip":false}}`}},
		{"all faults", by(0), core.Plan{Steps: []core.Step{step("book", `{"seats":10,"class":"c","who":{}}`)}}, []string{
			`! actions[0].payload.class: c should be one of the allowed values: a, b [book]`,
			`! actions[0].payload.seats: 10 should be at most 9 [book]`,
			`! actions[0].payload.who: required property 'name' is missing [book]`}},
		{"other types", by(0), core.Plan{Steps: []core.Step{step("book", `{"seats":"2","id":"9007199254740993","who":{"name":42,"vip":"true"}}`)}},
			[]string{`book{"class":"b","id":9007199254740993,"interface_path":"telegram/-100/7","seats":2,"who":{"name":"42","vip":true}}`}},
		{"types near and too far away", by(0), core.Plan{Steps: []core.Step{step("book", `{"seats":"2","class":5}`)}}, []string{
			`! actions[0].payload.class: 5 should be one of the allowed values: a, b [book]`,
			`! actions[0].payload.class: is integer but should be string [book]`}},
		{"types too far away", by(0), core.Plan{Steps: []core.Step{step("book", `{"seats":"two","who":"5","class":5}`)}}, []string{
			`! actions[0].payload.class: 5 should be one of the allowed values: a, b [book]`,
			`! actions[0].payload.class: is integer but should be string [book]`,
			`! actions[0].payload.seats: is string but should be integer [book]`,
			`! actions[0].payload.who: is string but should be object [book]`}},
		{"valid ones stay", by(0), core.Plan{Steps: []core.Step{step("book", `{}`), step("web_search", `{}`)}},
			[]string{"web_search{}", `! actions[0].payload: required property 'seats' is missing [book]`}},
		{"did you mean", by(0), core.Plan{Steps: []core.Step{step("web_serch", `{}`)}}, []string{`! actions[0].type: there is no action "web_serch"; did you mean web_search? [web_search]`}},
		{"not what is closed", by(0), core.Plan{Steps: []core.Step{step("bann", `{}`)}}, []string{`! actions[0].type: there is no action "bann"; use one of the actions on offer []`}},
		{"permission", by(0), core.Plan{Steps: []core.Step{step("ban", `{"n":"x"}`)}}, []string{`! actions[0]: ban is not open to the user who asked for it [ban]`}},
		{"undeclared and outside", by(core.RankModerator), core.Plan{Steps: []core.Step{step("send_file", `{}`)}}, []string{`! actions[0]: send_file is not open to the user who asked for it [send_file]`}},
		{"concerned, himself", by(0), core.Plan{Steps: []core.Step{step("forget", `{}`), step("forget", `{"user":"1"}`), step("forget", `{"user":"telegram/@user/1"}`)}},
			[]string{`forget{"user":"1"}`, `forget{"user":"1"}`, `forget{"user":"telegram/@user/1"}`}},
		{"concerned, another", by(core.RankModerator), core.Plan{Steps: []core.Step{step("forget", `{"user":"2"}`)}}, []string{`! actions[0]: forget is not open to the user who asked for it [forget]`}},
		{"concerned, by an admin", by(core.RankAdmin), core.Plan{Steps: []core.Step{step("forget", `{"user":"2"}`)}}, []string{`forget{"user":"2"}`}},
		{"concerned, several", by(0, 0), core.Plan{Steps: []core.Step{step("forget", `{"user":"1"}`)}}, []string{`! actions[0]: forget is not open to the user who asked for it [forget]`}},
		{"confirmable, several", by(0, 0), core.Plan{Steps: []core.Step{step("transfer", `{}`), step("web_search", `{}`, confirm)}}, []string{
			`! actions[0]: transfer must be confirmed, and no single person asked for it [transfer]`, `! actions[1]: must be confirmed, and no single person asked for it [web_search]`}},
		{"a message to the place needs no confirmation", by(0), core.Plan{Steps: []core.Step{step("message", `{"text":"hi"}`, confirm), step("web_search", `{}`, confirm)}},
			[]string{`message_telegram{` + at + `,"text":"hi"}`, "web_search{} confirm"}},
		{"fallback", by(0), core.Plan{Steps: []core.Step{step("web_search", `{}`, fallback(step("Message", `{"text":"no"}`)))}},
			[]string{`web_search{} else message_telegram{` + at + `,"text":"no"}`}},
		{"bad fallback", by(0), core.Plan{Steps: []core.Step{step("web_search", `{}`, fallback(step("ban", `{}`)))}},
			[]string{"web_search{}", `! actions[0].fallbackAction: ban is not open to the user who asked for it [ban]`}},
		{"repaired", by(core.RankAdmin), core.Plan{Repaired: true, Steps: []core.Step{step("ban", `{}`), step("message", `{"text":"hi"}`, fallback(step("ban", `{}`)))}}, []string{
			`message_telegram{` + at + `,"text":"hi"}`,
			`! actions[0]: the answer was not complete JSON and had to be repaired; send the whole plan again [ban]`,
			`! actions[1].fallbackAction: the answer was not complete JSON and had to be repaired; send the whole plan again [ban]`}},
		{"stray", by(0), core.Plan{Response: "Hello there", Extra: map[string]json.RawMessage{"message": json.RawMessage(`"hello there"`), "note": json.RawMessage(`"psst"`), "web_search": json.RawMessage(`{}`)}}, []string{
			`message_telegram{` + at + `,"text":"Hello there"}`,
			`! note: unknown top-level key; put what is to be done into actions []`,
			`! web_search: unknown top-level key; put what is to be done into actions [web_search]`}},
		{"conditions", by(0), core.Plan{Steps: []core.Step{step("web_search", `{}`, func(s *core.Step) {
			s.Conditions = []core.Condition{{Field: "account.balance", Operator: "gte"}, {Field: "results.nix.x", Operator: "eq"}, {Field: "context..x", Operator: "eq"}}
		})}}, []string{
			`! actions[0].conditions[0].field: must begin with one of context, conversation_state, state, message, author, results, or be an entity or a slot that is known [web_search]`,
			`! actions[0].conditions[1].field: must name an action whose result is meant [web_search]`,
			`! actions[0].conditions[2].field: must be a dotted path [web_search]`}},
		{"no object for a message", by(0), core.Plan{Steps: []core.Step{step("message", `[1]`), step("book", `"x"`)}},
			[]string{`! actions[0].payload: must be an object [message_telegram]`, `! actions[1].payload: must be an object [book]`}},
		{"a built-in as a fallback", by(0), core.Plan{Steps: []core.Step{step("web_search", `{}`, fallback(step("none", ``)))}},
			[]string{"web_search{}"}},
		{"four fallbacks", by(0), core.Plan{Steps: []core.Step{falls(4)}}, []string{"web_search{} else web_search{} else web_search{} else web_search{} else web_search{}"}},
		{"five fallbacks", by(0), core.Plan{Steps: []core.Step{falls(5)}}, []string{"web_search{} else web_search{} else web_search{} else web_search{} else web_search{}",
			`! actions[0].fallbackAction.fallbackAction.fallbackAction.fallbackAction.fallbackAction: more than 4 fallbacks of fallbacks [web_search]`}},
		{"concerned, several admins", by(core.RankAdmin, core.RankAdmin), core.Plan{Steps: []core.Step{step("forget", `{}`)}}, []string{"forget{}"}},
		{"no object", by(0), core.Plan{Steps: []core.Step{step("web_search", `[1]`)}}, []string{`! actions[0].payload: must be an object [web_search]`}},
	})
}

// TestCheckOddities: Check repairs common slips of models.
func TestCheckOddities(t *testing.T) {
	checks(t, []checking{
		{"a condition's value", by(0), core.Plan{Steps: []core.Step{step("web_search", `{}`, func(s *core.Step) {
			s.Conditions = []core.Condition{{Field: "context.topic", Operator: "eq", Value: json.RawMessage(`{`)}, {Field: "context.topic", Operator: "like"}}
		})}}, []string{`! actions[0].conditions[0].value: must be JSON [web_search]`, `! actions[0].conditions[1].operator: unknown operator "like" [web_search]`}},
		{"no payload", by(0), core.Plan{Steps: []core.Step{step("web_search", ``), step("web_search", `null`)}}, []string{"web_search{}", "web_search{}"}},
		{"an empty path", by(0), core.Plan{Steps: []core.Step{
			step("web_search", `{"interface_path":""}`), step("web_search", `{"interface_path":null}`), step("message", `{"text":"hi","interface_path":null}`),
		}}, []string{"web_search{}", "web_search{}", `message_telegram{` + at + `,"text":"hi"}`}},
		{"a path that the action does not know", by(0), core.Plan{Steps: []core.Step{
			step("web_search", `{"interface_path":"telegram/-100/7"}`), step("web_search", `{"interface_path":"telegram/-100/7/8"}`),
		}}, []string{"web_search{}", `web_search{"interface_path":"telegram/-100/7/8"}`}},
		{"a path that is none", by(0), core.Plan{Steps: []core.Step{step("message", `{"text":"hi","interface_path":5}`)}},
			[]string{`! actions[0].payload.interface_path: must be a string [message_telegram]`}},
		{"a message of several to the place", by(0, 0), core.Plan{Steps: []core.Step{step("message", `{"text":"hi"}`, confirm)}}, []string{`message_telegram{` + at + `,"text":"hi"}`}},
		{"a message of several to another place", by(0, 0), core.Plan{Steps: []core.Step{step("message", `{"text":"hi","interface_path":"telegram/-100/7/8"}`, confirm)}},
			[]string{`! actions[0]: must be confirmed, and no single person asked for it [message_telegram]`}},
		{"as it was written", by(0), core.Plan{Response: `<b> & "c"`}, []string{`message_telegram{` + at + `,"text":"<b> & \"c\""}`}},
		{"what the schema does not know", by(0), core.Plan{Steps: []core.Step{step("message", `{"text":"hi","colour":"red"}`)}},
			[]string{`! actions[0].payload.colour: is not allowed here [message_telegram]`}},
		{"lists", by(0), core.Plan{Steps: []core.Step{step("draw", `{"numbers":[1.0,2e1,"3"]}`), step("draw", `{"numbers":[1,"two"]}`), step("draw", `{"numbers":[[1]]}`)}}, []string{
			`draw{"numbers":[1,20,3]}`,
			`! actions[1].payload.numbers[1]: is string but should be integer [draw]`,
			`! actions[2].payload.numbers[0]: is array but should be integer [draw]`}},
		{"lists of lists", by(0), core.Plan{Steps: []core.Step{step("web_search", `{"list":[[1.0],{"a":2.0}]}`)}}, []string{`web_search{"list":[[1],{"a":2}]}`}},
		{"two texts", by(0), core.Plan{Steps: []core.Step{step("message", `{"text":"a","message":"b"}`)}}, []string{`! actions[0].payload.message: is not allowed here [message_telegram]`}},
		{"names with a slash", by(0), core.Plan{Steps: []core.Step{step("draw", `{"a/b":5}`), step("draw", `{"c/d":{}}`)}}, []string{
			`! actions[0].payload: Property 'a/b' does not match the schema [draw]`, `! actions[1].payload.c.d: required property 'e' is missing [draw]`}},
		{"odd names", by(0), core.Plan{Steps: []core.Step{step("draw", `{"a~1b":"5"}`), step("draw", `{"a~1b":"x"}`)}},
			[]string{`draw{"a~1b":5}`, `! actions[1].payload.a~1b: is string but should be integer [draw]`}},
		{"null is no word", by(0), core.Plan{Steps: []core.Step{step("draw", `{"when":"two"}`), step("draw", `{"when":"{}"}`), step("draw", `{"when":" 2"}`), step("draw", `{"when":"2"}`)}}, []string{
			`draw{"when":2}`,
			`! actions[0].payload.when: is string but should be integer, null [draw]`,
			`! actions[1].payload.when: is string but should be integer, null [draw]`,
			`! actions[2].payload.when: is string but should be integer, null [draw]`}},
		{"a long explanation", by(0), core.Plan{Steps: []core.Step{step("draw", `{"word":"x"}`)}},
			[]string{`! actions[0].payload.word: x should be one of the allowed values: ` + strings.Repeat("long", 100)[:161] + `… [draw]`}},
		{"many strays", by(0), core.Plan{Extra: map[string]json.RawMessage{"d": nil, "b": nil, "a": nil, "e": nil, "c": nil, strings.Repeat("ä", 40): nil,
			strings.Repeat("f", 64): nil, "blank": json.RawMessage(`" "`), "number": json.RawMessage("5"), "said": json.RawMessage(`"hi"`)}, Steps: []core.Step{
			step("message", `{"text":"Hi!","interface_path":"telegram/-100/7/8"}`),
		}}, []string{
			`message_telegram{"interface_path":"telegram/-100/7/8","priority":"normal","text":"Hi!"}`,
			`! a: unknown top-level key; put what is to be done into actions []`, `! b: unknown top-level key; put what is to be done into actions []`,
			`! blank: unknown top-level key; put what is to be done into actions []`, `! c: unknown top-level key; put what is to be done into actions []`,
			`! d: unknown top-level key; put what is to be done into actions []`,
			`! e: unknown top-level key; put what is to be done into actions []`, `! ` + strings.Repeat("f", 64) + `: unknown top-level key; put what is to be done into actions []`,
			`! number: unknown top-level key; put what is to be done into actions []`,
			`! ` + strings.Repeat("ä", 32) + `…: unknown top-level key; put what is to be done into actions []`}},
	})
}

// TestSuggestions: the plan's suggestions are added to the last message to the place that can show
// them and has none of its own.
func TestSuggestions(t *testing.T) {
	var w world
	s := w.catalogue(t, w.act("ask", func(a *core.Action) {
		a.Schema = json.RawMessage(`{"type":"object","properties":{"suggestions":{"type":"array"},"interface_path":{"type":"string"}}}`)
	}))
	const below = `"interface_path":"telegram/-100/7/8","priority":"normal"`
	for name, tc := range map[string]struct {
		steps []core.Step
		want  []string
	}{
		"the last one": {
			[]core.Step{step("message", `{"text":"a"}`), step("message", `{"text":"b"}`), step("web_search", `{}`), step("none", ``)},
			[]string{`message_telegram{` + at + `,"text":"a"}`, `message_telegram{` + at + `,"suggestions":["yes"],"text":"b"}`, "web_search{}", "NONE"}},
		"not to other places": {
			[]core.Step{step("message", `{"text":"a"}`), step("message", `{"text":"b","interface_path":"telegram/-100/7/8"}`)},
			[]string{`message_telegram{` + at + `,"suggestions":["yes"],"text":"a"}`, `message_telegram{` + below + `,"text":"b"}`}},
		"own suggestions": {
			[]core.Step{step("message", `{"text":"a"}`), step("message", `{"text":"b","suggestions":["no"]}`)},
			[]string{`message_telegram{` + at + `,"suggestions":["yes"],"text":"a"}`, `message_telegram{` + at + `,"suggestions":["no"],"text":"b"}`}},
		"no message":     {[]core.Step{step("web_search", `{}`)}, []string{"web_search{}"}},
		"another action": {[]core.Step{step("ask", `{}`)}, []string{`ask{"interface_path":"telegram/-100/7"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			plan, faults := s.Check(core.Plan{Steps: tc.steps, Suggestions: []string{"yes"}}, by(0))
			wantLines(t, "outcome", outcome(plan, faults), tc.want)
		})
	}
	for name, change := range map[string][2]string{
		"too long":    {`{"type":"string"}}`, `{"type":"string","maxLength":2}}`},
		"no property": {`"suggestions":{"type":"array","items":{"type":"string"}},`, ``},
	} {
		m := w.message("telegram")
		m.Schema = json.RawMessage(strings.Replace(string(m.Schema), change[0], change[1], 1))
		m.Schema = json.RawMessage(strings.Replace(string(m.Schema), `,"additionalProperties":false`, ``, 1))
		s, err := Build(iface{plug{"telegram", []core.Action{m}}})
		if err != nil {
			t.Fatal(err)
		}
		plan, faults := s.Check(core.Plan{Response: "a", Suggestions: []string{"yes"}}, by(0))
		wantLines(t, name, outcome(plan, faults), []string{`message_telegram{` + at + `,"text":"a"}`})
	}
}

// TestMessagesOfOtherKinds: a message action may have a property called message or no path, and a
// mute turn sends nothing.
func TestMessagesOfOtherKinds(t *testing.T) {
	var w world
	m := w.message("telegram")
	m.Schema = json.RawMessage(`{"type":"object","properties":{"message":{"type":"string"},"text":{"type":"string"}}}`)
	free := w.act("free", func(a *core.Action) { a.Concerns, a.Permission = "user", core.PermissionEveryone })
	s, err := Build(iface{plug{"telegram", []core.Action{m}}}, iface{plug{"discord", []core.Action{w.message("discord")}}}, plug{"tools", []core.Action{free}})
	if err != nil {
		t.Fatal(err)
	}
	mute := by(0)
	mute.Mute = true
	granted := s.With(Policy{Grants: []Grant{{From: here, To: core.MustPath("discord/1")}}})
	for name, tc := range map[string]struct {
		s    *Snapshot
		who  Requester
		plan core.Plan
		want []string
	}{
		"its own property":          {s, by(0), core.Plan{Steps: []core.Step{step("message", `{"message":"a"}`)}}, []string{`message_telegram{"message":"a"}`}},
		"a response without a path": {s, by(0), core.Plan{Response: "hi", Steps: []core.Step{step("message", `{"text":"Hi"}`)}}, []string{`message_telegram{"text":"Hi"}`}},
		"mute":                      {s, mute, core.Plan{Response: "hi"}, nil},
		"nobody is concerned":       {s, by(0), core.Plan{Steps: []core.Step{step("free", `{}`)}}, []string{"free{}"}},
		"elsewhere without a path": {granted, by(0), core.Plan{Steps: []core.Step{step("message_discord", `{"text":"a"}`)}},
			[]string{`message_discord{"priority":"normal","text":"a"}`}},
	} {
		plan, faults := tc.s.Check(tc.plan, tc.who)
		wantLines(t, name, outcome(plan, faults), tc.want)
	}
}

// TestConcernsNobody: if a policy requires the person concerned but no property names one, only
// admins may use the action.
func TestConcernsNobody(t *testing.T) {
	var w world
	s := w.catalogue(t).With(Policy{Rules: []Rule{{Actions: []string{"web_search"}, Permission: core.PermissionConcerned}}})
	plan := core.Plan{Steps: []core.Step{step("web_search", `{"n":1}`)}}
	wantLines(t, "a member", outcome(s.Check(plan, by(core.RankMember))), []string{`! actions[0]: web_search is not open to the user who asked for it [web_search]`})
	wantLines(t, "an admin", outcome(s.Check(plan, by(core.RankAdmin))), []string{`web_search{"n":1}`})
}

// TestNobodyIsConcerned: a user without an id is not the person that an empty value names.
func TestNobodyIsConcerned(t *testing.T) {
	var w world
	s := w.catalogue(t)
	anonymous := Requester{Path: here, Authors: []core.Author{{}}}
	for _, payload := range []string{`{"user":""}`, `{}`, `{"user":"1"}`} {
		wantLines(t, payload, outcome(s.Check(core.Plan{Steps: []core.Step{step("forget", payload)}}, anonymous)),
			[]string{`! actions[0]: forget is not open to the user who asked for it [forget]`})
	}
}

func TestCheckDoesNotChangeItsPlan(t *testing.T) {
	var w world
	s := w.catalogue(t)
	plan := core.Plan{Response: "a", Steps: []core.Step{step("message", `{"message":"b"}`)}, Extra: map[string]json.RawMessage{"x": json.RawMessage(`1`)}}
	before, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	s.Check(plan, by(core.RankMember))
	if after, _ := json.Marshal(plan); string(after) != string(before) {
		t.Errorf("before %s\nafter  %s", before, after)
	}
}

// finder is an interface that finds places by name.
type finder struct{ iface }

func (finder) Find(from core.Path, name string) (core.Path, error) {
	switch name {
	case "#thread":
		return core.MustPath(from.String() + "/9"), nil
	case "#other":
		return core.MustPath("telegram/-200"), nil
	}
	return core.Path{}, errors.New("unknown")
}

func TestRecipients(t *testing.T) {
	var w world
	s, err := Build(finder{iface{plug{"telegram", []core.Action{w.message("telegram")}}}})
	if err != nil {
		t.Fatal(err)
	}
	granted := s.With(Policy{Grants: []Grant{{From: here, To: core.MustPath("telegram/-200")}}})
	wide := s.With(Policy{Grants: []Grant{{}}})
	private := by(core.RankMember)
	private.Private = true
	for _, test := range []struct {
		s    *Snapshot
		who  Requester
		name string
		want string
	}{
		{s, by(0), "#thread", `message_telegram{"interface_path":"telegram/-100/7/9","priority":"normal","text":"x"}`},
		{s, by(0), "#other", `! actions[0].payload.recipient: cannot send messages to "#other" from here [message_telegram]`},
		{granted, by(0), "#other", `message_telegram{"interface_path":"telegram/-200","priority":"normal","text":"x"}`},
		{granted, private, "#other", `! actions[0].payload.recipient: cannot send messages to "#other" from here [message_telegram]`},
		{wide, by(0), "#nix", `! actions[0].payload.recipient: cannot send messages to "#nix" from here [message_telegram]`},
		{s, by(0), "#nix", `! actions[0].payload.recipient: cannot send messages to "#nix" from here [message_telegram]`},
	} {
		plan := core.Plan{Steps: []core.Step{step("message_telegram", `{"text":"x","recipient":"`+test.name+`"}`)}}
		wantLines(t, test.name, outcome(test.s.Check(plan, test.who)), []string{test.want})
	}
	for payload, want := range map[string]string{
		`{"text":"x","recipient":""}`:                                          `message_telegram{"interface_path":"telegram/-100/7","priority":"normal","text":"x"}`,
		`{"text":"x","recipient":"#thread","interface_path":""}`:               `message_telegram{"interface_path":"telegram/-100/7/9","priority":"normal","text":"x"}`,
		`{"text":"x","recipient":"#thread","interface_path":null}`:             `message_telegram{"interface_path":"telegram/-100/7/9","priority":"normal","text":"x"}`,
		`{"text":"x","recipient":"#nix","interface_path":"telegram/-100/7/8"}`: `message_telegram{"interface_path":"telegram/-100/7/8","priority":"normal","recipient":"#nix","text":"x"}`,
		`{"text":"x","recipient":4711}`:                                        `! actions[0].payload.recipient: cannot send messages to "4711" from here [message_telegram]`,
		`{"text":"x","recipient":{"name":"#thread"}}`:                          `! actions[0].payload.recipient: is object but should be string [message_telegram]`,
	} {
		wantLines(t, payload, outcome(s.Check(core.Plan{Steps: []core.Step{step("message_telegram", payload)}}, by(0))), []string{want})
	}
}

// TestInterfaceNames: an interface may have another name than its type. Old names still mean it,
// and a plugin that only sends messages counts as one.
func TestInterfaceNames(t *testing.T) {
	var w world
	s, err := Build(
		typedIface{iface{plug{"tg", []core.Action{w.message("tg")}}}}, iface{plug{"telegram", []core.Action{w.message("telegram")}}},
		plug{"board", []core.Action{w.message("board")}},
	)
	if err != nil {
		t.Fatal(err)
	}
	if got := list(s.Offer(by(0))); got != "message_telegram" {
		t.Errorf("unexpected actions offered: %s", got)
	}
	for _, tc := range []struct{ from, given, want string }{
		{"tg/1", "tg/1", "tg/1"},
		{"tg/1", " /tg/1/ ", "tg/1"},
		{"tg/1", "tg_bot/1", "tg/1"},
		{"tg/1", "matrix_interface/1", "tg/1"}, // its type
		{"tg/1", "matrix/1", ""},
		{"tg/1", "telegram_bot/1", "telegram/1"},
		{"telegram/1", "matrix_bot/1", ""},
		{"telegram/1", "tg_interface/1", "tg/1"},
		{"telegram/1", "board/1", "board/1"},
		{"telegram/1", "_bot/1", ""},
		{"nowhere/1", "_bot/1", ""},
		{"telegram/1", "", ""},
		{"telegram/1", "tg/a b", "tg/a%20b"},
	} {
		p, err := s.path(tc.given, Requester{Path: core.MustPath(tc.from)})
		if p.String() != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("%q in %s: %s, %v; want %q", tc.given, tc.from, p, err, tc.want)
		}
	}
}

// typedIface is an interface whose type differs from its name.
type typedIface struct{ iface }

func (typedIface) Type() string { return "matrix" }

func TestNothingLeavesAPrivatePlace(t *testing.T) {
	var w world
	s := w.catalogue(t).With(Policy{Grants: []Grant{{}}}) // from everywhere to everywhere
	who := Requester{Path: core.MustPath("telegram/1000"), Private: true, Authors: []core.Author{{ID: "1000", Rank: core.RankAdmin}}}
	for _, target := range []string{"telegram/-100", "discord/1/2", "telegram/1001", "telegram/10000"} {
		plan, faults := s.Check(core.Plan{Steps: []core.Step{step("message", `{"text":"x","interface_path":"`+target+`"}`)}}, who)
		if len(plan.Steps) != 0 || len(faults) != 1 {
			t.Errorf("to %s: got steps %v and faults %v, want one fault", target, plan.Steps, faults)
		}
	}
	who.Private = false
	if plan, faults := s.Check(core.Plan{Steps: []core.Step{step("message", `{"text":"x","interface_path":"discord/1/2"}`)}}, who); len(plan.Steps) != 1 {
		t.Errorf("a granted message has faults %v", faults)
	}
}

// TestTarget: a step's target fills the property of the payload that it fits, if there is one.
func TestTarget(t *testing.T) {
	w := &world{}
	move := w.act("move", func(a *core.Action) {
		a.Confirm = true
		a.Schema = json.RawMessage(`{"type":"object","properties":{"target":{"type":"string","enum":["trash","archive"]}}}`)
	})
	open := w.act("open", func(a *core.Action) {
		a.Schema = json.RawMessage(`{"type":"object","properties":{"url":{"type":"string"},"n":{"type":"integer"},"tab":{"type":"string"}},"required":["url","n"]}`)
	})
	s := w.catalogue(t, move, open)
	for _, tc := range []struct{ name, payload, target, want, fault string }{
		{"open", `{"n":1}`, "/x", `{"n":1,"url":"/x"}`, ""},
		{"open", `{"n":1,"url":"/y"}`, "/x", `{"n":1,"url":"/y"}`, ""},
		{"open", `{}`, "/x", "", "'url', 'n'"},
		{"open", `{"url":"/x"}`, "1", "", "required property 'n'"},
		{"message", `{}`, "#general", "", "required property 'text'"},
		{"move", `{}`, "trash", `{"target":"trash"}`, ""},
		{"move", `{"target":"trash"}`, "trash", `{"target":"trash"}`, ""},
		{"move", `{"target":"trash"}`, "archive", "", "differs from payload.target"},
		{"move", `{}`, "inbox", "", "trash"},
		{"move", `{"target":"inbox"}`, "", "", "trash"},
		{"web_search", `{"n":1}`, "inbox", `{"n":1}`, ""},
	} {
		aimed := step(tc.name, tc.payload, func(s *core.Step) { s.Target = tc.target })
		p, faults := s.Check(core.Plan{Steps: []core.Step{aimed}}, by(core.RankMember))
		if tc.fault != "" {
			if len(p.Steps) != 0 || len(faults) != 1 || !strings.Contains(faults[0].String(), tc.fault) {
				t.Errorf("%+v: got steps %v and faults %v", tc, p.Steps, faults)
			}
			continue
		}
		if len(faults) != 0 || len(p.Steps) != 1 || string(p.Steps[0].Payload) != tc.want || p.Steps[0].Target != "" {
			t.Errorf("%+v: got steps %+v and faults %v", tc, p.Steps, faults)
			continue
		}
		done := run(t, NewRuntime(Options{}), newJournal().job(s, by(core.RankMember), p.Steps...))
		if h := done[0].Held; h != nil && !strings.Contains(h.Question, "target: trash") {
			t.Errorf("the question does not show the target: %q", h.Question)
		}
	}
}
