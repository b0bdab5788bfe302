package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/llm"
)

// brief describes a plan and its faults in one line.
func brief(p core.Plan, faults []core.Fault) string {
	var b strings.Builder
	if p.Repaired {
		b.WriteString("repaired ")
	}
	if p.Response != "" {
		b.WriteString("say(" + p.Response + ") ")
	}
	for _, s := range p.Steps {
		b.WriteString(s.Type + string(s.Payload) + " ")
	}
	for k := range p.Extra {
		b.WriteString("extra(" + k + ") ")
	}
	for _, f := range faults {
		b.WriteString("! " + f.String() + " ")
	}
	return strings.TrimSpace(b.String())
}

// TestReadForgetsThoughts: private thoughts are removed from everything in a plan, also outside its
// actions.
func TestReadForgetsThoughts(t *testing.T) {
	p, faults := Read(llm.Answer{Text: `{"response":"hi","metadata":{"x":"<think>secret</think>"},
		"context":{"topic":"<think>secret</think>tea","entities":{"a":["<think>secret</think>b"]}},
		"suggestions":["<think>secret</think>","<think>secret</think>more"]}`})
	if kept := fmt.Sprintf("%s %+v", p.Metadata, p); len(faults) > 0 || strings.Contains(kept, "secret") {
		t.Errorf("unexpected plan %s, faults %v", kept, faults)
	}
	if p.Context.Topic != "tea" || len(p.Suggestions) != 1 || p.Suggestions[0] != "more" {
		t.Errorf("unexpected plan %+v", p)
	}
}

