package schema

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"synthbot/core"
)

// TestNesting: brackets within strings do not count, even after escapes.
func TestNesting(t *testing.T) {
	for text, want := range map[string]int{
		``: 0, `5`: 0, `{}`: 1, `[]`: 1, `[[]]`: 2, `{"a":[{}]}`: 3, `[[],[],[]]`: 2, `[{},{},{}]`: 2, `{"a":{},"b":{}}`: 2,
		`"[["`: 0, `["[["]`: 1, `["\"[["]`: 1, `["\\",[]]`: 2, `["a",["b"]]`: 2, `[[[`: 3, `]]]`: 0, `\"[`: 0, `{"]":[]}`: 2, `{"}":{}}`: 2,
	} {
		if got := Nesting([]byte(text)); got != want {
			t.Errorf("%s nests %d deep, want %d", text, got, want)
		}
	}
}

// TestFind: the path of a fault leads to the value that it names, or to nothing.
func TestFind(t *testing.T) {
	v, err := Decode(json.RawMessage(`{"a":[1,{"b":"x"}],"":2,"c":{"d":null}}`))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/a/0": "1", "/a/1/b": `"x"`, "/": "2", "/c/d": "null", "/c": `{"d":null}`,
		"/a/2": "", "/a/-1": "", "/a/x": "", "/a/1/b/c": "", "/d": "", "/c/d/e": "", "/a/0/1": "",
	} {
		at, ok := Descend(v, pointerParts(path))
		if ok != (want != "") || ok && string(core.JSON(at)) != want {
			t.Errorf("%s leads to %v, %v; want %s", path, at, ok, want)
		}
	}
	if at, ok := Descend(v, pointerParts("")); !ok || at == nil {
		t.Error("the root was not found")
	}
}

// TestDefaults: defaults are filled in for properties, through $ref, allOf and items, and nowhere
// else. Each value gets its own copy.
func TestDefaults(t *testing.T) {
	for name, tc := range map[string]struct{ schema, value, want string }{
		"properties":     {`{"properties":{"a":{"default":1},"b":{"properties":{"c":{"default":[1,{"d":2}]}}}}}`, `{"b":{}}`, `{"a":1,"b":{"c":[1,{"d":2}]}}`},
		"what is there":  {`{"properties":{"a":{"default":1},"b":{"default":2}}}`, `{"a":null,"b":5}`, `{"a":null,"b":5}`},
		"in a default":   {`{"properties":{"a":{"default":{},"properties":{"b":{"default":1}}}}}`, `{}`, `{"a":{"b":1}}`},
		"items":          {`{"properties":{"l":{"items":{"properties":{"a":{"default":1}}}}}}`, `{"l":[{},{"a":2},5]}`, `{"l":[{"a":1},{"a":2},5]}`},
		"allOf":          {`{"allOf":[{"properties":{"a":{"default":1}}},true,{"$ref":"#/$defs/x"}],"$defs":{"x":{"properties":{"b":{"default":2}}}}}`, `{}`, `{"a":1,"b":2}`},
		"$ref":           {`{"properties":{"a":{"$ref":"#/$defs/x~1y~0z"}},"$defs":{"x/y~z":{"default":1}}}`, `{}`, `{"a":1}`},
		"$ref to itself": {`{"properties":{"n":{"default":1},"next":{"$ref":"#"}}}`, `{"next":{"next":{}}}`, `{"n":1,"next":{"n":1,"next":{"n":1}}}`},
		"$ref in a ring": {`{"properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"$ref":"#/$defs/y"},"y":{"$ref":"#/$defs/x","default":false}}}`, `{}`, `{"a":false}`},
		"an empty ring":  {`{"properties":{"a":{"$ref":"#/$defs/x"},"b":{"default":1}},"$defs":{"x":{"$ref":"#/$defs/x"}}}`, `{}`, `{"b":1}`},
		"$ref elsewhere": {`{"properties":{"a":{"$ref":"http://x#/$defs/x"},"b":{"$ref":"#/$defs/x/y"}},"$defs":{"x":{"default":1}}}`, `{}`, `{}`},
		"no other words": {`{"anyOf":[{"properties":{"a":{"default":1}}}],"if":{},"then":{"properties":{"b":{"default":1}}},"default":5}`, `{}`, `{}`},
		"no object":      {`{"properties":{"a":{"default":1}},"items":true}`, `"x"`, `"x"`},
	} {
		root, err := Decode(json.RawMessage(tc.schema))
		if err != nil {
			t.Fatal(err)
		}
		s := &Schema{Root: root, defaults: strings.Contains(tc.schema, `"default"`)}
		for range 2 { // spoil must not change the defaults
			v, err := Decode(json.RawMessage(tc.value))
			if err != nil {
				t.Fatal(err)
			}
			if s.FillDefaults(v); string(core.JSON(v)) != tc.want {
				t.Errorf("%s: got %s, want %s", name, core.JSON(v), tc.want)
			}
			spoil(v)
		}
	}
}

