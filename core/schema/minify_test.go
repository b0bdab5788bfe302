package schema

import (
	"encoding/json"
	"testing"
)

func TestMinify(t *testing.T) {
	tests := []struct{ schema, want string }{
		{`{ "$schema":"x", "title":"T", "description":"D", "type":"object", "properties":{"z":{"type":"string","title":"Z","description":"keep"},"a":{"examples":["x"],"enum":["title"]}}, "required":[] }`,
			`{"type":"object","properties":{"z":{"type":"string","description":"keep"},"a":{"enum":["title"]}}}`},
		{`{"type":"object","properties":{"title":{"type":"string","default":{"title":1}},"l":{"type":"array","items":{"title":"x","anyOf":[{"title":"y","type":"null"},true]}}},"required":["title"]}`,
			`{"type":"object","properties":{"title":{"type":"string","default":{"title":1}},"l":{"type":"array","items":{"anyOf":[{"type":"null"},true]}}},"required":["title"]}`},
		{`{"type":"object","properties":{"old":{"type":"string","deprecated":true}}}`, `{"type":"object","properties":{"old":{"type":"string"}}}`},
		{`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"$comment":"c","type":"string","pattern":"<&>"}}}`,
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"string","pattern":"<&>"}}}`},
	}
	for _, test := range tests {
		if got := string(Minify(json.RawMessage(test.schema))); got != test.want {
			t.Errorf("minify %s\ngot  %s\nwant %s", test.schema, got, test.want)
		}
	}
}

func TestShow(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"a":{"type":"string","minLength":1,"maxLength":9,"description":"keep"},"l":{"type":"array","items":{"type":"integer","maximum":3},"maxItems":8}},"required":["a"],"additionalProperties":false}`: `{"type":"object","properties":{"a":{"type":"string","description":"keep"},"l":{"type":"array","items":{"type":"integer","maximum":3}}},"required":["a"]}`,
		`{"properties":{"old":{"type":"string","deprecated":true},"a":{}}}`:                            `{"properties":{"a":{}}}`,
		`{"properties":{"a":{"deprecated":"no"}},"$defs":{"old":{"type":"string","deprecated":true}}}`: `{"properties":{"a":{}},"$defs":{"old":{"type":"string"}}}`,
		`{"additionalProperties":{"type":"string"}}`:                                                   `{"additionalProperties":{"type":"string"}}`,
		"{\"properties\":{\"a\":{\"description\":\"\xff \\ud800 é\"}}}":                                "{\"properties\":{\"a\":{\"description\":\"� � é\"}}}",
		`{"oneOf":[{"additionalProperties":false},{"maxLength":3}],"title":"gone"}`:                    `{"oneOf":[{"additionalProperties":false},{"maxLength":3}]}`,
	} {
		if got := string(MinifyForPrompt(json.RawMessage(schema))); got != want {
			t.Errorf("show %s\ngot  %s\nwant %s", schema, got, want)
		}
	}
}

// FuzzSchema: a foreign schema never panics, its short form compiles and accepts the same values,
// and filling in defaults ends.
func FuzzSchema(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":"integer","default":1,"title":"A"}},"required":["a"]}`, `{"a":2}`)
	f.Add(`{"properties":{"a":{"$ref":"#"}},"allOf":[{"$ref":"#/$defs/x"}],"$defs":{"x":{"properties":{"b":{"default":{}}}}}}`, `{"a":{"a":{}}}`)
	f.Add(`{"anyOf":[{"type":"string"},{"type":"array","items":{"enum":[1,null]}}],"not":{"const":5}}`, `[1]`)
	f.Add(`{"$ref":"http://127.0.0.1:1/"}`, `1`)
	f.Add(`{"type":"object","properties":{"a":{"type":"string","maxLength":3}},"additionalProperties":false,"not":{"additionalProperties":false,"properties":{"b":{}}}}`, `{"a":"x"}`)
	f.Fuzz(func(t *testing.T, raw, value string) {
		s, err := Compile(json.RawMessage(raw))
		if err != nil {
			return
		}
		short := Minify(json.RawMessage(raw))
		if !json.Valid(short) {
			t.Fatalf("the short form %s does not compile", short)
		}
		v, err := Decode(json.RawMessage(value))
		if err != nil || Nesting([]byte(value)) > 50 {
			return
		}
		if m, err := Compile(short); err == nil && (len(m.Validate(v)) == 0) != (len(s.Validate(v)) == 0) {
			t.Fatalf("%s and its short form %s disagree on %s", raw, short, value)
		}
		m, err := Compile(MinifyForPrompt(json.RawMessage(raw)))
		if err != nil || len(s.Validate(v)) == 0 && len(m.Validate(v)) > 0 {
			t.Fatalf("%s shown as %s refuses %s (%v)", raw, MinifyForPrompt(json.RawMessage(raw)), value, err)
		}
		s.FillDefaults(v)
	})
}
