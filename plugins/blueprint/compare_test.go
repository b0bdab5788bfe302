package blueprint

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestCompareSchemas(t *testing.T) {
	// input says whether a change breaks callers, output whether it breaks readers.
	for _, tc := range []struct {
		before, after string
		text          string // a part of the texts, or "" for no change
		input, output bool   // breaking
	}{
		{`{"type":"object"}`, `{"type":"object"}`, "", false, false},
		{`{"title":"a"}`, `{"title":"b"}`, "title has changed", false, false},
		{`{"properties":{"a":{"default":1}}}`, `{"properties":{"a":{"default":2}}}`, "default has changed", false, false},
		{`{"properties":{"a":{}}}`, `{"properties":{"a":{},"b":{}}}`, ".b is new", false, false},
		{`{"properties":{"a":{}}}`, `{"properties":{}}`, ".a is gone", true, true},
		{`{"properties":{"a":{}}}`, `{"properties":{"a":{}},"required":["a"]}`, ".a is required now", true, false},
		{`{"properties":{"a":{}},"required":["a"]}`, `{"properties":{"a":{}}}`, ".a is not required any more", false, true},
		{`{"type":"string"}`, `{"type":["string","null"]}`, "can be null now", false, true},
		{`{"type":["string","null"]}`, `{"type":"string"}`, "is no null any more", true, false},
		{`{"type":"integer"}`, `{"type":"number"}`, "can be number now", false, true},
		{`{"type":"number"}`, `{"type":"integer"}`, "is no number any more", true, false},
		{`{}`, `{"type":"string"}`, "any more", true, false},
		{`{"enum":["a","b"]}`, `{"enum":["a"]}`, `cannot be "b" any more`, true, false},
		{`{"enum":["a"]}`, `{"enum":["a","b"]}`, `can be "b" now`, false, true},
		{`{}`, `{"enum":["a"]}`, "one of a few values now", true, false},
		{`{"enum":["a"]}`, `{}`, "not one of a few", false, true},
		{`{"minimum":1}`, `{"minimum":2}`, "minimum is 2 now", true, false},
		{`{"minimum":2}`, `{"minimum":1}`, "minimum is 1 now", false, true},
		{`{"maxLength":5}`, `{"maxLength":4}`, "maxLength is 4 now", true, false},
		{`{"maxLength":4}`, `{}`, "no longer a limit", false, true},
		{`{}`, `{"maxItems":4}`, "maxItems is 4 now", true, false},
		{`{}`, `{"pattern":"a"}`, "there is a pattern now", true, false},
		{`{"pattern":"a"}`, `{}`, "no pattern any more", false, true},
		{`{"pattern":"a"}`, `{"pattern":"b"}`, "pattern has changed", true, true},
		{`{}`, `{"additionalProperties":false}`, "no other properties any more", true, false},
		{`{"additionalProperties":false}`, `{"additionalProperties":true}`, "takes other properties now", false, true},
		{`{}`, `{"additionalProperties":true}`, "", false, false},
		{`{"additionalProperties":{"type":"string"}}`, `{"additionalProperties":{"type":"integer"}}`, "cannot be judged", true, true},
		{`{"anyOf":[{"type":"string"}]}`, `{"anyOf":[{"type":"integer"}]}`, "anyOf has changed in a way", true, true},
		{`{"items":{"type":"string"}}`, `{"items":{"type":["string","null"]}}`, "[] can be null", false, true},
		{`{"properties":{"a":{"properties":{"b":{"minimum":1}}}}}`, `{"properties":{"a":{"properties":{"b":{"minimum":3}}}}}`, ".a.b: minimum is 3", true, false},
		{`{"$ref":"#/$defs/A","$defs":{"A":{"type":"string"}}}`, `{"$ref":"#/$defs/A","$defs":{"A":{"type":"integer"}}}`, "is no string any more", true, true},
		{`{"$ref":"#/$defs/A","$defs":{"A":{"type":"string"}}}`, `{"type":"string"}`, "", false, false},
		{`{"properties":{"a":{"$ref":"#"}}}`, `{"properties":{"a":{"$ref":"#"},"b":{}}}`, ".b is new", false, false},
		{`{"x-display":"table"}`, `{"x-display":"card"}`, "x-display has changed", false, false},
		{`{"$ref":"#/nowhere"}`, `{"$ref":"#/elsewhere"}`, "cannot be judged", true, true},
		{`true`, `false`, "cannot be judged", true, true},
	} {
		for output, want := range map[bool]bool{false: tc.input, true: tc.output} {
			var d diff
			d.schemas("x", []byte(tc.before), []byte(tc.after), output)
			told, breaking := "", false
			for _, c := range d.changes {
				told += c.Text + "\n"
				breaking = breaking || !c.Warning
			}
			if breaking != want || (tc.text == "") != (told == "") || !strings.Contains(told, tc.text) {
				t.Errorf("%s to %s, output %t: got breaking %t, %q", tc.before, tc.after, output, breaking, told)
			}
		}
	}
}

