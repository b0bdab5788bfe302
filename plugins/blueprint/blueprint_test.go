package blueprint

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"synthbot/config"
	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/secret"
	"synthbot/plugins/plugintest"
	"synthbot/plugins/standard"
)

const bankFile = "testdata/bank/ai-tools.json"

// file writes a blueprint and returns its path.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ai-tools.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// with returns a blueprint with one tool.
func with(tool string) string {
	return `{"name":"x","version":"1.0.0","description":"x","endpoint":"https://x.example","capabilities":{"tools":[` + tool + `]}}`
}

func TestConform(t *testing.T) {
	plugintest.Conform(t, plugintest.Case{Name: "blueprint", Make: func(t *testing.T, s *plugintest.Harness) core.Plugin {
		p, err := New(s.Host, Config{Sources: []Source{{Path: bankFile, Command: []string{"cat"}}}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}})
}

func TestCheck(t *testing.T) {
	if faults := faultsOf(bankFile); len(faults) > 0 {
		t.Errorf("faults of the bank: %v", faults)
	}
	deep := strings.Repeat(`{"type":"array","items":`, 70) + `{}` + strings.Repeat("}", 70)
	for name, tc := range map[string]struct {
		text string
		want []string // parts of the faults, in any order
	}{
		"no JSON":        {"{\n\n,", []string{"line 3"}},
		"a wrong type":   {"{\n\"capabilities\": {\"tools\": [{\"name\": 5}]}}", []string{"the agent has no address", "name is missing", "description is missing", "version is missing", "tool 1: is left out: name must be string, not number"}},
		"more":           {`{} {}`, []string{"more text follows"}},
		"nothing":        {`{}`, []string{"capabilities.tools is missing", "name is missing", "description is missing", "version is missing"}},
		"no schema":      {with(`{"name":"a","description":"x"}`), []string{"a: is left out: inputSchema is missing"}},
		"no name":        {with(`{"description":"x","inputSchema":{"type":"object"}}`), []string{"is left out: name is missing"}},
		"a bad name":     {with(`{"name":"ä","description":"x","inputSchema":{"type":"object"}}`), []string{"is left out: name: \"ä\" must match"}},
		"no description": {with(`{"name":"a","inputSchema":{"type":"object"}}`), []string{"a: description is missing"}},
		"no object":      {with(`{"name":"a","description":"x","inputSchema":{"type":"string"}}`), []string{"must describe an object"}},
		"a bad type":     {with(`{"name":"a","description":"x","inputSchema":{"type":"object","properties":{"x":{"type":"strin"}}}}`), []string{"unknown type strin"}},
		"a loose ref":    {with(`{"name":"a","description":"x","inputSchema":{"type":"object","properties":{"x":{"$ref":"#/$defs/Nix"}}}}`), []string{"leads nowhere"}},
		"a far ref":      {with(`{"name":"a","description":"x","inputSchema":{"$ref":"http://127.0.0.1/schema"}}`), []string{"leads nowhere"}},
		"output":         {with(`{"name":"a","description":"x","inputSchema":{"type":"object"},"outputSchema":{"type":"x"}}`), []string{"output schema: unknown type"}},
		"required":       {with(`{"name":"a","description":"x","inputSchema":{"type":"object","properties":{},"required":["b"]}}`), []string{`required field "b" has no property`}},
		"an example":     {with(`{"name":"a","description":"x","inputSchema":{"type":"object","properties":{"x":{"type":"integer"}}},"examples":[{"payload":{"x":"y"}}]}`), []string{"example"}},
		"deep":           {with(`{"name":"a","description":"x","inputSchema":{"type":"object","properties":{"x":` + deep + `}}}`), []string{"levels deep"}},
		"too deep":       {strings.Repeat("[", 100) + strings.Repeat("]", 100), []string{"levels deep"}},
		"twice":          {with(`{"name":"a_b","description":"x","inputSchema":{"type":"object"}},{"name":"aB","description":"x","inputSchema":{"type":"object"}}`), []string{"a_b: another tool has the same name; this one is offered as a_b_", "aB: another tool has the same name; this one is offered as a_b_"}},
		"a message":      {with(`{"name":"message_x","description":"x","inputSchema":{"type":"object"}}`), []string{"reserved for the interface"}},
		"permission":     {with(`{"name":"a","description":"x","inputSchema":{"type":"object"},"security":{"permission":"all"}}`), []string{`"all" is none of`}},
		"method":         {with(`{"name":"a","description":"x","inputSchema":{"type":"object"},"endpoint":{"method":"TRACE"}}`), []string{`"TRACE" is none of`}},
		"version":        {strings.Replace(with(`{"name":"a","description":"x","inputSchema":{"type":"object"}}`), "1.0.0", "one", 1), []string{"not a semantic version"}},
		"endpoint":       {strings.Replace(with(`{"name":"a","description":"x","inputSchema":{"type":"object"}}`), "https://x.example", "ftp://x", 1), []string{"is not an address"}},
		"no endpoint":    {strings.Replace(with(`{"name":"a","description":"x","inputSchema":{"type":"object"}}`), "https://x.example", "", 1), []string{"the agent has no address"}},
	} {
		var got []string
		for _, f := range faultsOf(file(t, tc.text)) {
			got = append(got, f.String())
		}
		if len(got) != len(tc.want) {
			t.Errorf("%s: got %q", name, got)
			continue
		}
		for _, want := range tc.want {
			if !slices.ContainsFunc(got, func(f string) bool { return strings.Contains(f, want) }) {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
	}
	if faults := faultsOf("testdata/none.json"); len(faults) != 1 || faults[0].Warning {
		t.Errorf("got %v", faults)
	}
}

// faultsOf returns the faults of a file, without those about headers.
func faultsOf(file string) []Fault {
	c := Config{Sources: []Source{{Path: file, Headers: map[string]secret.Secret{"X-Key": secret.New("x")}}}}
	return c.Faults()
}

func TestConfig(t *testing.T) {
	for text, want := range map[string]string{
		"[[source]]":                                                "path",
		"[[source]]\npath=\"x\"\nprefix=\"A B\"":                    "at most 32 letters",
		"[[source]]\npath=\"x\"\ntools=[\"[\"]":                     "is not a pattern",
		"[[source]]\npath=\"x\"\nurl=\"x\"":                         "https://host/path",
		"[[source]]\npath=\"x\"\nurl=\"http://x\"\ncommand=[\"x\"]": "remove one of them",
		"[[source]]\npath=\"x\"\ncommand=[\"\"]":                    "the program has no name",
		"[[source]]\npath=\"x\"\nheaders={\"a b\"=\"x\"}":           "is not a valid header name",
		"[[source]]\npath=\"x\"\nenv={\"a b\"=\"x\"}":               "is not a valid variable name",
		"[[source]]\npath=\"x\"\nconfirm=\"maybe\"":                 "one of",
	} {
		var c Config
		if err := config.Read("blueprint.toml", []byte(text), &c, config.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	c := Config{Sources: []Source{{Path: "bank"}, {Path: "bank/ai-tools.json", Prefix: "b.", Tools: []string{"nix*"}}, {Path: "none"}, {Path: ".", Tools: []string{"x"}}}, Dir: "testdata"}
	var got []string
	for _, f := range c.Faults() {
		if !f.Warning {
			got = append(got, f.String())
		}
	}
	if all := strings.Join(got, "\n"); len(got) != 3 || !strings.Contains(all, "testdata/bank/ai-tools.json: no tool matches") || !strings.Contains(all, "none") || !strings.Contains(all, "no .json file") {
		t.Errorf("got %s", all)
	}
	if _, err := New(core.Host{Log: plugintest.NewHarness(t, "blueprint").Host.Log}, c); err == nil {
		t.Error("New accepts the faulty Config")
	}
}

// TestGuide checks that the example in the guide is valid.
func TestGuide(t *testing.T) {
	text, err := os.ReadFile("../../docs/blueprints.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```json\n")
	example, _, _ := strings.Cut(rest, "```")
	if faults := faultsOf(file(t, example)); len(faults) > 0 {
		t.Errorf("got %v", faults)
	}
}

func TestClashes(t *testing.T) {
	tool := `{"name":"a_b","description":"x","inputSchema":{"type":"object"}}`
	c := Config{Sources: []Source{{Path: file(t, with(tool))}, {Path: file(t, with(strings.Replace(tool, "a_b", "aB", 1)))}}}
	if f := c.Faults(); len(f) != 2 || !f[0].Warning || !strings.Contains(f[0].String(), "offered as a_b_") {
		t.Errorf("got %v", f)
	}
	c.Sources[1].Prefix = "x."
	if f := c.Faults(); len(f) != 0 {
		t.Errorf("got %v", f)
	}
}

// TestOneBadTool checks that a faulty tool disables at most itself.
func TestOneBadTool(t *testing.T) {
	tools := []string{
		`{"name":"good","description":"x","inputSchema":{"type":"object"}}`,
		`{"name":"null_default","description":"x","inputSchema":{"type":"object","properties":{"a":{"type":"string","default":null}}}}`,
		`{"name":"odd_default","description":"x","inputSchema":{"type":"object","properties":{"a":{"type":"integer","default":"ten"}}}}`,
		`{"name":"draft4","description":"x","inputSchema":{"type":"object","properties":{"a":{"type":"number","minimum":0,"exclusiveMinimum":true}}}}`,
		`{"name":"email","description":"x","inputSchema":{"type":"object","properties":{"a":{"type":"string","pattern":"^(?!\\.)x"}}}}`,
		`{"name":"car.rental","description":"x","inputSchema":{"type":"object"}}`,
		`{"name":"car_rental","description":"x","inputSchema":{"type":"object"}}`,
		`{"name":"output","description":"x","inputSchema":{"type":"object"},"outputSchema":{"type":"strange"}}`,
		`{"name":"` + strings.Repeat("n", 64) + `","description":"x","inputSchema":{"type":"object"}}`,
		`{"name":"` + strings.Repeat("n", 63) + `_","description":"x","inputSchema":{"type":"object"}}`,
		`{"name":"` + strings.Repeat("n", 63) + `.","description":"x","inputSchema":{"type":"object"}}`,
		`{"name":"bad_type","description":"x","inputSchema":{"type":"object","properties":{"a":{"type":"strange"}}}}`,
		`{"name":"unreadable","description":7,"inputSchema":{"type":"object"}}`,
	}
	c := Config{Sources: []Source{{Path: file(t, with(strings.Join(tools, ",")))}}}
	var said []string
	for _, f := range c.Faults() {
		if said = append(said, f.String()); !f.Warning {
			t.Errorf("rejected: %s", f)
		}
	}
	for _, want := range []string{
		`odd_default: inputSchema: a: the default "ten"`, `email: inputSchema: a: the pattern`, "car.rental: another tool has the same name; this one is offered as car.rental_",
		"output: outputSchema is not used", "bad_type: is left out: schema: unknown type strange", "tool 13: is left out: description must be string",
	} {
		if !slices.ContainsFunc(said, func(text string) bool { return strings.Contains(text, want) }) {
			t.Errorf("no %q in the log %q", want, said)
		}
	}
	p, err := New(plugintest.NewHarness(t, "blueprint").Host, c)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(p.Actions()); got != len(tools)-2 {
		t.Errorf("got %d actions", got)
	}
	if _, err := action.Build(p); err != nil {
		t.Error(err)
	}
}

// TestRights checks that a file cannot grant permissions.
func TestRights(t *testing.T) {
	const reads, writes = `"annotations":{"readOnlyHint":true},`, ``
	for _, tc := range []struct {
		config, confirm string
		tool            string
		want            core.Permission
		asks            bool
	}{
		{"", "", reads, core.PermissionEveryone, false},
		{"", "", writes, core.PermissionAdmins, true},
		{"everyone", "", writes, core.PermissionEveryone, true},
		{"everyone", "never", writes, core.PermissionEveryone, false},
		{"everyone", "always", reads, core.PermissionEveryone, true},
		{"moderators", "", reads, core.PermissionModerators, false},
		{"", "", reads + `"security":{"permission":"admins","requiresConfirmation":true},`, core.PermissionAdmins, true},
		{"", "", writes + `"security":{"permission":"everyone"},`, core.PermissionAdmins, true},
		{"everyone", "never", writes + `"security":{"permission":"moderators","requiresConfirmation":true},`, core.PermissionModerators, true},
		{"moderators", "", reads + `"security":{"permission":"everyone"},`, core.PermissionModerators, false},
		{"admins", "", `"_meta":{"synthbot":{"brief":"Do it","permission":"everyone","essential":true,"timeout":"9h","retries":50}},`, core.PermissionAdmins, false},
		{"", "", `"_meta":{"synthbot":{"brief":"Do it","permission":"everyone","outside":true}},`, core.PermissionAdmins, true},
	} {
		s := Source{Path: file(t, with(`{"name":"a","description":"x",`+tc.tool+`"inputSchema":{"type":"object"}}`)), Permission: tc.config, Confirm: tc.confirm}
		p, err := New(plugintest.NewHarness(t, "blueprint").Host, Config{Sources: []Source{s}})
		if err != nil {
			t.Fatal(err)
		}
		a := p.Actions()[0]
		if a.Allows() != tc.want || a.Confirm != tc.asks || a.Essential || a.Timeout > time.Minute || a.Retries > 2 {
			t.Errorf("%+v: permission %s, confirm %t, %+v", tc, a.Allows(), a.Confirm, a)
		}
	}
}

// TestLimitsOfTools checks that a tool's timeout, cache, rate and order in the file apply, within the limits of
// the source.
func TestLimitsOfTools(t *testing.T) {
	const first = `{"name":"getRate","annotations":{"readOnlyHint":true},"timeout":"10s","cache":"5m","rateLimit":{"perMinute":3},"inputSchema":{"type":"object"}}`
	const second = `{"name":"pay","timeout":"9h","cache":"5m","rateLimit":{"perHour":2},"dependsOn":["getRate"],"inputSchema":{"type":"object"}}`
	const bad = `{"name":"soon","timeout":"soon","inputSchema":{"type":"object"}}`
	s := Source{Path: file(t, with(first+","+second+","+bad)), Timeout: 30 * time.Second, Prefix: "x_"}
	p, err := New(plugintest.NewHarness(t, "blueprint").Host, Config{Sources: []Source{s}})
	if err != nil {
		t.Fatal(err)
	}
	actions := p.Actions()
	if len(actions) != 2 {
		t.Fatalf("got %d actions", len(actions))
	}
	for i, want := range []core.Action{
		{
			Timeout: 10*time.Second + grace, Cache: 5 * time.Minute,
			RateLimit: core.RateLimit{Count: 3, Per: time.Minute},
		},
		{
			Timeout: 30*time.Second + grace, RateLimit: core.RateLimit{Count: 2, Per: time.Hour},
			DependsOn: []string{"x_get_rate"},
		},
	} {
		a := actions[i]
		isAsSaid := a.Timeout == want.Timeout && a.Cache == want.Cache && a.RateLimit == want.RateLimit
		if !isAsSaid || !slices.Equal(a.DependsOn, want.DependsOn) {
			t.Errorf("%s: timeout %s, cache %s, rate %v, after %v", a.Name, a.Timeout, a.Cache, a.RateLimit, a.DependsOn)
		}
	}
	faults := (&Config{Sources: []Source{s}}).Faults()
	if len(faults) == 0 || !strings.Contains(faults[0].String(), `"soon" is not a duration such as 30s`) {
		t.Errorf("faults %v", faults)
	}
}

func TestTools(t *testing.T) {
	for _, tc := range []struct{ tool, name, brief, example string }{
		{`{"name":"getBalance","description":"Get it. And more."}`, "get_balance", "Get it", `{}`},
		{`{"name":"Invoices List/All","title":"List them"}`, "invoices_list_all", "List them", `{}`},
		{`{"name":"a","description":"` + strings.Repeat("ä", 150) + `"}`, "a", strings.Repeat("ä", 98) + "…", `{}`},
		{`{"name":"a","description":"One\nline.\n\nTwo"}`, "a", "One line", `{}`},
		{`{"name":"a","annotations":{"title":"T"}}`, "a", "T", `{}`},
		{`{"name":"a","examples":[{"description":"x","input":{"b":1}}]}`, "a", "Use a", `{"b":1}`},
		{`{"name":"a","examples":[{"b":2}]}`, "a", "Use a", `{"b":2}`},
		{`{"name":"a","inputSchema":{"examples":[{"b":3}]}}`, "a", "Use a", `{"b":3}`},
		{`{"name":"a","inputSchema":{"type":"object","properties":{"n":{"type":"integer","minimum":7},"e":{"enum":["x"]},"d":{"type":"string","format":"date"},"l":{"type":"array","minItems":2,"items":{"type":"boolean"}},"s":{"type":"string","minLength":6}},"required":["n","e","d","l","s"]}}`,
			"a", "Use a", `{"d":"2026-01-31","e":"x","l":[true,true],"n":7,"s":"xxxxxx"}`},
	} {
		var tool Tool
		if err := json.Unmarshal([]byte(tc.tool), &tool); err != nil {
			t.Fatal(err)
		}
		a := tool.action()
		if a.Name != tc.name || a.Brief != tc.brief || string(a.Examples.Examples[0].Payload) != tc.example {
			t.Errorf("%s: got %s, %s, %s", tc.tool, a.Name, a.Brief, a.Examples.Examples[0].Payload)
		}
	}
}

func TestMadeUpExamplesAreRight(t *testing.T) {
	// No example can be generated for a pattern.
	s := Source{Path: file(t, with(`{"name":"a","description":"x","inputSchema":{"type":"object","properties":{"p":{"type":"string","pattern":"^[A-Z]{9}$"}},"required":["p"]}}`))}
	p, err := New(plugintest.NewHarness(t, "blueprint").Host, Config{Sources: []Source{s}})
	if err != nil || len(p.Actions()[0].Examples.Examples) != 0 {
		t.Errorf("got %v", err)
	}
}

func TestSharedDefinitions(t *testing.T) {
	b, err := Read([]byte(`{"$defs":{"A":{"$ref":"#/$defs/B"},"B":{"type":"string"},"C":{}},"capabilities":{"$defs":{"D":{}},"tools":[
		{"name":"t","inputSchema":{"type":"object","properties":{"a":{"$ref":"#/$defs/A"},"d":{"$ref":"#/$defs/D"}},"$defs":{"D":{"type":"integer"}}}},{"name":"u","inputSchema":{"type":"object"}}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(b.Tools[0].Input); !strings.Contains(got, `"B":{"type":"string"}`) || !strings.Contains(got, `"D":{"type":"integer"}`) || strings.Contains(got, `"C"`) {
		t.Errorf("got %s", got)
	}
	if got := string(b.Tools[1].Input); got != `{"type":"object"}` {
		t.Errorf("got %s", got)
	}
}

func TestEnvelope(t *testing.T) {
	p, err := New(plugintest.NewHarness(t, "blueprint").Host, Config{Sources: []Source{{Path: bankFile, Headers: map[string]secret.Secret{"Authorization": secret.New("x")}}}})
	if err != nil {
		t.Fatal(err)
	}
	e := p.agents[0].Blueprint
	if e.Name != "bank" || e.Version != "1.0.0" || !strings.Contains(string(e.Compliance), "EU") || !strings.Contains(string(e.Security), "perMinute") || e.limits.Minute != 60 || !e.auth {
		t.Errorf("got %+v", e)
	}
	if strings.Contains(string(e.Raw), "inputSchema") || !strings.Contains(string(e.Raw), `"interfaces":["chat"]`) || !strings.Contains(string(e.Raw), "health") {
		t.Errorf("got %s", e.Raw)
	}
	for _, where := range []string{`"endpoint":"https://a.example"`, `"endpoint":{"url":"https://a.example"}`, `"meta":{"endpoint":"https://a.example"}`,
		`"metadata":{"endpoints":{"base":"https://a.example"}}`, `"endpoints":{"url":"https://a.example"}`} {
		b, err := Read([]byte(`{` + where + `}`))
		if err != nil || b.Endpoint != "https://a.example" {
			t.Errorf("%s: got %q, %v", where, b.Endpoint, err)
		}
	}
	const identity = `"name":"a","type":"agent","version":"1.2.3","description":"what it is for"`
	for where, want := range map[string]string{identity: "1.2.3", `"meta":{` + identity + `}`: "1.2.3", `"metadata":{` + identity + `}`: "1.2.3",
		`"version":"2.0.0","metadata":{` + identity + `}`: "2.0.0"} {
		b, err := Read([]byte(`{` + where + `}`))
		if err != nil || b.Name != "a" || b.Version != want || b.Description != "what it is for" {
			t.Errorf("%s: got %+v, %v", where, b, err)
		}
	}
}

func TestViews(t *testing.T) {
	for _, tc := range []struct{ output, format, fields string }{
		{`{"type":"object","properties":{"id":{"type":"string"},"amount":{"type":"number"}}}`, "none", "id amount"},
		{`{"type":"array","items":{"type":"object","properties":{"z":{},"a":{"type":"object","properties":{"m":{}}}}}}`, "", "z a m"},
		{`{"type":"string"}`, "", ""}, {`{"type":"integer"}`, "", ""},
		{`{"type":"object","properties":{"value":{"type":"number"}}}`, "", "value"},
		{`{"type":"object","properties":{"properties":{"type":"array"}}}`, "", "properties"},
		{`{"$ref":"#/$defs/A","$defs":{"A":{"type":"array"}}}`, "", ""},
		{`{"$ref":"#"}`, "none", ""},
		{`{"type":"object","x-display":"Chart"}`, "chart", ""}, {`{"type":"array","x-display":"none"}`, "none", ""},
		{``, "none", ""},
	} {
		v := viewOf(&Tool{Output: json.RawMessage(tc.output)})
		if v.format != tc.format || strings.Join(v.fields, " ") != tc.fields {
			t.Errorf("%s: got %+v", tc.output, v)
		}
	}
}

// catalogue returns the actions of plugins, as offered.
func catalogue(t *testing.T) []core.Action {
	t.Helper()
	p, err := standard.New(plugintest.NewHarness(t, "standard").Host, standard.Config{
		Actions: []string{"display", "notify", "wait", "confirm", "api_call", "speak"},
		APIs:    []standard.API{{Name: "a", URL: "https://a.example", Methods: []string{"GET"}}},
		Wait:    20 * time.Second, Notices: 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(plugintest.NewHarness(t, "blueprint").Host, Config{Sources: []Source{{Path: bankFile}}})
	if err != nil {
		t.Fatal(err)
	}
	return append(p.Actions(), b.Actions()...)
}

// compareActions fails the test if two lists of actions differ, apart from their functions.
func compareActions(t interface{ Errorf(string, ...any) }, want, got []core.Action) {
	bare := func(list []core.Action) string {
		list = slices.Clone(list)
		for i := range list {
			a := &list[i]
			a.Do, a.Check, a.Undo = nil, nil, nil
			a.Schema, a.Output = compact(a.Schema), compact(a.Output)
			a.Examples.Examples = slices.Clone(a.Examples.Examples)
			for k := range a.Examples.Examples {
				a.Examples.Examples[k].Payload = compact(a.Examples.Examples[k].Payload)
			}
		}
		// JSON has all exported fields, apart from functions.
		var b strings.Builder
		for _, a := range list {
			v := reflect.ValueOf(a)
			for i := range v.NumField() {
				if v.Field(i).Kind() != reflect.Func {
					raw, err := json.Marshal(v.Field(i).Interface())
					if err != nil {
						t.Errorf("got %v", err)
					}
					fmt.Fprintf(&b, "%s=%s ", v.Type().Field(i).Name, bytes.ReplaceAll(raw, []byte("[]"), []byte("null")))
				}
			}
			b.WriteByte('\n')
		}
		return b.String()
	}
	if a, b := bare(want), bare(got); a != b {
		t.Errorf("exported:\n%s\nimported:\n%s", a, b)
	}
}

func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// imported returns a blueprint's tools as actions.
func imported(data []byte) ([]core.Action, error) {
	b, err := Read(data)
	if err != nil {
		return nil, err
	}
	actions := make([]core.Action, len(b.Tools))
	for i := range b.Tools {
		actions[i] = b.Tools[i].action()
	}
	return actions, nil
}

func TestTheCatalogueComesBack(t *testing.T) {
	want := catalogue(t)
	data, err := Export("1.2.3", want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := imported(data)
	if err != nil {
		t.Fatal(err)
	}
	compareActions(t, want, got)
	if faults := faultsOf(file(t, string(data))); len(faults) != 1 || !strings.Contains(faults[0].Text, "the agent has no address") {
		t.Errorf("the exported blueprint has faults: %v", faults)
	}
}

func TestExportAndImport(t *testing.T) {
	text := rapid.StringMatching(`[a-zA-Zäß"<&\\ ]{1,30}`)
	word := rapid.StringMatching(`[a-z_.]{1,12}`)
	milliseconds := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	duration := rapid.Map(rapid.IntRange(0, 1e6), milliseconds)
	schema := rapid.SampledFrom([]string{`{"type":"object"}`, `{"type":"object","title":"T","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"integer","default":9007199254740993}}}`, `true`})
	action := rapid.Custom(func(t *rapid.T) core.Action {
		a := core.Action{
			Name: word.Draw(t, "name"), Similes: rapid.SliceOfN(word, 0, 3).Draw(t, "similes"), Brief: text.Draw(t, "brief"), Schema: json.RawMessage(schema.Draw(t, "schema")),
			DependsOn: rapid.SliceOfN(word, 0, 2).Draw(t, "depends"), Essential: rapid.Bool().Draw(t, "essential"), Outside: rapid.Bool().Draw(t, "outside"),
			Permission: rapid.SampledFrom([]core.Permission{"", core.PermissionEveryone, core.PermissionConcerned, core.PermissionModerators, core.PermissionAdmins, core.PermissionBot}).Draw(t, "permission"),
			Concerns:   word.Draw(t, "concerns"), Confirm: rapid.Bool().Draw(t, "confirm"), Timeout: duration.Draw(t, "timeout"), Retries: rapid.IntRange(0, 9).Draw(t, "retries"),
			Idempotent: rapid.Bool().Draw(t, "idempotent"), Busy: rapid.SampledFrom([]core.Busy{"", core.BusyQueue, core.BusyRefuse}).Draw(t, "busy"),
			RateLimit: core.RateLimit{Count: rapid.IntRange(0, 5).Draw(t, "count"), Per: duration.Draw(t, "per")}, Cache: duration.Draw(t, "cache"),
			Examples: core.Examples{Description: text.Draw(t, "description"), SideEffects: rapid.SliceOfN(text, 0, 2).Draw(t, "effects"), Similar: rapid.SliceOfN(word, 0, 2).Draw(t, "similar"),
				Instructions: core.Instructions{WhenToUse: text.Draw(t, "when"), CommonPitfalls: rapid.SliceOfN(text, 0, 2).Draw(t, "pitfalls"), Notes: rapid.SliceOfN(text, 0, 2).Draw(t, "notes")},
				Examples:     []core.Example{{Scenario: text.Draw(t, "scenario"), Payload: json.RawMessage(`{"a": 9007199254740993}`)}}},
		}
		if rapid.Bool().Draw(t, "has output") {
			a.Output = json.RawMessage(schema.Draw(t, "output"))
		}
		return a
	})
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(action, 0, 4).Draw(t, "actions")
		data, err := Export("1.2.3", want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := imported(data)
		if err != nil {
			t.Fatal(err)
		}
		compareActions(t, want, got)
	})
}

// TestExportHints checks that exported tools say whether they are read-only, and that the blueprint has the
// program's version.
func TestExportHints(t *testing.T) {
	reads := map[core.Effect]bool{
		core.EffectNone: true, core.EffectReadsForeign | core.EffectRequests: true, 0: false,
		core.EffectWrites: false, core.EffectReadsChat | core.EffectChanges: false, core.EffectRewrites: false,
	}
	for effects, want := range reads {
		for _, outside := range []bool{false, true} {
			a := core.Action{Name: "a", Brief: "Act", Schema: json.RawMessage(`{}`), Effects: effects, Outside: outside}
			data, err := Export("v1.2.3-4-gabc", []core.Action{a})
			if err != nil {
				t.Fatal(err)
			}
			b, err := Read(data)
			if err != nil || b.Version != "v1.2.3-4-gabc" || b.Tools[0].Annotations.ReadOnly != (want && !outside) {
				t.Errorf("effects %b, outside %t: version %q, read-only %t (%v)", effects, outside, b.Version, b.Tools[0].Annotations.ReadOnly, err)
			}
		}
	}
	for version, want := range map[string]string{"": "0.0.0+unknown", "dev": "0.0.0+dev", "4e8b8ef9": "0.0.0+4e8b8ef9", "1.0.0": "1.0.0"} {
		data, err := Export(version, nil)
		if err != nil || !strings.Contains(string(data), `"version": "`+want+`"`) {
			t.Errorf("version %q: %s (%v)", version, data, err)
		}
	}
}

func TestExportRefusesWhatIsNoSchema(t *testing.T) {
	if _, err := Export("", []core.Action{{Name: "a", Schema: json.RawMessage(`{`)}}); err == nil {
		t.Error("an invalid schema was exported")
	}
}

// TestChangesAreTold runs the bot three times: with a blueprint, with an incompatible version, and with that
// version again. Admins learn of the change once.
func TestChangesAreTold(t *testing.T) {
	tool := `{"name":"a","description":"x","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}%s}}`
	path := file(t, with(fmt.Sprintf(tool, "")))
	s := plugintest.NewHarness(t, "blueprint")
	told := &admins{Messenger: s.Host.Messenger}
	s.Host.Messenger = told
	live := func(writes bool) {
		p, err := New(s.Host, Config{Sources: []Source{{Path: path}}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		p.h.Items = ending{p.h.Items, end, writes}
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
	}
	live(true)
	if len(told.texts) != 0 {
		t.Errorf("first run: %q", told.texts)
	}
	if err := os.WriteFile(path, []byte(with(fmt.Sprintf(tool, `,"required":["n"]`))), 0o600); err != nil {
		t.Fatal(err)
	}
	c := Config{Sources: []Source{{Path: path}}}
	if changes, err := c.Changes(t.Context(), s.Host.Items); err != nil || len(changes) != 2 || changes[0].Warning || !strings.Contains(changes[0].String(), "a: input.n is required now") {
		t.Errorf("before the change is accepted: got %v, %v", changes, err)
	}
	live(true)
	if changes, err := c.Changes(t.Context(), s.Host.Items); err != nil || len(changes) != 0 {
		t.Errorf("after the change is accepted: got %v, %v", changes, err)
	}
	if len(told.texts) != 1 || !strings.Contains(told.texts[0], "- a: input.n is required now") || !strings.Contains(told.texts[0], "the version is still 1.0.0") {
		t.Errorf("second run: %q", told.texts)
	}
	live(false)
	if len(told.texts) != 1 {
		t.Errorf("third run: %q", told.texts[1:])
	}
}

// ending is Items that end the plugin's run after a read or a write.
type ending struct {
	core.Items
	end    func()
	writes bool
}

func (e ending) Get(ctx context.Context, path core.Path, key string) (core.Item, bool, error) {
	if !e.writes {
		defer e.end()
	}
	return e.Items.Get(ctx, path, key)
}

func (e ending) Put(ctx context.Context, item core.Item) (uint64, error) {
	defer e.end()
	return e.Items.Put(ctx, item)
}

// admins keeps the notices to admins.
type admins struct {
	core.Messenger
	texts []string
}

func (a *admins) NotifyAdmins(text string) { a.texts = append(a.texts, text) }

func FuzzRead(f *testing.F) {
	data, err := os.ReadFile(bankFile)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(with(`{"name":"a","inputSchema":{"$ref":"#"},"outputSchema":{"$ref":"#/$defs/x"},"examples":[1,{"input":{}}]}`)))
	f.Add([]byte(`{"$defs":{"A":{"$ref":"#/$defs/A"}},"capabilities":{"tools":[{"name":"x","inputSchema":{"$ref":"#/$defs/A"},"_meta":{"synthbot":{}}}]},"meta":{"security":[]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := Read(data)
		if err != nil || len(data) > 20_000 {
			return
		}
		faults := b.check(&Source{Command: []string{"x"}})
		wrong := slices.ContainsFunc(faults, func(f Fault) bool { return !f.Warning })
		actions, err := imported(data)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Tools {
			viewOf(&b.Tools[i]).step(json.RawMessage(`{}`))
		}
		changes, err := Compare(data, data)
		if err != nil || slices.ContainsFunc(changes, func(c Fault) bool { return !c.Warning }) && !wrong {
			t.Errorf("comparison with itself: got %v, %v", changes, err)
		}
		if wrong {
			return
		}
		again, err := Export("", actions)
		if err != nil {
			t.Fatalf("a valid blueprint cannot be exported: %v", err)
		}
		back, err := imported(again)
		if err != nil {
			t.Fatal(err)
		}
		compareActions(t, actions, back)
	})
}
