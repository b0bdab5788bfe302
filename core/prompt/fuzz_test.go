package prompt

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/llm"
)

// FuzzPrompt: whatever users, platforms, plugins and tools supply, prompt and request are valid
// JSON of the stated size within the limit.
func FuzzPrompt(f *testing.F) {
	for _, s := range []string{"", "hello", "\x00\xff\xed\xa0\x80", `{"self":true}`, "\u2028\u2029<&>"} {
		f.Add(s, s, s, uint16(5000), true)
	}
	for _, raw := range []string{`{"a":"\ud800"}`, `["\ud83d\ude00","\\ud800","\udc00\ud800"]`, strings.Repeat("[", 9000) + strings.Repeat("]", 9000), `{"a":1,"a":2} `, "\"\xff\""} {
		f.Add("x", "name", raw, uint16(0), false)
	}
	f.Fuzz(func(t *testing.T, text, name, raw string, limit uint16, tools bool) {
		l := llm.Limits{Chars: int(limit)}
		if tools {
			l.Dialect = llm.DialectTools
		}
		checkForeign(t, text, name, raw, l)
	})
}

func TestMegabytes(t *testing.T) {
	huge := strings.Repeat("a\x00\xff", 1<<18)
	checkForeign(t, huge, "Jay", `"x"`, llm.Limits{Chars: 24000})
	if raced {
		return // the race detector makes it ten times slower
	}
	checkForeign(t, huge, "Jay", `"`+huge+`"`, llm.Limits{})
	checkForeign(t, "hello", huge, `"`+strings.Repeat("b", 1<<20)+`"`, llm.Limits{Chars: 24000, Dialect: llm.DialectTools})
}

// checkForeign builds prompt, request and correction from foreign input and checks them.
func checkForeign(t *testing.T, text, name, raw string, l llm.Limits) {
	t.Helper()
	out, err := Build(new(foreign(text, name, json.RawMessage(raw))), l)
	if err != nil {
		return
	}
	s := read(t, &out)
	if l.Chars > 0 && out.chars() > l.Chars {
		t.Fatalf("the prompt has %d characters, want at most %d", out.chars(), l.Chars)
	}
	if n := len(s.Context.Current); n > 1 {
		t.Fatalf("one entry became %d entries", n)
	}
	if strings.ContainsAny(out.instructions, "\n\r") {
		t.Fatalf("the instructions have several lines: %q", out.instructions)
	}
	checkRequest(t, out.Request())
	examples := core.Examples{Description: text, Examples: []core.Example{{Payload: json.RawMessage(raw)}}}
	action := CorrectionAction{Name: name, Brief: text, Schema: json.RawMessage(raw), Examples: examples}
	faults := []core.Fault{{Field: name, Text: text}}
	c := Correction{Prompt: &out, Reply: text, Faults: faults, Actions: []CorrectionAction{action}}
	checkRequest(t, c.Request())
}

// foreign returns a prompt in which everything comes from outside.
func foreign(text, name string, raw json.RawMessage) Parts {
	e := said("telegram/-100/7", 1, name, text)
	e.Message.ReplyTo = &core.Quote{ID: name, Text: text, From: core.Author{Name: name, Tag: text}}
	e.Message.Attachments = []core.Attachment{{Kind: core.MediaImage, Name: name, MIME: text, Size: -1, Ref: "r"}}
	schema, _ := compact(raw)
	return Parts{
		Cache: NewCache(),
		Kind:  Delivery, Interface: name, Chat: true, Persona: core.Persona{Text: text, Dialogue: name},
		Messages: []core.Entry{e},
		Context: Context{
			History: []core.Entry{e}, Recent: []core.Entry{e},
			Participants: []json.RawMessage{raw}, Memories: []json.RawMessage{raw},
			Injections: map[string]json.RawMessage{name: raw, "x": raw, "persona": raw},
			State: core.State{
				Topic: text, Entities: map[string]json.RawMessage{name: raw}, SlotsRequired: []string{text},
			},
			Recon: Recon{
				Language: name, MessageTone: text, Snippets: []string{text}, Instructions: []string{text},
				Memories: []string{text},
			},
		},
		Actions:  []Action{{Name: name, Brief: text, Schema: json.RawMessage(schema)}},
		Contents: llm.Contents{Texts: map[string]string{"r": text}}, Outputs: []Output{{Action: name, Payload: raw, Output: raw, Text: text}}, Said: []string{text},
	}
}

// checkRequest checks that the parts of a request are valid.
func checkRequest(t *testing.T, r llm.Request) {
	t.Helper()
	for _, s := range r.System {
		if !utf8.ValidString(s) {
			t.Fatalf("a system part is not UTF-8: %q", s)
		}
	}
	for _, u := range r.Messages {
		for line := range strings.Lines(u.Text) {
			if !utf8.ValidString(u.Text) || u.Role == llm.RoleUser && !json.Valid([]byte(line)) {
				t.Fatalf("a line of a message is not JSON: %q", line)
			}
		}
		for _, c := range u.Calls {
			if !json.Valid(c.Arguments) {
				t.Fatalf("invalid call %s", c.Arguments)
			}
		}
	}
	for _, tool := range r.Tools {
		if !json.Valid(tool.Schema) {
			t.Fatalf("invalid schema %s", tool.Schema)
		}
	}
}

func TestTooDeepIsLeftOut(t *testing.T) {
	for depth, want := range map[int]bool{maxDepth: true, maxDepth + 1: false, 9000: false} {
		raw := strings.Repeat("[", depth) + strings.Repeat("]", depth)
		if _, ok := compact(json.RawMessage(raw)); ok != want {
			t.Errorf("JSON of depth %d: accepted: got %t, want %t", depth, ok, want)
		}
	}
}

func TestLoneSurrogates(t *testing.T) {
	for raw, want := range map[string]string{
		`"\ud800"`:                 `"\ufffd"`,
		`"\uDC00\uD800x"`:          `"\ufffd\ufffdx"`,
		`"\ud83d\ude00"`:           `"\ud83d\ude00"`,
		`"\\ud800"`:                `"\\ud800"`,
		`"\ud83d\ud83d\ude00"`:     `"\ufffd\ud83d\ude00"`,
		` { "a" : [ 1 , "b " ] } `: `{"a":[1,"b "]}`,
	} {
		got, ok := compact(json.RawMessage(raw))
		if !ok || got != want {
			t.Errorf("%s: got %s, want %s", raw, got, want)
		}
	}
}
