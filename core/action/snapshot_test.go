package action

import (
	"encoding/json"
	"strings"
	"testing"

	"synthbot/core"
)

// wantError checks that the error contains all parts.
func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one with %q", parts)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("the error lacks %q:\n%v", p, err)
		}
	}
}

func TestLint(t *testing.T) {
	var w world
	form := func(s string) func(*core.Action) {
		return func(a *core.Action) { a.Schema = json.RawMessage(s) }
	}
	tests := []struct {
		name   string
		change func(*core.Action)
		want   string
	}{
		{"upper case", func(a *core.Action) { a.Name = "Do_It" }, "name: must match"},
		{"no name", func(a *core.Action) { a.Name = "" }, "name: must match"},
		{"built-in", func(a *core.Action) { a.Similes = []string{"KEEP TALKING"} }, "taken by the built-in CONTINUE"},
		{"empty simile", func(a *core.Action) { a.Similes = []string{"__"} }, "between 1 and 64"},
		{"long simile", func(a *core.Action) { a.Similes = []string{strings.Repeat("x", 65)} }, "between 1 and 64"},
		{"message", func(a *core.Action) { a.Name = "message_board" }, "reserved for the interface"},
		{"no brief", func(a *core.Action) { a.Brief = " " }, "brief: is empty"},
		{"long brief", func(a *core.Action) { a.Brief = strings.Repeat("ä", 100) }, "100 characters"},
		{"two lines", func(a *core.Action) { a.Brief = "a\nb" }, "one line"},
		{"no code", func(a *core.Action) { a.Do = nil }, "code: is missing"},
		{"no schema", func(a *core.Action) { a.Schema = nil }, "schema: is missing"},
		{"no JSON", form(`{`), "schema: unexpected EOF"},
		{"no object", form(`{"type":"string"}`), "must describe an object"},
		{"no object either", form(`true`), "must describe an object"},
		{"unknown type", form(`{"type":"object","properties":{"a":{"type":"objekt"}}}`), "unknown type objekt"},
		{"unknown type further on", form(`{"type":"object","properties":{"a":{},"b":{"type":["string","objekt"]}}}`), "unknown type objekt"},
		{"a union of draft 3", form(`{"type":"object","properties":{"a":{"type":["string",{"type":"integer"}]}}}`), "type must be a name or an array of names; use anyOf for schemas"},
		{"unknown type in a choice", form(`{"type":"object","anyOf":[{"type":"objekt"}]}`), "unknown type objekt"},
		{"required is no list", form(`{"type":"object","properties":{"a":{}},"required":"a"}`), "required must be an array"},
		{"a property that is no schema", form(`{"type":"object","properties":{"a":"string"}}`), "a schema must be an object"},
		{"required of another object", form(`{"type":"object","properties":{"a":{"type":"object","required":["b"]},"b":{}}}`), `required field "b" has no property`},
		{"required without property", form(`{"type":"object","properties":{"a":{}},"required":["b"]}`), `required field "b" has no property`},
		{"required deep inside", form(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{},"required":["x"]}}}}`), `required field "x"`},
		{"dangling ref", form(`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}}}`), "leads nowhere"},
		{"remote ref", form(`{"type":"object","properties":{"a":{"$ref":"http://127.0.0.1:1/x.json"}}}`), "leads nowhere"},
		{"bad pattern", form(`{"type":"object","properties":{"a":{"type":"string","pattern":"("}}}`), "pattern"},
		{"too long", form(`{"type":"object","description":"` + strings.Repeat("x", 64<<10) + `"}`), "at most 65536"},
		{"too deep", form(strings.Repeat(`{"not":`, 70) + "{}" + strings.Repeat("}", 70)), "levels deep"},
		{"example refused", func(a *core.Action) {
			a.Examples.Examples = []core.Example{{Scenario: "bad", Payload: json.RawMessage(`{"n":"x"}`)}}
		}, `example "bad": payload.n: is string but should be integer`},
		{"example that is no JSON", func(a *core.Action) {
			a.Examples.Examples = []core.Example{{Scenario: "bad", Payload: json.RawMessage(`{`)}}
		}, `example "bad": unexpected EOF`},
		{"default refused", form(`{"type":"object","properties":{"a":{"type":"string","enum":["x"],"default":"y"}}}`), "default: payload.a: y should be one of"},
		{"output schema", func(a *core.Action) { a.Output = json.RawMessage(`{"type":"x"}`) }, "output schema: unknown type x"},
		{"limits", func(a *core.Action) { a.Retries = -1 }, "must not be negative"},
		{"limits of time", func(a *core.Action) { a.Timeout = -1 }, "must not be negative"},
		{"limits of the cache", func(a *core.Action) { a.Cache = -1 }, "must not be negative"},
		{"limits of a rate", func(a *core.Action) { a.RateLimit.Count = -1 }, "must not be negative"},
		{"limits of a rate's time", func(a *core.Action) { a.RateLimit.Per = -1 }, "must not be negative"},
		{"half a rate", func(a *core.Action) { a.RateLimit.Per = 1 }, "needs a count and a time"},
		{"the other half", func(a *core.Action) { a.RateLimit.Count = 1 }, "needs a count and a time"},
		{"busy", func(a *core.Action) { a.Busy = "wait" }, `unknown way "wait"`},
		{"permission", func(a *core.Action) { a.Permission = "friends" }, `unknown "friends"`},
		{"concerned", func(a *core.Action) { a.Permission, a.Concerns = core.PermissionConcerned, "whom" }, `"whom", which is not a property`},
		{"dependency", func(a *core.Action) { a.DependsOn = []string{"nothing"} }, "depends on nothing, which nobody offers"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := build(true, plug{"tools", []core.Action{w.act("good"), w.act("tried", test.change)}})
			wantError(t, err, "of tools", test.want)
		})
	}
}

// TestLintLetsPass: unusual but valid actions are accepted.
func TestLintLetsPass(t *testing.T) {
	var w world
	for name, change := range map[string]func(*core.Action){
		"its own name":    func(a *core.Action) { a.Similes = []string{"TRIED", "tri-ed"} },
		"a long name":     func(a *core.Action) { a.Name = strings.Repeat("x", 64) },
		"a long simile":   func(a *core.Action) { a.Similes = []string{strings.Repeat("y", 64)} },
		"a long brief":    func(a *core.Action) { a.Brief = strings.Repeat("ä", maxBrief-1) },
		"a nil of limits": func(a *core.Action) { a.RateLimit, a.Busy = core.RateLimit{Count: 1, Per: 1}, core.BusyQueue },
	} {
		if _, err := build(true, plug{"tools", []core.Action{w.act("tried", change)}}); err != nil {
			t.Errorf("%s: unexpected error %v", name, err)
		}
	}
	for _, schema := range []string{
		`{}`,
		`{"type":"object","properties":{"a":{},"b":true},"anyOf":[{"required":["a"]},{"required":["b"]}]}`,
		`{"type":"object","properties":{"a":{}},"if":{"properties":{"b":{}},"required":["a","b"]},"then":{"required":["a"]},"else":{"not":{"required":["a"]}}}`,
		`{"type":"object","patternProperties":{"^x":{}},"required":["x1"]}`,
		`{"type":"object","$ref":"#/$defs/d","required":["a"],"$defs":{"d":{"properties":{"a":{}}}}}`,
		`{"type":"object","allOf":[{"properties":{"a":{}}}],"required":["a"]}`,
		`{"type":"object","properties":{"n":{"type":["integer","null"],"minimum":1,"default":null}}}`,
		`{"type":"object","properties":{"o":{"type":"object","properties":{"a":{},"b":{"default":1}},"required":["a"]}}}`,
		`{"type":"object","properties":{"o":{"type":"object","default":{},"properties":{"a":{}},"required":["a"]}}}`,
		`{"type":"object","properties":{"a":{"default":1},"b":{}},"minProperties":2}`,
		`{"type":"object","title":""}`,
		`{"type":"object","description":"` + strings.Repeat("x", 64<<10-34) + `"}`,
		strings.Repeat(`{"not":`, 64-1) + "{}" + strings.Repeat("}", 64-1),
	} {
		if _, err := build(true, plug{"tools", []core.Action{w.act("tried", func(a *core.Action) { a.Schema = json.RawMessage(schema) })}}); err != nil {
			t.Errorf("%.200s: unexpected error %v", schema, err)
		}
	}
}

func TestLintTellsEverythingAtOnce(t *testing.T) {
	var w world
	_, err := build(true,
		plug{"one", []core.Action{w.act("a", func(a *core.Action) { a.Brief = "" }), w.act("look_up")}},
		plug{"two", []core.Action{w.act("lookup"), w.act("b", func(a *core.Action) { a.Similes = []string{"LOOK-UP"} })}},
		plug{"two", []core.Action{w.act("c", func(a *core.Action) { a.Brief = "" })}},
		panics{},
		plug{"refs", []core.Action{w.act("r", func(a *core.Action) {
			a.Schema = json.RawMessage(`{"type":"object","properties":{"x":{"$ref":"#/b"},"y":{"$ref":"#/a"},"z":{"$ref":"#/b"}}}`)
		})}},
	)
	if err != nil && strings.Contains(err.Error(), "action c") {
		t.Errorf("the error names an action of a plugin without a valid name: %v", err)
	}
	wantError(t, err, "action a of one: brief", `action lookup of two: the name "lookup" is taken by look_up of one`,
		`action b of two: the name "LOOK-UP" is taken by look_up of one`, "plugin two: the name is taken", "plugin panics: panic: boo",
		"$ref #/a, #/b leads nowhere")
}

// TestExternalNamesGiveWay: in any order of plugins, an external action never replaces an internal
// one of the same name.
func TestExternalNamesGiveWay(t *testing.T) {
	var w world
	external := func(similes ...string) func(*core.Action) {
		return func(a *core.Action) { a.External, a.Similes = true, similes }
	}
	long := strings.Repeat("n", maxName)
	s, err := Build(
		plug{"files", []core.Action{w.act("reminder.set", external("free", "remember")), w.act(long, external()), w.act("own", external())}},
		plug{"other", []core.Action{w.act("own", external()), w.act("own_other", external())}},
		plug{"reminders", []core.Action{w.act("reminder_set", func(a *core.Action) { a.Similes = []string{"remember"} }), w.act(long)}},
	)
	if err != nil {
		t.Fatal(err)
	}
	for name, owner := range map[string]string{
		"reminder_set": "reminders", "remember": "reminders", "reminder.set_files": "files", "free": "files", long: "reminders",
		long[:maxName-len("_files")] + "_files": "files", "own": "files", "own_other": "other", "own_other_other": "other",
	} {
		if d, ok := s.Resolve(name); !ok || d.Owner != owner {
			t.Errorf("%s is an action of %v, want %s", name, d, owner)
		}
	}
}

type panics struct{}

func (panics) Name() string           { return "panics" }
func (panics) Actions() []core.Action { panic("boo") }

func TestCirclesAreRefused(t *testing.T) {
	var w world
	on := func(names ...string) func(*core.Action) {
		return func(a *core.Action) { a.DependsOn = names }
	}
	_, err := Build(plug{"tools", []core.Action{w.act("a", on("b")), w.act("b", on("C")), w.act("c", on("a")), w.act("d", on("a"))}})
	wantError(t, err, "a → b → c → a")
	if err != nil && strings.Count(err.Error(), "in a circle") != 1 {
		t.Errorf("the circle is reported more than once: %v", err)
	}
	_, err = Build(plug{"tools", []core.Action{w.act("self", on("self"))}})
	wantError(t, err, "self → self")
	needs := []string{"B", "c"}
	s, err := Build(plug{"tools", []core.Action{w.act("a", on(needs...)), w.act("b", on("C")), w.act("c")}})
	if err != nil {
		t.Fatalf("unexpected error without a circle: %v", err)
	}
	wantLines(t, "what the plugin said", needs, []string{"B", "c"})
	wantLines(t, "done", describe(run(t, NewRuntime(Options{}), newJournal().job(s, by(0), step("a", `{}`), step("b", `{}`), step("c", `{}`)))),
		[]string{"3 c done", "2 b done", "1 a done"})
}

func TestResolve(t *testing.T) {
	var w world
	s := w.catalogue(t)
	for name, want := range map[string]string{
		"web_search": "web_search", "WEB_SEARCH": "web_search", "web-search": "web_search", "Web Search": "web_search", "web.search": "web_search", "websearch": "web_search",
		"google_it": "web_search", "GoogleIt": "web_search", "web_searches": "", "": "", strings.Repeat("x", 200): "", "NONE": "",
		"web_search" + strings.Repeat("_", 100): "web_search",
	} {
		d, ok := s.Resolve(name)
		if ok != (want != "") || ok && d.Name != want {
			t.Errorf("Resolve(%q) = %v, %v; want %q", name, d, ok, want)
		}
	}
	if d, _ := s.Resolve("ban"); d.Title() != "Do ban" {
		t.Errorf("unexpected title %q", d.Title())
	}
	for title, want := range map[string]string{`"Ban somebody"`: "Ban somebody", `""`: "Do ban", "5": "Do ban"} {
		ban := w.act("ban", func(a *core.Action) { a.Schema = json.RawMessage(`{"type":"object","title":` + title + `}`) })
		d := &Definition{Action: ban, Owner: "tools"}
		if err := d.complete(true); err == nil && d.Title() != want {
			t.Errorf("the schema's title %s: got %q", title, d.Title())
		}
	}
	if d, ok := s.Message("telegram"); !ok || d.Name != "message_telegram" {
		t.Error("telegram has no message action")
	}
	if _, ok := s.Message("tools"); ok {
		t.Error("tools has a message action")
	}
}

func TestOffer(t *testing.T) {
	var w world
	s := w.catalogue(t)
	elsewhere := by(core.RankMember)
	elsewhere.Path = core.MustPath("discord/1/2")
	tests := []struct {
		name string
		who  Requester
		want string
	}{
		{"a member", by(core.RankMember), "message_telegram telegram_pin web_fetch web_search forget transfer"},
		{"a moderator", by(core.RankModerator), "message_telegram telegram_pin web_fetch web_search ban forget transfer"},
		{"an admin", by(core.RankAdmin), "message_telegram telegram_pin web_fetch web_search ban forget send_file transfer"},
		{"several", by(core.RankAdmin, core.RankMember), "message_telegram telegram_pin web_fetch web_search"},
		{"two moderators", by(core.RankModerator, core.RankAdmin), "message_telegram telegram_pin web_fetch web_search ban"},
		{"nobody", Requester{Path: here}, "message_telegram telegram_pin web_fetch web_search"},
		{"the bot", by(core.RankBot), "message_telegram telegram_pin web_fetch web_search ban beat_note forget send_file"},
		{"elsewhere", elsewhere, "message_discord web_fetch web_search forget transfer"},
	}
	for _, test := range tests {
		if got := list(s.Offer(test.who)); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.name, got, test.want)
		}
	}
}

func list(ds []*Definition) string {
	names := make([]string, len(ds))
	for i, d := range ds {
		names[i] = d.Name
	}
	return strings.Join(names, " ")
}

func TestPolicy(t *testing.T) {
	var w world
	s := w.catalogue(t).With(Policy{
		Rules: []Rule{
			{Actions: []string{"web_*"}, Permission: Nobody},
			{Path: core.MustPath("telegram"), Actions: []string{"web_search"}, Permission: core.PermissionEveryone},
			{Path: here, Actions: []string{"send_*", "forget", "transfer"}, Permission: core.PermissionEveryone},
			{Path: core.MustPath("discord/1"), Actions: []string{"*"}, Permission: core.PermissionAdmins},
		},
		Grants: []Grant{{From: here, To: core.MustPath("discord/1")}},
	})
	if got := list(s.Offer(by(core.RankMember))); got != "forget message_discord message_telegram send_file telegram_pin web_search transfer" {
		t.Errorf("unexpected actions offered: %s", got)
	}
	private := by(core.RankMember)
	private.Private = true
	if got := list(s.Offer(private)); strings.Contains(got, "discord") {
		t.Errorf("unexpected actions offered in private: %s", got)
	}
	scoped := by(core.RankMember)
	scoped.Path, scoped.Scopes = core.MustPath("telegram/5"), []core.Path{core.MustPath("discord/1/9")}
	if got := list(s.Offer(scoped)); got != "" {
		t.Errorf("unexpected actions offered in a scope: %s", got)
	}
}

// TestPolicyOfPlaces: lists, grants and the kind of turn decide which actions are available in a
// place.
func TestPolicyOfPlaces(t *testing.T) {
	var w world
	s := w.catalogue(t)
	who := func(change func(*Requester)) Requester {
		w := by(core.RankMember)
		if change != nil {
			change(&w)
		}
		return w
	}
	only := func(path string, names ...string) Only { return Only{Path: core.MustPath(path), Actions: names} }
	for name, tc := range map[string]struct {
		policy Policy
		who    Requester
		want   string
	}{
		"a list":              {Policy{Only: []Only{only("telegram", "web_*")}}, who(nil), "message_telegram telegram_pin web_fetch web_search"},
		"a list of others":    {Policy{Only: []Only{only("discord", "web_*")}}, who(nil), "message_telegram telegram_pin web_fetch web_search forget transfer"},
		"a list of a scope":   {Policy{Only: []Only{only("group/1")}}, who(func(w *Requester) { w.Scopes = []core.Path{core.MustPath("group/1/2")} }), "message_telegram telegram_pin"},
		"the nearest list":    {Policy{Only: []Only{only("telegram/-100", "web_search", "ban"), only("telegram", "forget")}}, who(nil), "message_telegram telegram_pin web_search"},
		"a bad pattern":       {Policy{Only: []Only{only("telegram", "[", "web_fetch")}}, who(nil), "message_telegram telegram_pin web_fetch"},
		"mute":                {Policy{}, who(func(w *Requester) { w.Mute = true }), "web_fetch web_search forget transfer"},
		"only some":           {Policy{}, who(func(w *Requester) { w.Only = []string{"web_*", "telegram_*"} }), "telegram_pin web_fetch web_search"},
		"only some, and mute": {Policy{}, who(func(w *Requester) { w.Only, w.Mute = []string{"web_*", "telegram_*"}, true }), "web_fetch web_search"},
		"granted": {Policy{Grants: []Grant{{From: here, To: core.MustPath("discord/1")}}}, who(nil),
			"message_discord message_telegram telegram_pin web_fetch web_search forget transfer"},
		"granted everywhere":  {Policy{Grants: []Grant{{From: here}}}, who(nil), "message_discord message_telegram telegram_pin web_fetch web_search forget transfer"},
		"granted elsewhere":   {Policy{Grants: []Grant{{From: here, To: core.MustPath("telegram/5")}}}, who(nil), "message_telegram telegram_pin web_fetch web_search forget transfer"},
		"granted to others":   {Policy{Grants: []Grant{{From: core.MustPath("telegram/5"), To: core.MustPath("discord/1")}}}, who(nil), "message_telegram telegram_pin web_fetch web_search forget transfer"},
		"somebody without id": {Policy{}, Requester{Path: here, Authors: []core.Author{{}}}, "message_telegram telegram_pin web_fetch web_search forget"},
		"the nearest rule": {Policy{Rules: []Rule{{Path: here, Actions: []string{"web_fetch"}, Permission: core.PermissionEveryone}, {Path: core.MustPath("telegram"), Actions: []string{"web_*"}, Permission: Nobody}}},
			who(nil), "message_telegram telegram_pin web_fetch forget transfer"},
		"of equal rules the last": {Policy{Rules: []Rule{{Actions: []string{"web_*"}, Permission: Nobody}, {Actions: []string{"web_fetch"}, Permission: core.PermissionEveryone}}},
			who(nil), "message_telegram telegram_pin web_fetch forget transfer"},
	} {
		if got := list(s.With(tc.policy).Offer(tc.who)); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
	if got := list(s.Offer(who(nil))); got != "message_telegram telegram_pin web_fetch web_search forget transfer" {
		t.Errorf("another policy changed the catalogue: %s", got)
	}
}

// TestGrantsEndAtTheirPlace: a grant allows messages to its place only.
func TestGrantsEndAtTheirPlace(t *testing.T) {
	var w world
	s := w.catalogue(t).With(Policy{Grants: []Grant{{From: core.MustPath("telegram/-100"), To: core.MustPath("discord/1")}}})
	for target, open := range map[string]bool{"discord/1/2": true, "discord/1": true, "discord/2": false, "telegram/-100": false} {
		plan, faults := s.Check(core.Plan{Steps: []core.Step{step("message", `{"text":"x","interface_path":"`+target+`"}`)}}, by(0))
		if (len(plan.Steps) == 1) != open {
			t.Errorf("to %s: unexpected faults %v", target, faults)
		}
	}
	other := by(0)
	other.Path = core.MustPath("telegram/-200")
	s = s.With(Policy{Grants: []Grant{{From: core.MustPath("telegram/-100"), To: core.MustPath("telegram/-300")}}})
	for _, who := range []Requester{by(0), other} {
		plan, _ := s.Check(core.Plan{Steps: []core.Step{step("message", `{"text":"x","interface_path":"telegram/-300"}`)}}, who)
		if (len(plan.Steps) == 1) != (who.Path == here) {
			t.Errorf("from %s: unexpected steps %v", who.Path, plan.Steps)
		}
	}
}
