package plan

import (
	"encoding/json"
	"testing"
)

func TestUnthink(t *testing.T) {
	for raw, want := range map[string]string{
		`{"a":"b"}`: `{"a":"b"}`,
		`["<think>x</think>one","two",{"k":"[THINK]y[/THINK]three"}]`:        `["one","two",{"k":"three"}]`,
		`"\u003cthink\u003ex\u003c/think\u003eone"`:                          `"one"`,
		`"<think>\"x\" \\</think>one"`:                                       `"one"`,
		`"a \"<think>\" in quotes, and a backslash \\"`:                      `"a \"<think>\" in quotes, and a backslash \\"`,
		`{"a":1,"<think>":"<b>bold</b>","c":"&lt;think&gt;x&lt;/think&gt;"}`: `{"a":1,"":"<b>bold</b>","c":""}`,
		`"not ended`: `"not ended`,
		`"\`:         `"\`,
		`12`:         `12`,
	} {
		if got := string(unthink(json.RawMessage(raw))); got != want {
			t.Errorf("%s: got %s, want %s", raw, got, want)
		}
	}
}

func FuzzUnthinkJSON(f *testing.F) {
	f.Add(`{"a":"<think>b</think>c\\"}`)
	f.Fuzz(func(t *testing.T, raw string) {
		clean := unthink(json.RawMessage(raw))
		if json.Valid([]byte(raw)) && !json.Valid(clean) {
			t.Errorf("%q still holds a thought: %q", raw, clean)
		}
	})
}