func TestReadShapes(t *testing.T) {
	const hi = `a{"text":"hi"}`
	tests := []struct{ name, text, want string }{
		{"whole", `{"response":"hi"}`, "say(hi)"},
		{"actions", `{"actions":[{"type":"a","payload":{"text":"hi"}}]}`, hi},
		{"params", `{"actions":[{"type":"a","params":{"text":"hi"}}]}`, hi},
		{"bare array", `[{"type":"a","payload":{"text":"hi"}}]`, hi},
		{"bare action", `{"type":"a","payload":{"text":"hi"}}`, hi},
		{"action_input", `{"action":"a","action_input":{"text":"hi"}}`, hi},
		{"action_input as text", `{"action":"a","action_input":"{\"text\":\"hi\"}"}`, hi},
		{"final answer", `{"action":"Final Answer","action_input":"hi"}`, "say(hi)"},
		{"function", `{"name":"a","arguments":{"text":"hi"}}`, hi},
		{"function in a call", `{"type":"function","function":{"name":"a","arguments":"{\"text\":\"hi\"}"}}`, hi},
		{"tool tag", `<tool_call>{"name":"a","arguments":{"text":"hi"}}</tool_call>`, hi},
		{"one plan in a list", `[{"response":"hi"}]`, "say(hi)"},
		{"fenced", "```json\n{\"response\":\"hi\"}\n```", "say(hi)"},
		{"prose around", "Sure!\n{\"response\":\"hi\"}\nDone.", "say(hi)"},
		{"brackets of prose", "[laughs] Sure! {\"response\":\"hi\"}", "say(hi)"},
		{"reasoning", "<think>{\"type\":\"ban\"}</think>{\"response\":\"hi\"}", "say(hi)"},
		{"reasoning not opened", "maybe {\"type\":\"ban\",\"payload\":{}}?</think>{\"response\":\"hi\"}", "say(hi)"},
		{"reasoning not closed", "<think>{\"type\":\"ban\",\"payload\":{}}", "! the answer is empty"},
		{"a tag inside of a text", "{\"response\":\"use `<think>` and `</think>`\"}", "say(use `<think>` and `</think>`)"},
		{"a thought in a response", `{"response":"<think>they greet me</think>\n\nhi"}`, "say(hi)"},
		{"a thought and no response", `{"response":"<think>they greet me</think>"}`, `! the plan has neither "response" nor "actions"`},
		{"a thought in a plan in a response", `{"response":"{\"response\":\"<think>x</think>hi\"}"}`, "say(hi)"},
		{"a plan behind a thought in a response", `{"response":"<think>x</think>{\"response\":\"hi\"}"}`, "say(hi)"},
		{"a thought in a message", `{"actions":[{"type":"message_x","payload":{"n":9007199254740993,"buttons":[["<think>x</think>yes"]],"text":"<Thinking>hm</Thinking>hi"}}]}`,
			`message_x{"n":9007199254740993,"buttons":[["yes"]],"text":"hi"}`},
		{"a thought elsewhere", `{"actions":[{"type":"save","payload":{"text":"<think>x</think>hi"}}]}`, `save{"text":"hi"}`},
		{"a thought in the text of a payload", `{"action":"a","action_input":"{\"text\":\"<think>x</think>hi\"}"}`, hi},
		{"marks in code", "{\"type\":\"save\",\"payload\":{\"code\":\"split('</think>') `<think>`\"}}", "save{\"code\":\"split('</think>') `<think>`\"}"},
		{"a plan in a message behind a thought", `{"actions":[{"type":"message_x","payload":{"text":"<think>x</think>{\"response\":\"hi\"}"}}]}`,
			"! actions[0].payload.text: is a plan; write there only what you say to people"},
		{"mistral", `[THINK]{"type":"ban"}[/THINK]{"response":"hi"}`, "say(hi)"},
		{"channel without an end", `<|channel|>analysis<|message|>hm {"type":"ban"}<|start|>assistant<|channel|>final<|message|>{"response":"hi"}`, "say(hi)"},
		{"channels", `<|channel|>analysis<|message|>hm {"type":"ban"}<|end|><|channel|>final<|message|>{"response":"hi"}<|end|>`, "say(hi)"},
		{"lines", "{\"type\":\"a\",\"payload\":{\"text\":\"hi\"}}\n{\"type\":\"b\",\"payload\":{}}", hi + " b{}"},
		{"flat", `{"actions":[{"type":"a","text":"hi"}]}`, hi},
		{"single quotes", `{'response': 'hi',}`, "repaired say(hi)"},
		{"cut list", `{"actions":[{"type":"a","payload":{"text":"hi"}},{"type":"ban","payload":{"us`, `repaired ` + hi + ` ban{"us":null}`},
		{"cut list in prose", `Well: [{"type":"ban","payload":{"user":"1"}},{"type":"b`, `repaired ban{"user":"1"} b{}`},
		{"a smiley", `Oh no :[ here: {"response":"hi"}`, "repaired say(hi)"},
		{"two plans", `{"response":"a"} or rather {"response":"b"}`, "repaired say(b) ! the answer holds 2 plans; send exactly one"},
		{"twice the same", `{"response":"a"} I mean {"response":"a"}`, "say(a)"},
		{"key twice", `{"response":"a","response":"b"}`, "repaired say(b) ! the key response occurs twice in one object"},
		{"stray", `{"response":"a","message":"b"}`, "say(a) extra(message)"},
		{"prose", `Hello there!`, "! the answer is prose; answer with one JSON object"},
		{"empty", " \n", "! the answer is empty"},
		{"nothing", `{}`, `! the JSON of the answer is not an action plan: it has neither "response" nor "actions"`},
		{"no deeds", `{"actions":[]}`, `! the plan has neither "response" nor "actions"`},
		{"deep", `{"response":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `}`, "! the JSON nests too deep"},
		{"number", `{"type":"a","payload":{"n":1e999999999}}`, "! the number 1e999999999 is out of range"},
		{"bad condition", `{"type":"a","payload":{},"conditions":[{"field":"x","operator":"like","value":1}]}`,
			"! actions[0].conditions[0].operator: must be one of eq, neq, gt, gte, lt, lte, contains, exists"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := brief(Read(llm.Answer{Text: test.text})); got != test.want {
				t.Errorf("%s\ngot  %s\nwant %s", test.text, got, test.want)
			}
		})
	}
}

// TestNeverCorrected lists flaws that never justify a second call of the model: the plan runs, and
// what could not be read is kept in Extra or left out.
func TestNeverCorrected(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"an intent in capitals", `"intent":" Query "`, "intent query"},
		{"an intent in another word", `"intent":"question"`, "intent query"},
		{"a request", `"intent":"request"`, "intent action"},
		{"small talk", `"intent":"small-talk"`, "intent conversation"},
		{"chat", `"intent":"chat"`, "intent conversation"},
		{"thanks", `"intent":"thanks"`, "intent social"},
		{"two intents", `"intent":"social/thanks"`, "intent social"},
		{"a known word in an unknown intent", `"intent":"ask_question"`, "intent query"},
		{"an unknown intent", `"intent":"dance","metadata":{"why":"x"}`, `metadata {"intent":"dance","why":"x"}`},
		{"an intent of another type", `"intent":["greeting"]`, `metadata {"intent":["greeting"]}`},
		{"confidence as text", `"confidence":"0.8"`, "confidence 0.8"},
		{"confidence in percent", `"confidence":95`, "confidence 0.95"},
		{"confidence with a sign", `"confidence":"95 %"`, "confidence 0.95"},
		{"one percent", `"confidence":"1%"`, "confidence 0.01"},
		{"confidence in a word", `"confidence":"High"`, "confidence 0.9"},
		{"confidence in two words", `"confidence":"very high"`, "confidence 0.95"},
		{"confidence out of range", `"confidence":-3`, ""},
		{"confidence of another type", `"confidence":{"value":1}`, ""},
		{"a context that is a text", `"context":"tea"`, "topic tea"},
		{"a context that is a list", `"context":["tea"]`, ""},
		{"entities that are a list", `"context":{"topic":"tea","entities":["green"]}`, "topic tea"},
		{"a topic of another type", `"context":{"topic":{"a":1}}`, ""},
		{"one required slot", `"context":{"slotsRequired":"date"}`, "required [date]"},
		{"one suggestion", `"suggestions":"more"`, "suggestions [more]"},
		{"suggestions as objects", `"suggestions":[{"text":"more"},{"x":1},7,null]`, "suggestions [more]"},
		{"suggestions as an object", `"suggestions":{"a":1}`, ""},
		{"metadata that is a text", `"metadata":"sure"`, `metadata {"metadata":"sure"}`},
		{"metadata that is too long", `"metadata":{"x":"` + strings.Repeat("x", maxMetadata) + `"}`, ""},
		{"a remark", `"reasoning":"they asked","Thought":"hm"`, ""},
		{"an empty key", `"tool_calls":[],"error":null,"message":"","data":{}`, ""},
		{"a priority in a word", `"actions":[{"type":"a","payload":{},"priority":"high"}]`, "a priority 8"},
		{"a priority of another type", `"actions":[{"type":"a","payload":{},"priority":[]}]`, "a priority 5"},
		{"a remark beside a payload", `"actions":[{"type":"a","payload":{},"reasoning":"x"}]`, "a priority 5"},
		{"confirmation in a word", `"actions":[{"type":"a","payload":{},"requiresConfirmation":"no"}]`, "a priority 5"},
		{"confirmation that cannot be read", `"actions":[{"type":"a","payload":{},"requiresConfirmation":"please"}]`, "a priority 5 confirmed"},
		{"confirmation in two spellings", `"actions":[{"type":"a","payload":{},"requires_confirmation":true,"requiresConfirmation":null}]`, "a priority 5 confirmed"},
		{"an operator's sign", `"actions":[{"type":"a","payload":{},"conditions":[{"field":"x","operator":"==","value":1}]}]`, "a priority 5 if x eq 1"},
		{"a message that is a text", `"actions":[{"type":"message_x","payload":"hi"}]`, `message_x priority 5 {"text":"hi"}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, faults := Read(llm.Answer{Text: `{"response":"a",` + test.text + `}`})
			if got := outline(p); got != test.want || len(faults)+len(p.Extra) > 0 || p.Response != "a" || p.Repaired {
				t.Errorf("got %q, faults %v, extra %v; want %q", got, faults, p.Extra, test.want)
			}
		})
	}
	p, faults := Read(llm.Answer{Text: `{"response":{"text":"hi"}}`})
	if p.Response != "hi" || len(faults) > 0 {
		t.Errorf("a response that is an object: unexpected response %q, faults %v", p.Response, faults)
	}
}

