package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"synthbot/core"
)

// TestAdapt: schemas of other drafts and dialects are adapted. What cannot be checked is left out
// with a note.
func TestAdapt(t *testing.T) {
	object := func(property string) string {
		return `{"properties":{"p":` + property + `},"type":"object"}`
	}
	for name, c := range map[string]struct{ given, want, note string }{
		"nothing to do":        {`{"type":"string","default":"x"}`, `{"type":"string","default":"x"}`, ""},
		"null for a string":    {`{"type":"string","default":null}`, `{"type":"string"}`, ""},
		"null where it may be": {`{"type":["string","null"],"default":null}`, `{"type":["string","null"],"default":null}`, ""},
		"default of a type":    {`{"type":"integer","default":"many"}`, `{"type":"integer"}`, `p: the default "many" is refused`},
		"default not in enum":  {`{"enum":["a","b"],"default":"c"}`, `{"enum":["a","b"]}`, `p: the default "c"`},
		"draft 4, true":        {`{"type":"number","minimum":3,"exclusiveMinimum":true}`, `{"exclusiveMinimum":3,"type":"number"}`, ""},
		"draft 4, false":       {`{"type":"number","maximum":3,"exclusiveMaximum":false}`, `{"maximum":3,"type":"number"}`, ""},
		"draft 4, alone":       {`{"type":"number","exclusiveMaximum":true}`, `{"type":"number"}`, ""},
		"no number":            {`{"type":"number","minimum":"low"}`, `{"type":"number"}`, "p: minimum is not a number"},
		"lookahead":            {`{"type":"string","pattern":"^(?!\\.)x"}`, `{"type":"string"}`, `p: the pattern "^(?!\\.)x" is not checked`},
		"pattern of names":     {`{"type":"object","patternProperties":{"(?=x)":{}},"additionalProperties":false}`, `{"patternProperties":{},"type":"object"}`, "p: properties that match"},
		"no type":              {`{"type":null}`, `{}`, ""},
		"null among types":     {`{"type":["string",null]}`, `{"type":["string","null"]}`, ""},
		"python":               {`{"type":"dict","properties":{"q":{"type":"float"},"r":{"type":"any"}}}`, `{"properties":{"q":{"type":"number"},"r":{}},"type":"object"}`, ""},
		"capitals":             {`{"type":"STRING"}`, `{"type":"string"}`, ""},
		"nullable":             {`{"type":"string","nullable":true,"enum":["a"]}`, `{"enum":["a",null],"nullable":true,"type":["string","null"]}`, ""},
		"nullable already":     {`{"type":["string","null"],"nullable":true,"enum":["a",null]}`, `{"type":["string","null"],"nullable":true,"enum":["a",null]}`, ""},
		"nullable in part":     {`{"type":"string","nullable":true,"enum":["a",null]}`, `{"enum":["a",null],"nullable":true,"type":["string","null"]}`, ""},
		"nullable, no choice":  {`{"type":"string","nullable":true}`, `{"nullable":true,"type":["string","null"]}`, ""},
		"some patterns":        {`{"type":"object","patternProperties":{"(?=x)":{},"^y":{}},"additionalProperties":{}}`, `{"additionalProperties":{},"patternProperties":{"^y":{}},"type":"object"}`, "p: properties that match \"(?=x)\""},
		"default of nothing":   {`{"$ref":"#/nowhere/at/all","default":1}`, `{"$ref":"#/nowhere/at/all","default":1}`, ""},
		"draft 3 inside":       {`{"type":"object","properties":{"q":{"required":true},"r":{"required":false},"s":{}}}`, `{"properties":{"q":{},"r":{},"s":{}},"required":["q"],"type":"object"}`, ""},
		"draft 3, false alone": {`{"type":"object","properties":{"q":{"required":false}}}`, `{"properties":{"q":{}},"type":"object"}`, ""},
		"draft 3 and 4":        {`{"type":"object","properties":{"q":{"required":true},"r":{"required":true}},"required":["r"]}`, `{"properties":{"q":{},"r":{}},"required":["r","q"],"type":"object"}`, ""},
		"deep":                 {`{"type":"array","items":{"anyOf":[{"type":"string","default":null}]}}`, `{"items":{"anyOf":[{"type":"string"}]},"type":"array"}`, ""},
	} {
		got, notes := Adapt(json.RawMessage(object(c.given)))
		want := object(c.want)
		if c.given == c.want {
			want = object(c.given)
		}
		if string(got) != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		if said := strings.Join(notes, "; "); c.note == "" && said != "" || !strings.Contains(said, c.note) {
			t.Errorf("%s: unexpected notes %q", name, said)
		}
		if _, err := Compile(got); err != nil && name != "default of nothing" {
			t.Errorf("%s: unexpected error %v", name, err)
		}
	}
	shared := `{"$defs":{"d":{"type":"integer"}},"properties":{"p":{"$ref":"#/$defs/d","default":"x"},"q":{"required":true,"type":"string"}},"type":"object"}`
	want := `{"$defs":{"d":{"type":"integer"}},"properties":{"p":{"$ref":"#/$defs/d"},"q":{"type":"string"}},"required":["q"],"type":"object"}`
	if got, _ := Adapt(json.RawMessage(shared)); string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	many := make(map[string]any)
	for i := range 21 {
		many[fmt.Sprintf("p%02d", i)] = map[string]any{"pattern": "(?!x)"}
	}
	got, notes := Adapt(core.JSON(map[string]any{"properties": many}))
	if len(notes) != 20 || strings.Contains(string(got), "pattern") {
		t.Errorf("unexpected: %d notes on %s", len(notes), got)
	}
	for name, tc := range map[string]struct {
		pad, levels int
		adapted     bool
	}{"largest": {maxBytes, 1, true}, "too large": {maxBytes + 1, 1, false}, "deepest": {0, maxDepth, true}, "too deep": {0, maxDepth + 1, false}} {
		given := strings.Repeat(`{"not":`, tc.levels-1) + `{"type":"STRING"}` + strings.Repeat("}", tc.levels-1)
		given += strings.Repeat(" ", max(tc.pad-len(given), 0))
		if got, _ := Adapt(json.RawMessage(given)); (string(got) != given) != tc.adapted {
			t.Errorf("%s: adapted: got %v, want %v", name, !tc.adapted, tc.adapted)
		}
	}
	for _, bad := range []string{``, `{`, `"x"`, `[]`, `{"type":5}`, `{"properties":7,"required":"x"}`, `{"properties":{"a":{"required":[]}},"required":"x"}`, `{"enum":5,"type":"string"}`, `{"patternProperties":[],"$defs":null}`} {
		if got, _ := Adapt(json.RawMessage(bad)); string(got) != bad {
			t.Errorf("%s became %s", bad, got)
		}
	}
}

// FuzzAdapt: adapting an adapted schema changes nothing.
func FuzzAdapt(f *testing.F) {
	f.Add([]byte(`{"type":"dict","properties":{"a":{"minimum":1,"exclusiveMinimum":true,"default":null,"pattern":"(?!x)"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		once, _ := Adapt(data)
		if twice, notes := Adapt(once); string(twice) != string(once) {
			t.Errorf("%s became %s, then %s (%q)", data, once, twice, notes)
		}
	})
}
