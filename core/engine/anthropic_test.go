package engine

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"synthbot/core/llm"
)

// respondAnthropic answers with the content, in the format of the messages API.
func respondAnthropic(content string) http.HandlerFunc {
	return body(200, `{"type":"message","role":"assistant","content":`+content+`,"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":4,"cache_read_input_tokens":20,"cache_creation_input_tokens":7}}`)
}

func TestAnthropicRequest(t *testing.T) {
	s := newServer(t, respondAnthropic(`[{"type":"text","text":"yo"}]`))
	s.strict = strictAnthropic
	r := hello()
	r.Messages[0].Pictures = []llm.File{{MIME: "image/png", Data: []byte{1, 2, 3}}}
	r.Messages = append([]llm.Utterance{{Role: llm.RoleModel, Text: "I spoke first."}, {Role: llm.RoleUser, Text: "  "}}, r.Messages...)
	a := askModel(t, s.model(anthropicTable, func(c *Config) { c.Vision, c.MaxTokens = true, 0 }), r)
	want := llm.Answer{Text: "yo", Engine: "test", Usage: llm.Usage{In: 30, Out: 4, Cached: 20}}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Error(diff)
	}
	got := s.last()
	if got.path != "/v1/messages" || got.header.Get("X-Api-Key") != testKey || got.header.Get("Anthropic-Version") == "" {
		t.Errorf("got %s %v", got.path, got.header)
	}
	if got.body["max_tokens"] != float64(anthropicTokens) || got.body["temperature"] != nil || got.body["response_format"] != nil {
		t.Error(got.raw)
	}
	system := got.body["system"].([]any)
	if len(system) != 3 || countMarks(system) != 2 || system[0].(map[string]any)["text"] != hello().System[0] {
		t.Errorf("system %v", system)
	}
	if !strings.Contains(got.raw, `"data":"AQID"`) {
		t.Error("the request lacks the picture")
	}
}

// TestAnthropicSchema checks that the messages API gets the schema as a tool, whose input becomes the answer.
func TestAnthropicSchema(t *testing.T) {
	s := newServer(t, respondAnthropic(`[{"type":"text","text":" "},{"type":"tool_use","id":"t1","name":"synthbot_reply","input":{"response":"yo"}}]`))
	s.strict = strictAnthropic
	m := s.model(anthropicTable)
	if a := askModel(t, m, hello()); strings.TrimSpace(a.Text) != `{"response":"yo"}` || len(a.Calls) > 0 || a.Truncated {
		t.Errorf("got %+v", a)
	}
	got := s.last()
	if choice, _ := got.body["tool_choice"].(map[string]any); choice["type"] != "tool" || choice["name"] != "synthbot_reply" || !strings.Contains(got.raw, testSchema) {
		t.Error(got.raw)
	}
	s.say(events(
		`{"type":"message_start","message":{"usage":{"input_tokens":3}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"synthbot_reply","input":{}}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"response\":"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"\"yo\"}"}}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`, `{"type":"message_stop"}`))
	var pieces []string
	if a := askModel(t, m, streaming(hello(), &pieces)); a.Text != `{"response":"yo"}` || strings.Join(pieces, "|") != `{"response":|"yo"}` {
		t.Errorf("%+v, pieces %q", a, pieces)
	}
	plain := hello()
	plain.Schema = nil
	s.say(respondAnthropic(`[{"type":"text","text":"yo"}]`))
	if askModel(t, m, plain); s.last().body["tools"] != nil {
		t.Error("a request without a schema has a tool")
	}
}