// outline describes a plan without its response.
func outline(p core.Plan) string {
	var all []string
	add := func(said bool, format string, args ...any) {
		if said {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	add(p.Intent != "", "intent %s", p.Intent)
	if p.Confidence != nil {
		add(true, "confidence %.3g", *p.Confidence)
	}
	add(p.Context.Topic != "", "topic %s", p.Context.Topic)
	add(len(p.Context.Entities)+len(p.Context.SlotsFilled) > 0, "values")
	add(len(p.Context.SlotsRequired) > 0, "required %v", p.Context.SlotsRequired)
	add(len(p.Suggestions) > 0, "suggestions %v", p.Suggestions)
	add(len(p.Metadata) > 0, "metadata %s", p.Metadata)
	for _, s := range p.Steps {
		add(true, "%s priority %d", s.Type, s.Priority)
		add(string(s.Payload) != "{}", "%s", s.Payload)
		add(s.Confirm, "confirmed")
		for _, c := range s.Conditions {
			add(true, "if %s %s %s", c.Field, c.Operator, c.Value)
		}
	}
	return strings.Join(all, " ")
}

func TestReadCalls(t *testing.T) {
	call := func(name, args string) llm.ToolCall {
		return llm.ToolCall{Name: name, Arguments: json.RawMessage(args)}
	}
	tests := []struct {
		name   string
		answer llm.Answer
		want   string
	}{
		{"one", llm.Answer{Calls: []llm.ToolCall{call("a", `{"x":1}`)}}, `a{"x":1}`},
		{"words beside", llm.Answer{Text: "One moment.", Calls: []llm.ToolCall{call("a", ``)}}, `say(One moment.) a{}`},
		{"words beside a message", llm.Answer{Text: "thinking aloud", Calls: []llm.ToolCall{call("message_x", `{"text":"hi"}`)}}, `message_x{"text":"hi"}`},
		{"a thought", llm.Answer{Calls: []llm.ToolCall{call("a", `{"x":"<think>y</think>z"}`)}}, `a{"x":"z"}`},
		{"cut", llm.Answer{Calls: []llm.ToolCall{call("a", `{"x":1`)}}, `repaired a{"x":1}`},
		{"cut after a whole one", llm.Answer{Truncated: true, Calls: []llm.ToolCall{call("a", `{"x":1}`)}}, `repaired a{"x":1}`},
		{"no object", llm.Answer{Calls: []llm.ToolCall{call("a", `[1]`)}}, `! actions[0].payload: the arguments of a must be an object`},
	}
	for _, test := range tests {
		if got := brief(Read(test.answer)); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.name, got, test.want)
		}
	}
}