// spoil changes everything within a value.
func spoil(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			spoil(e)
		}
		clear(v)
	case []any:
		for _, e := range v {
			spoil(e)
		}
		clear(v)
	}
}

// TestDefaultsEnd: the defaults of a recursive schema are filled in to a limited depth.
func TestDefaultsEnd(t *testing.T) {
	for _, raw := range []string{
		`{"properties":{"a":{"$ref":"#","default":{}}}}`,
		`{"properties":{"a":{"$ref":"#","default":{}},"b":{"$ref":"#","default":{}}}}`,
		`{"allOf":[{"$ref":"#"},{"$ref":"#"}],"properties":{"a":{"default":1}}}`,
	} {
		root, err := Decode(json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		v := map[string]any{}
		(&Schema{Root: root, defaults: true}).FillDefaults(v)
		if depth := Nesting(core.JSON(v)); depth > maxDepth || len(v) == 0 {
			t.Errorf("%s: unexpected depth of %d levels", raw, depth)
		}
	}
}

// TestOrdered: a JSON object keeps the order of its keys; anything else is refused.
func TestOrdered(t *testing.T) {
	for text, want := range map[string]string{
		`{"b":1, "a":[ 2 ],"b":3}`: `{"b":1,"a":[2],"b":3}`, `{}`: `{}`, `{"<":"&"}`: `{"<":"&"}`,
		`[]`: "", `"x"`: "", ``: "", `{1:2}`: "", `{"a":}`: "", `{"a":1,}`: "", `{"a":{]}`: "",
	} {
		o, ok := DecodeObject(json.RawMessage(text))
		if ok != (want != "") || ok && string(core.JSON(o)) != want {
			t.Errorf("%s: unexpected object %s, %v", text, core.JSON(o), ok)
		}
	}
}

// TestWording: long explanations are cut visibly.
func TestWording(t *testing.T) {
	long := strings.Repeat("x", 200)
	for given, want := range map[string]string{
		"Value is wrong": "is wrong", "Required property is missing": "required property is missing", long: long, long + "x": long + "…", long[1:] + "ä": long[1:] + "…",
	} {
		if got := wording("type", given); got != want {
			t.Errorf("%s: unexpected text %s", given, got)
		}
	}
}

// TestRead: a schema that does not compile refuses every payload.
func TestRead(t *testing.T) {
	s, err := Read(json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/nowhere"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	found := s.Validate(map[string]any{"a": "text"})
	if len(found) != 1 || !strings.Contains(found[0].Text, "#/nowhere leads nowhere") {
		t.Errorf("unexpected faults %v", found)
	}
	if _, err := Read(json.RawMessage(`{`)); err == nil {
		t.Error("a text that is not JSON was accepted")
	}
}

func TestNothingIsLoaded(t *testing.T) {
	loaded := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		loaded = true
		_, _ = w.Write([]byte(`{}`))
	}))
	defer server.Close()
	for _, raw := range []string{
		`{"type":"object","properties":{"a":{"$ref":"` + server.URL + `/a"}}}`,
		`{"type":"object","$id":"` + server.URL + `/root","properties":{"a":{"$ref":"other#/x"}}}`,
		`{"type":"object","properties":{"a":{"$dynamicRef":"` + server.URL + `/a#x"}}}`,
		`{"$schema":"` + server.URL + `/meta","type":"object","properties":{"a":{"$ref":"https://json-schema.org/draft/2020-12/schema"}}}`,
	} {
		if _, err := Compile(json.RawMessage(raw)); err == nil {
			t.Errorf("%s compiles", raw)
		}
	}
	if loaded {
		t.Error("a schema was loaded")
	}
}

// TestNumbers: an integer is recognised in any notation, and numbers without bounds are accepted.
func TestNumbers(t *testing.T) {
	digits := strings.Repeat("1", 400)
	for given, want := range map[string]string{
		"5.0": "5", "1e3": "1000", "-2.50E+1": "-25", "5": "", "0.5": "", "5e-1": "", "1e30": "", "1e9999": "", "1e-9999": "",
		"18446744073709551615.0": "18446744073709551615", "18446744073709551616.0": "",
	} {
		got := Integer(json.Number(given))
		if want == "" {
			want = given
		}
		if got != json.Number(want) {
			t.Errorf("%s: got %s; want %q", given, got, want)
		}
	}
	if Integer("5.0") != "5.0" {
		t.Error("a string was accepted as a number")
	}
	for given, want := range map[string]bool{digits: true, digits + "1": false, "1e999": true, "1e1000": false, "1e+000000999": true} {
		if _, ok := Rational(json.Number(given)); ok != want {
			t.Errorf("%.20s: unexpected result %v", given, ok)
		}
	}
}