// TestCompareDeep checks that a changed schema that is too deep or too large to compare counts as breaking, and
// that recursive schemas are compared once.
func TestCompareDeep(t *testing.T) {
	deep := func(inner string) string {
		return strings.Repeat(`{"properties":{"a":`, 30) + inner + strings.Repeat(`}}`, 30)
	}
	wide := func(inner string) string {
		var b strings.Builder
		for i := range 6000 {
			fmt.Fprintf(&b, `"a%05d":{"$ref":"#/x/%d"},`, i, i)
		}
		return `{"properties":{` + b.String() + `"z":` + inner + `}}`
	}
	self := func(inner string) string {
		return `{"properties":{"l":{"$ref":"#"},"r":{"$ref":"#"},"z":` + inner + `}}`
	}
	for _, tc := range []struct {
		name, before, after string
		want                int
	}{
		{"deep", deep(`{"minimum":1}`), deep(`{"minimum":2}`), 1}, {"deep, the same", deep(`{"minimum":1}`), deep(`{"minimum":1}`), 0},
		{"wide", wide(`{"minimum":1}`), wide(`{"minimum":2}`), 1}, {"wide, the same", wide(`{"minimum":1}`), wide(`{"minimum":1}`), 0},
		{"itself", self(`{"minimum":1}`), self(`{"minimum":2}`), 2}, {"itself, the same", self(`{"minimum":1}`), self(`{"minimum":1}`), 0},
	} {
		var d diff
		d.schemas("x", []byte(tc.before), []byte(tc.after), false)
		breaking := 0
		for _, c := range d.changes {
			if !c.Warning {
				breaking++
			}
		}
		if breaking != tc.want || len(d.changes) != tc.want {
			t.Errorf("%s: got %d changes, %d of them breaking, want %d", tc.name, len(d.changes), breaking, tc.want)
		}
	}
}

// TestCompareInOrder checks that changes are listed in a stable order.
func TestCompareInOrder(t *testing.T) {
	before := []byte(`{"minimum":1,"maximum":9,"minLength":1,"maxLength":9,"minItems":1,"maxItems":9}`)
	after := []byte(`{"minimum":2,"maximum":8,"minLength":2,"maxLength":8,"minItems":2,"maxItems":8}`)
	var first []Fault
	for range 20 {
		var d diff
		d.schemas("x", before, after, false)
		if first == nil {
			first = d.changes
		}
		if len(d.changes) != 6 || !slices.Equal(d.changes, first) {
			t.Fatalf("got %v, and the first time %v", d.changes, first)
		}
	}
}

func TestCompare(t *testing.T) {
	one := `{"name":"a","description":"x","inputSchema":{"type":"object","properties":{"n":{}}},"annotations":{"readOnlyHint":true}}`
	two := `{"name":"b","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}`
	file := func(version string, tools ...string) string {
		return strings.Replace(with(strings.Join(tools, ",")), "1.0.0", version, 1)
	}
	for name, tc := range map[string]struct {
		before, after string
		want          []string // breaking ones begin with '!'
	}{
		"nothing":           {file("1.0.0", one), file("1.0.0", one), nil},
		"a new one":         {file("1.0.0", one), file("1.1.0", one, two), []string{"b: the tool is new", "version 1.0.0 has become 1.1.0"}},
		"one is gone":       {file("1.0.0", one, two), file("2.0.0", one), []string{"!b: the tool is gone", "version 1.0.0 has become 2.0.0"}},
		"without a version": {file("1.2.0", one, two), file("1.3.0", one), []string{"!b: the tool is gone", "!the version is still 1.3.0"}},
		"no output":         {file("1.0.0", two), file("2.0.0", strings.Replace(two, `,"outputSchema":{"type":"array"}`, "", 1)), []string{"!b: the output has no schema any more", "version"}},
		"an output":         {file("1.0.0", strings.Replace(two, `,"outputSchema":{"type":"array"}`, "", 1)), file("1.0.0", two), []string{"b: the output has a schema now"}},
		"it writes now":     {file("1.0.0", one), file("2.0.0", strings.Replace(one, "true", "false", 1)), []string{"!a: readOnlyHint is false now", "version"}},
		"it reads now":      {file("1.0.0", strings.Replace(one, "true", "false", 1)), file("1.0.0", one), []string{"a: readOnlyHint is true now"}},
		"stricter":          {file("1.0.0", one), file("2.0.0", strings.Replace(one, `"annot`, `"security":{"permission":"admins"},"annot`, 1)), []string{"!a: who may use it", "version"}},
		"looser":            {file("1.0.0", strings.Replace(one, `"annot`, `"security":{"permission":"admins"},"annot`, 1)), file("1.0.0", one), []string{"a: who may use it"}},
		"words":             {file("1.0.0", one), file("1.0.0", strings.Replace(one, `"x"`, `"y"`, 1)), []string{"a: its description has changed"}},
		"elsewhere":         {file("1.0.0", one), strings.Replace(file("1.0.0", one), "x.example", "y.example", 1), []string{"the agent has another endpoint"}},
		"another security":  {file("1.0.0", one), strings.Replace(file("1.0.0", one), `"name":"x"`, `"name":"x","meta":{"security":{"authRequired":true}}`, 1), []string{"the security section has changed"}},
		"another path":      {file("1.0.0", one), file("1.0.0", strings.Replace(one, `"annot`, `"endpoint":{"path":"/a"},"annot`, 1)), []string{"a: it has another endpoint"}},
	} {
		changes, err := Compare([]byte(tc.before), []byte(tc.after))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range changes {
			text := c.String()
			if !c.Warning {
				text = "!" + text
			}
			got = append(got, text)
		}
		if len(got) != len(tc.want) {
			t.Errorf("%s: got %q", name, got)
			continue
		}
		for i := range got {
			if !strings.HasPrefix(got[i], tc.want[i]) {
				t.Errorf("%s: got %q, want %q", name, got[i], tc.want[i])
			}
		}
	}
	for _, bad := range [][2]string{{"{", "{}"}, {"{}", "{"}} {
		if _, err := Compare([]byte(bad[0]), []byte(bad[1])); err == nil {
			t.Errorf("Compare accepts %v", bad)
		}
	}
}
