package engine

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"synthbot/core/llm"
)

func streaming(r llm.Request, pieces *[]string) llm.Request {
	r.Stream = func(p string) { *pieces = append(*pieces, p) }
	return r
}

func TestOpenAIStream(t *testing.T) {
	s := newServer(t, events(`{"choices":[{"delta":{"role":"assistant","content":""}}]}`, `{"choices":[{"delta":{"content":"he"}}]}`, `: ping`, `not json`, `{} {}`, `5`, `{"choices":5}`,
		`{"choices":[{"index":1,"delta":{"content":"OTHER"}}]}`, `{"choices":[{"delta":{"content":"llo"},"finish_reason":"stop"}]}`,
		`{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`, `[DONE]`))
	s.strict = strictOpenAI
	var pieces []string
	a := askModel(t, s.model(), streaming(hello(), &pieces))
	want := llm.Answer{Text: "hello", Engine: "test", Usage: llm.Usage{In: 3, Out: 2}}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Error(diff)
	}
	if strings.Join(pieces, "|") != "he|llo" {
		t.Errorf("pieces %q", pieces)
	}
	if b := s.last().body; b["stream"] != true || b["stream_options"] == nil {
		t.Errorf("got %v", b)
	}
}

// TestOneBigPiece checks that a server may answer in one piece although a stream was requested, and that an
// engine with streaming disabled works.
func TestOneBigPiece(t *testing.T) {
	s := newServer(t, respondOpenAI("hello"))
	for _, stream := range []bool{true, false} {
		var pieces []string
		a := askModel(t, s.model(func(c *Config) { c.Stream = stream }), streaming(hello(), &pieces))
		if a.Text != "hello" || strings.Join(pieces, "|") != "hello" || (s.last().body["stream"] == true) != stream {
			t.Errorf("got %+v %q", a, pieces)
		}
	}
}

func TestLongLineOfAStream(t *testing.T) {
	long := strings.Repeat("x", 300_000)
	s := newServer(t, events(`{"choices":[{"delta":{"content":"`+long+`"},"finish_reason":"stop"}]}`, `[DONE]`))
	var pieces []string
	if a := askModel(t, s.model(), streaming(hello(), &pieces)); a.Text != long || a.Truncated {
		t.Errorf("got %d bytes, truncated %v", len(a.Text), a.Truncated)
	}
}

// TestCutStreams checks that a stream without a finish reason is a truncated answer, and that a broken
// connection is an error.
func TestCutStreams(t *testing.T) {
	half := `{"choices":[{"delta":{"content":"hal"}}]}`
	s := newServer(t, nil)
	var pieces []string
	for _, lines := range [][]string{{half}, {half, doneMark}} {
		s.say(events(lines...))
		if a := askModel(t, s.model(), streaming(hello(), &pieces)); a.Text != "hal" || !a.Truncated {
			t.Errorf("%q: got %+v", lines, a)
		}
	}
	s.say(func(w http.ResponseWriter, r *http.Request) {
		events(half)(w, r)
		panic(http.ErrAbortHandler)
	})
	if failed := failModel(t, s.model(), streaming(hello(), &pieces)); failed.Kind != llm.ErrorRetryLater {
		t.Errorf("got %v", failed)
	}
	s.say(func(w http.ResponseWriter, r *http.Request) {
		events(half, `{"choices":[{"delta":{"content":"f"},"finish_reason":"stop"}]}`)(w, r)
		panic(http.ErrAbortHandler) // the answer was complete before the connection broke
	})
	if a := askModel(t, s.model(), streaming(hello(), &pieces)); a.Text != "half"[:3]+"f" || a.Truncated {
		t.Errorf("got %+v", a)
	}
}

func TestToolCallsWhileStreaming(t *testing.T) {
	call := func(id, name, arguments string) llm.ToolCall {
		return llm.ToolCall{ID: id, Name: name, Arguments: json.RawMessage(arguments)}
	}
	delta := func(calls string) string { return `{"choices":[{"delta":{"tool_calls":[` + calls + `]}}]}` }
	end := `{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`
	for name, tc := range map[string]struct {
		lines []string
		want  []llm.ToolCall
	}{
		"pieces": {[]string{delta(`{"index":0,"id":"c1","type":"function","function":{"name":"a","arguments":""}}`), delta(`{"index":0,"function":{"arguments":"{\"city\":"}}`), delta(`{"index":0,"function":{"arguments":"\"A\"}"}}`)},
			[]llm.ToolCall{call("c1", "a", `{"city":"A"}`)}},
		"type again": {[]string{delta(`{"index":0,"id":"c1","type":"function","function":{"name":"a","arguments":"{\"city\":"}}`), delta(`{"index":0,"id":"c1","type":"function","function":{"arguments":"\"A\"}"}}`)},
			[]llm.ToolCall{call("c1", "a", `{"city":"A"}`)}},
		"interleaved": {[]string{delta(`{"index":0,"id":"c1","type":"function","function":{"name":"a","arguments":""}},{"index":1,"id":"c2","type":"function","function":{"name":"b","arguments":""}}`),
			delta(`{"index":1,"function":{"arguments":"{\"y\":"}}`), delta(`{"index":0,"function":{"arguments":"{\"x\":1}"}}`), delta(`{"index":1,"function":{"arguments":"2}"}}`)},
			[]llm.ToolCall{call("c1", "a", `{"x":1}`), call("c2", "b", `{"y":2}`)}},
		"all with index 0": {[]string{delta(`{"index":0,"id":"c1","function":{"name":"a","arguments":"{\"x\":1}"}}`), delta(`{"index":0,"id":"c2","function":{"name":"b","arguments":"{\"y\":2}"}}`)},
			[]llm.ToolCall{call("c1", "a", `{"x":1}`), call("c2", "b", `{"y":2}`)}},
		"without index": {[]string{delta(`{"id":"c1","function":{"name":"a","arguments":"{\"x\""}}`), delta(`{"function":{"arguments":":1}"}}`), delta(`{"function":{"name":"b","arguments":"{}"}}`)},
			[]llm.ToolCall{call("c1", "a", `{"x":1}`), call("call_1", "b", `{}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, events(append(tc.lines, end, `[DONE]`)...))
			var pieces []string
			r := streaming(hello(), &pieces)
			r.Tools = []llm.Tool{{Name: "a"}, {Name: "b"}}
			a := askModel(t, s.model(), r)
			a.Usage = llm.Usage{}
			if diff := cmp.Diff(llm.Answer{Engine: "test", Calls: tc.want}, a); diff != "" {
				t.Error(diff)
			}
			if len(pieces) > 0 {
				t.Errorf("streamed to users: %q", pieces)
			}
		})
	}
}