func TestReadKeepsWhatPluginsRegistered(t *testing.T) {
	p, faults := Read(llm.Answer{Text: `{"response":"a","mood":"merry","metadata":{"why":"x"}}`}, "mood")
	if len(faults) > 0 || len(p.Extra) > 0 || string(p.Metadata) != `{"mood":"merry","why":"x"}` {
		t.Errorf("unexpected faults %v, extra %v or metadata %s", faults, p.Extra, p.Metadata)
	}
}

func TestProse(t *testing.T) {
	tests := []struct {
		text, want string
	}{
		{"Hello there!", "Hello there!"},
		{"<think>secret</think>Hello!", "Hello!"},
		{"👍", "👍"},
		{"Use `map[string]int{}` here.", "Use `map[string]int{}` here."},
		{"Thought: x\nFinal Answer: hello", "hello"},
		{"", ""},
		{"...", ""},
		{"Thought: he is rude", ""},
		{"(internal note: do not tell)", ""},
		{`{"response": "hi`, ""},
		{"Sure: {\"a\":1}", ""},
		{"message_telegram(hi)", ""},
		{"<tool_call>x", ""},
		{"```json\nx```", ""},
		{"<html><body>502</body></html>", ""},
		{"I <3 tea", "I <3 tea"},
		{strings.Repeat("x", 5000), ""},
	}
	for _, test := range tests {
		got, ok := Prose(test.text)
		if got != test.want || ok != (test.want != "") {
			t.Errorf("Prose(%.40q) = %q, %v; want %q", test.text, got, ok, test.want)
		}
	}
}

// FuzzRead: Read never panics, never invents an action, and keeps its limits.
func FuzzRead(f *testing.F) {
	for _, s := range []string{`{"response":"hi"}`, `[{"type":"a","payload":{}}]`, "<think>x</think>```json\n{'a':1}\n```", `{"actions":[{"type":"a","pay`, `{a:[{type:b+c}]}`} {
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, text string, cut bool) {
		p, faults := Read(llm.Answer{Text: text, Truncated: cut})
		if len(p.Steps) == 0 && p.Response == "" && len(faults) == 0 {
			t.Fatal("the plan is empty, but has no fault")
		}
		if cut && !p.Repaired {
			t.Fatal("a truncated plan is not marked as such")
		}
		for s := range each(p.Steps) {
			if !utf8.ValidString(s.Type) || !json.Valid(s.Payload) || s.Payload[0] != '{' {
				t.Fatalf("invalid step %+v", s)
			}
			if s.Priority < 0 || s.Priority > 10 {
				t.Fatalf("invalid priority %d", s.Priority)
			}
			if !strings.Contains(text, s.Type) && !strings.ContainsAny(text, "\\\x00\uFFFD") && utf8.ValidString(text) {
				t.Fatalf("action %q is not in the text", s.Type)
			}
		}
		Prose(text)
	})
}