func TestAnthropicShapes(t *testing.T) {
	call := func(id, name, arguments string) llm.ToolCall {
		return llm.ToolCall{ID: id, Name: name, Arguments: json.RawMessage(arguments)}
	}
	for name, tc := range map[string]struct {
		content string
		want    llm.Answer
	}{
		"text and calls": {`[{"type":"text","text":"let me"},{"type":"tool_use","id":"t1","name":"w","input":{"id":9007199254740993}},{"type":"tool_use","id":"t2","name":"w","input":{}}]`,
			llm.Answer{Text: "let me", Calls: []llm.ToolCall{call("t1", "w", `{"id":9007199254740993}`), call("t2", "w", `{}`)}}},
		"thinking":    {`[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"redacted_thinking","data":"x"},{"type":"text","text":"a"},{"type":"brand_new"},{"type":"text","text":"b"}]`, llm.Answer{Text: "ab"}},
		"one call":    {`[{"type":"tool_use","id":"t1","name":"w","input":{"json":"mine"}}]`, llm.Answer{Calls: []llm.ToolCall{call("t1", "w", `{"json":"mine"}`)}}},
		"input alone": {`[{"type":"tool_use","id":"t1","name":"w"}]`, llm.Answer{Calls: []llm.ToolCall{call("t1", "w", `{}`)}}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.want.Engine, tc.want.Usage = "test", llm.Usage{In: 30, Out: 4, Cached: 20}
			s := newServer(t, respondAnthropic(tc.content))
			if diff := cmp.Diff(tc.want, askModel(t, s.model(anthropicTable), hello())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnthropicFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		kind   llm.ErrorKind
		status int
	}{
		"limited":     {body(429, `{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`), llm.ErrorRetryLater, 429},
		"overloaded":  {body(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), llm.ErrorRetryLater, 529},
		"key":         {body(401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key `+testKey+`"}}`), llm.ErrorFatal, 401},
		"too long":    {body(400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`), llm.ErrorTooLong, 400},
		"empty":       {respondAnthropic(`[]`), llm.ErrorRetryLater, 0},
		"refusal":     {body(200, `{"content":[{"type":"text","text":"I"}],"stop_reason":"refusal","usage":{}}`), llm.ErrorRefused, 0},
		"error event": {streamAnthropic(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), llm.ErrorRetryLater, 0},
		"gateway":     {body(200, `{"error":{"type":"invalid_request_error","message":"prompt is too long"},"message":"prompt is too long"}`), llm.ErrorTooLong, 0},
		"wrong shape": {body(200, `{"content":"text"}`), llm.ErrorRetryLater, 0},
		"stream cut":  {streamAnthropic(), llm.ErrorRetryLater, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, tc.answer)
			for range 3 { // the library would leak a goroutine in each call
				failed := failModel(t, s.model(anthropicTable), hello())
				if failed.Kind != tc.kind || failed.Status != tc.status {
					t.Errorf("got %v", failed)
				}
			}
		})
	}
}

// streamAnthropic streams the start of a message and then the lines.
func streamAnthropic(lines ...string) http.HandlerFunc {
	begin := `{"type":"message_start","message":{"id":"m","usage":{"input_tokens":3,"output_tokens":1,"cache_read_input_tokens":5}}}`
	return events(append([]string{begin, `{"type":"ping"}`}, lines...)...)
}

func TestAnthropicStream(t *testing.T) {
	text := []string{
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"secret thoughts"}}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`, `{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"he"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"llo"}}`, `{"type":"content_block_stop","index":1}`,
	}
	tool := []string{
		`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t1","name":"w","input":{}}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"id\":90071992"}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"54740993}"}}`, `{"type":"content_block_stop","index":2}`,
	}
	end := func(reason string) []string {
		return []string{`{"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{"output_tokens":9}}`, `{"type":"message_stop"}`}
	}
	all := append(append(text, tool...), end("tool_use")...)
	s := newServer(t, streamAnthropic(all...))
	var pieces []string
	r := streaming(hello(), &pieces)
	r.Tools = []llm.Tool{{Name: "w"}}
	a := askModel(t, s.model(anthropicTable), r)
	want := llm.Answer{Text: "hello", Engine: "test", Usage: llm.Usage{In: 8, Out: 9, Cached: 5}, Calls: []llm.ToolCall{{ID: "t1", Name: "w", Arguments: json.RawMessage(`{"id":9007199254740993}`)}}}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Error(diff)
	}
	if strings.Join(pieces, "|") != "he|llo" {
		t.Errorf("pieces %q", pieces)
	}

	cut := append(append(text[:len(text):len(text)], tool[:2]...), end("max_tokens")...)
	s.say(streamAnthropic(cut...))
	a = askModel(t, s.model(anthropicTable), r)
	if !a.Truncated || len(a.Calls) != 1 || string(a.Calls[0].Arguments) != `"{\"id\":90071992"` {
		t.Errorf("got %+v", a)
	}
}