// each yields the steps and all their fallbacks.
func each(steps []core.Step) func(func(*core.Step) bool) {
	return func(yield func(*core.Step) bool) {
		for i := range steps {
			for s := &steps[i]; s != nil; s = s.Fallback {
				if !yield(s) {
					return
				}
			}
		}
	}
}

// TestTextBesideCalls: a reply may hold a JSON plan and tool calls.
func TestTextBesideCalls(t *testing.T) {
	call := llm.ToolCall{ID: "1", Name: "look", Arguments: []byte(`{"at":"moss"}`)}
	p, faults := Read(llm.Answer{Text: `{"response":"Let me look.","intent":"query"}`, Calls: []llm.ToolCall{call}})
	if len(faults) > 0 || p.Response != "Let me look." || p.Intent != "query" || len(p.Steps) != 1 || p.Steps[0].Type != "look" {
		t.Errorf("unexpected plan %+v, faults %v", p, faults)
	}
	p, faults = Read(llm.Answer{Text: "Let me look.", Calls: []llm.ToolCall{call}})
	if len(faults) > 0 || p.Response != "Let me look." || len(p.Steps) != 1 {
		t.Errorf("with prose: unexpected plan %+v, faults %v", p, faults)
	}
}

func TestNoRawJSONForPeople(t *testing.T) {
	for text, want := range map[string]string{
		"null": "", "42": "", "true": "", `"just a string"`: "just a string", "[1]": "", "Hello there.": "Hello there.", `"{\"a\":1}"`: "",
	} {
		if got, ok := Prose(text); got != want && ok || ok != (want != "") {
			t.Errorf("Prose(%s) = %q, %v; want %q", text, got, ok, want)
		}
	}
	p, faults := Read(llm.Answer{Text: `{"response":"{\"response\":\"inner\"}"}`})
	if p.Response != "inner" || len(faults) > 0 {
		t.Errorf("a plan within a plan was read as %+v, %v", p, faults)
	}
}

// BenchmarkRead reads a typical reply: a fenced plan with text around it.
func BenchmarkRead(b *testing.B) {
	a := llm.Answer{Text: "Sure!\n```json\n" + `{"response":"Hello, Jay. How was the market today?","intent":"greeting","confidence":0.9,"actions":[{"type":"memory_save","payload":{"text":"Jay was at the market"}}],"suggestions":["Tell me"]}` + "\n```"}
	for b.Loop() {
		if _, faults := Read(a); len(faults) > 0 {
			b.Fatal(faults)
		}
	}
}

// TestPlanWithinAPlan: a plan within a plan is never sent to users as text.
func TestPlanWithinAPlan(t *testing.T) {
	quoted := func(s string) string {
		raw, _ := json.Marshal(s)
		return string(raw)
	}
	for within, want := range map[string]string{
		`{"actions":[]}`: "", `{"response":"inner"}`: "inner", "```json\n{\"response\":\"inner\"}\n```": "inner", `{"type":"message_console","payload":{"text":"hi"}}`: "",
		`{"action":"fly","action_input":{}}`: "", `{"a":1}`: `{"a":1}`, `Write {"actions":[]} there.`: `Write {"actions":[]} there.`, "plain": "plain",
	} {
		p, faults := Read(llm.Answer{Text: `{"response":` + quoted(within) + `}`})
		if p.Response != want || (len(faults) > 0) != (want == "") {
			t.Errorf("%s: unexpected response %q, faults %v", within, p.Response, faults)
		}
		said := within == want
		p, faults = Read(llm.Answer{Text: `{"actions":[{"type":"message_room","payload":{"text":` + quoted(within) + `}},{"type":"wave","payload":{}}]}`})
		if n := len(p.Steps); n != map[bool]int{true: 2, false: 1}[said] || (len(faults) == 0) != said {
			t.Errorf("%s as a message: unexpected: %d steps, faults %v", within, n, faults)
		}
	}
}

// BenchmarkReadWhole reads an ideal reply: a plan with one message.
func BenchmarkReadWhole(b *testing.B) {
	a := llm.Answer{Text: `{"response":"","intent":"greeting","confidence":0.9,"actions":[{"type":"message_telegram","payload":{"text":"Hello, Jay. How was the market today?","interface_path":"telegram/-100/7"}}],"suggestions":["Tell me"]}`}
	b.ReportAllocs()
	for b.Loop() {
		if _, faults := Read(a); len(faults) > 0 {
			b.Fatal(faults)
		}
	}
}
