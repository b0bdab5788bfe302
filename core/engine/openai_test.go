package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"

	"synthbot/core/llm"
	"synthbot/core/secret"
)

func TestOpenAIRequest(t *testing.T) {
	s := newServer(t, respondOpenAI("yo"))
	s.strict = strictOpenAI
	t.Setenv("OPENAI_ORGANIZATION", "someone-else")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/")
	askModel(t, s.model(), hello())
	got := s.last()
	if got.path != "/v1/chat/completions" || got.header.Get("Authorization") != "Bearer "+testKey || got.header.Get("OpenAI-Organization") != "" {
		t.Errorf("got %s %v", got.path, got.header)
	}
	for _, absent := range []string{"temperature", "top_p", "reasoning_effort", "stream", "stream_options", "tools", "tool_choice", "max_completion_tokens"} {
		if v, ok := got.body[absent]; ok {
			t.Errorf("the request has %s = %v, want it absent", absent, v)
		}
	}
	if got.body["model"] != "m1" || got.body["max_tokens"] != 100.0 {
		t.Errorf("body %v", got.body)
	}
	messages := got.body["messages"].([]any)
	if system := messages[0].(map[string]any)["content"]; system != strings.Join(hello().System, "\n\n") || len(messages) != 2 {
		t.Errorf("messages %v", messages)
	}
	if !strings.HasSuffix(strings.TrimSuffix(got.raw, "}]}"), `}}}"`) {
		t.Errorf("the messages are not the last field: %s", got.raw)
	}
}

func TestOpenAIWhatTheTableSays(t *testing.T) {
	s := newServer(t, respondOpenAI("yo"))
	m := s.model(func(c *Config) {
		c.Temperature, c.TopP, c.Effort, c.Provider, c.BaseURL = 0, 0.5, "low", "openai", s.URL+"/other"
	})
	askModel(t, m, hello())
	got := s.last()
	if b := got.body; b["temperature"] != 0.0 || b["top_p"] != 0.5 || b["reasoning_effort"] != "low" || got.path != "/other/chat/completions" {
		t.Errorf("got %s %v", got.path, b)
	}
	if got.body["max_tokens"] != 100.0 {
		t.Error("a server other than OpenAI's must get max_tokens")
	}
}

func TestMaxTokensField(t *testing.T) {
	for provider, want := range map[string]string{"openai": "max_completion_tokens", "ollama": "max_tokens", "gemini": "max_tokens", "vllm": "max_tokens"} {
		var sent map[string]any
		base := roundTripFunc(func(r *http.Request) (*http.Response, error) {
			sent = nil
			if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
				t.Error(err)
			}
			return nil, io.ErrUnexpectedEOF
		})
		m, err := newRemote(Config{Name: "x", Provider: provider, Model: "o4-mini", APIKey: secret.New("k"), MaxTokens: 7, Temperature: -1}.withDefaults(), &transport{base: base})
		if err != nil {
			t.Fatal(err)
		}
		failModel(t, m, hello())
		if sent[want] != 7.0 {
			t.Errorf("%s: got %v", provider, sent)
		}
		if _, ok := sent["temperature"]; ok {
			t.Errorf("%s: the request for o4-mini has a temperature", provider)
		}
	}
}

// TestSameRequestSameBytes checks that equal requests have equal bodies, byte by byte.
func TestSameRequestSameBytes(t *testing.T) {
	for _, change := range []func(*Config){func(*Config) {}, anthropicTable} {
		s := newServer(t, respondOpenAI("yo"))
		if s.table(change).Provider == "anthropic" {
			s.say(respondAnthropic(`[{"type":"text","text":"yo"}]`))
		}
		m := s.model(change)
		for range 5 {
			askModel(t, m, hello())
		}
		for _, r := range s.got() {
			if r.raw != s.last().raw {
				t.Fatalf("%s\n%s", r.raw, s.last().raw)
			}
		}
	}
}

func TestKeylessServerGetsNoKey(t *testing.T) {
	s := newServer(t, respondOpenAI("yo"))
	askModel(t, s.model(func(c *Config) { c.APIKey = secret.Secret{} }), hello())
	if h := s.last().header; h.Get("Authorization") != "" {
		t.Errorf("got %v", h)
	}
}

func TestPicturesTravelAsDataURLs(t *testing.T) {
	s := newServer(t, respondOpenAI("yo"))
	s.strict = strictOpenAI
	r := hello()
	r.Messages[0].Pictures = []llm.File{{MIME: "image/png", Data: []byte{1, 2, 3}}}
	askModel(t, s.model(func(c *Config) { c.Vision = true }), r)
	if !strings.Contains(s.last().raw, `"data:image/png;base64,AQID"`) {
		t.Error(s.last().raw)
	}
	askModel(t, s.model(), r)
	if strings.Contains(s.last().raw, "AQID") {
		t.Error("an engine without vision got a picture")
	}
}

func TestSoundsTravelAsParts(t *testing.T) {
	s := newServer(t, respondOpenAI("yo"))
	s.strict = strictOpenAI
	r := hello()
	r.Messages[0].Sounds = []llm.File{{MIME: "audio/mpeg", Data: []byte{1, 2, 3}}, {MIME: "audio/ogg; codecs=opus", Data: []byte{4, 5, 6}}}
	r.Messages[0].Pictures = []llm.File{{MIME: "image/png", Data: []byte{7, 8, 9}}}
	askModel(t, s.model(func(c *Config) { c.Hearing, c.Vision = true, true }), r)
	raw := s.last().raw
	for _, want := range []string{`{"input_audio":{"data":"AQID","format":"mp3"},"type":"input_audio"}`, `"data":"BAUG","format":"ogg"`, `"data:image/png;base64,BwgJ"`} {
		if !strings.Contains(raw, want) {
			t.Errorf("%s is not in %s", want, raw)
		}
	}
	askModel(t, s.model(), r)
	if strings.Contains(s.last().raw, "AQID") {
		t.Error("an engine without audio input got a sound")
	}
}

// TestOpenAIShapes checks responses with status 200 that make the library panic, fail or return no answer.
func TestOpenAIShapes(t *testing.T) {
	answer := func(text string, calls ...llm.ToolCall) llm.Answer {
		return llm.Answer{Text: text, Calls: calls, Engine: "test"}
	}
	cutAnswer := func(text string) llm.Answer { return llm.Answer{Text: text, Engine: "test", Truncated: true} }
	call := func(id, name, arguments string) llm.ToolCall {
		return llm.ToolCall{ID: id, Name: name, Arguments: json.RawMessage(arguments)}
	}
	for name, tc := range map[string]struct {
		body string
		want llm.Answer
	}{
		"parts":         {`{"choices":[{"message":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},"finish_reason":"stop"}]}`, answer("ab")},
		"old call":      {`{"choices":[{"message":{"content":"x"},"finish_reason":"function_call"}]}`, answer("x")},
		"length":        {`{"choices":[{"message":{"content":"half"},"finish_reason":"length"}]}`, cutAnswer("half")},
		"no reason":     {`{"choices":[{"message":{"content":"half"}}]}`, cutAnswer("half")},
		"second choice": {`{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"},{"index":1,"message":{"content":"b"},"finish_reason":"stop"}]}`, answer("a")},
		"call":          {`{"choices":[{"message":{"content":null,"tool_calls":[{"id":"t","type":"function","function":{"name":"w","arguments":"{\"n\":9007199254740993}"}}]},"finish_reason":"tool_calls"}]}`, answer("", call("t", "w", `{"n":9007199254740993}`))},
		"bare call":     {`{"choices":[{"message":{"tool_calls":[{"function":{"name":"w","arguments":{"a":1}}},{"function":{"name":"v"}}]},"finish_reason":"tool_calls"}]}`, answer("", call("call_0", "w", `{"a":1}`), call("call_1", "v", `{}`))},
		"cut call":      {`{"choices":[{"message":{"tool_calls":[{"id":"t","function":{"name":"w","arguments":"{\"a\":\"hal"}}]},"finish_reason":"length"}]}`, llm.Answer{Engine: "test", Truncated: true, Calls: []llm.ToolCall{call("t", "w", `"{\"a\":\"hal"`)}}},
		"another type":  {"data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", answer("x")},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, body(200, tc.body))
			got := askModel(t, s.model(), hello())
			if got.Usage.In < 20 { // an estimate, because these servers do not report usage
				t.Errorf("usage %+v", got.Usage)
			}
			got.Usage = llm.Usage{}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOpenAIFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		kind   llm.ErrorKind
		status int
	}{
		"limited":         {body(429, `{"error":{"message":"slow down"}}`), llm.ErrorRetryLater, 429},
		"no money":        {body(429, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`), llm.ErrorFatal, 429},
		"overloaded":      {body(529, `{}`), llm.ErrorRetryLater, 529},
		"html":            {body(503, `<html>`), llm.ErrorRetryLater, 503},
		"empty 503":       {body(503, ``), llm.ErrorRetryLater, 503},
		"bad gateway":     {body(502, `bad gateway`), llm.ErrorRetryLater, 502},
		"key":             {body(401, `{"error":{"message":"Incorrect API key provided: `+testKey+`"}}`), llm.ErrorFatal, 401},
		"no such model":   {body(404, `{"error":{"message":"model not found"}}`), llm.ErrorFatal, 404},
		"too long":        {body(400, `{"error":{"code":"context_length_exceeded","message":"This model's maximum context length is 8192 tokens"}}`), llm.ErrorTooLong, 400},
		"llama too long":  {body(400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`), llm.ErrorTooLong, 400},
		"too large":       {body(413, ``), llm.ErrorTooLong, 413},
		"policy":          {body(400, `{"error":{"code":"content_policy_violation","message":"no"}}`), llm.ErrorRefused, 400},
		"gemini list":     {body(400, `[{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT"}}]`), llm.ErrorFatal, 400},
		"redirect":        {body(302, ``, "Location", "http://127.0.0.1:1/"), llm.ErrorFatal, 302},
		"no choices":      {body(200, `{"choices":[]}`), llm.ErrorRetryLater, 0},
		"null choice":     {body(200, `{"choices":[null]}`), llm.ErrorRetryLater, 0},
		"no content":      {body(200, `{"choices":[{"message":{"content":null},"finish_reason":"length"}]}`), llm.ErrorRetryLater, 0},
		"blank":           {respondOpenAI("  \n"), llm.ErrorRetryLater, 0},
		"error in a 200":  {body(200, `{"error":{"message":"x"}}`), llm.ErrorRetryLater, 0},
		"its status":      {body(200, `{"error":{"message":"x","code":401}}`), llm.ErrorFatal, 401},
		"error as a text": {body(200, `{"error":"boom"}`), llm.ErrorRetryLater, 0},
		"filtered":        {body(200, `{"choices":[{"message":{"content":""},"finish_reason":"content_filter"}]}`), llm.ErrorRefused, 0},
		"refusal":         {body(200, `{"choices":[{"message":{"content":null,"refusal":"I will not"},"finish_reason":"stop"}]}`), llm.ErrorRefused, 0},
		"html as a 200":   {body(200, `<html>welcome</html>`), llm.ErrorRetryLater, 0},
		"nothing":         {body(200, ``), llm.ErrorRetryLater, 0},
		"half a body":     {halfABody, llm.ErrorRetryLater, 0},
		"stream cut":      {events(`{"choices":[{"delta":{}}]}`), llm.ErrorRetryLater, 0},
		"stream error":    {events(`{"choices":[{"delta":{"content":"hal"}}]}`, `{"error":{"message":"upstream died","code":500}}`, `[DONE]`), llm.ErrorRetryLater, 500},
		"error as a field": {
			body(200, "error: {\"code\":400,\"message\":\"too long\",\"type\":\"exceed_context_size_error\"}\n\n", "Content-Type", "text/event-stream"),
			llm.ErrorTooLong, 400,
		},
		"error as a field, unnamed": {
			body(200, "error: {\"code\":400,\"message\":\"too long\",\"type\":\"exceed_context_size_error\"}\n\n"), llm.ErrorTooLong, 400,
		},
		"no event stream": {body(200, "hello", "Content-Type", "text/event-stream"), llm.ErrorRetryLater, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, tc.answer)
			failed := failModel(t, s.model(), hello())
			if failed.Kind != tc.kind || failed.Status != tc.status || failed.Engine != "test" {
				t.Errorf("got %v", failed)
			}
		})
	}
}

// halfABody breaks the connection in the middle of a response.
func halfABody(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	io.WriteString(w, `{"choices":[{"message":{"content":"ha`)
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

func TestToolsDialect(t *testing.T) {
	s := newServer(t, body(200, `{"choices":[{"message":{"tool_calls":[{"id":"z","function":{"name":"memory_save_","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`))
	s.strict = strictOpenAI
	r := llm.Request{
		System: []string{"sys"},
		Tools: []llm.Tool{{Name: "memory.save", Brief: "Save.", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}, {Name: "memory_save"},
			{Name: "look"}},
		Messages: []llm.Utterance{
			{Role: llm.RoleUser, Text: "weather in A and B?"},
			{Role: llm.RoleModel, Text: "let me look", Calls: []llm.ToolCall{
				{ID: "t1", Name: "look", Arguments: json.RawMessage(`{"id":9007199254740993}`)},
				{ID: "t2", Name: "memory.save", Arguments: json.RawMessage(`{"city":"B"}`)},
			}},
			{Role: llm.RoleUser, CallID: "t1", Text: "1"},
			{Role: llm.RoleUser, CallID: "t2", Text: ""},
			{Role: llm.RoleUser, Text: "and now?"},
		},
	}
	a := askModel(t, s.model(func(c *Config) { c.Dialect = "tools" }), r)
	if len(a.Calls) != 1 || a.Calls[0].Name != "memory.save" {
		t.Errorf("got %+v", a)
	}
	got := s.last()
	if got.body["tool_choice"] != "auto" || got.body["response_format"] != nil || !strings.Contains(got.raw, "9007199254740993") {
		t.Error(got.raw)
	}
	if n := len(got.body["messages"].([]any)); n != 6 { // system, user, model with two calls, two results, user
		t.Errorf("%d messages: %s", n, got.raw)
	}

	s.say(respondAnthropic(`[{"type":"text","text":"ok"}]`))
	s.strict = strictAnthropic
	askModel(t, s.model(anthropicTable), r)
	if raw := s.last().raw; !strings.Contains(raw, `"input":{"id":9007199254740993}`) {
		t.Error(raw)
	}
}

func TestStructureFallsBack(t *testing.T) {
	refuse := func(words ...string) func(map[string]any) string {
		return func(b map[string]any) string {
			data, _ := json.Marshal(b)
			for _, w := range words {
				if strings.Contains(string(data), w) {
					return fmt.Sprintf("Unknown name %q", w)
				}
			}
			return ""
		}
	}
	for name, tc := range map[string]struct {
		strict func(map[string]any) string
		first  int // calls for the first question
		format any
	}{
		"schema":  {refuse(), 1, "json_schema"},
		"object":  {refuse("json_schema"), 2, "json_object"},
		"none":    {refuse("response_format"), 3, nil},
		"nothing": {refuse("response_format", "stream_options"), 4, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, respondOpenAI("{}"))
			s.strict = tc.strict
			m := s.model(func(c *Config) { c.Structure = "auto" })
			var pieces []string
			for range 2 {
				askModel(t, m, streaming(hello(), &pieces))
			}
			if n := len(s.got()); n != tc.first+1 {
				t.Errorf("got %d calls", n)
			}
			var kind any
			if f, ok := s.last().body["response_format"].(map[string]any); ok {
				kind = f["type"]
			}
			if kind != tc.format {
				t.Errorf("the last request asks for %v", kind)
			}
		})
	}
}

// TestServerBreaksOverTheSchema checks a server that answers a schema with status 500 instead of a refusal.
// Each request is answered without a schema. After three in a row, no schema is sent; a single failure may be
// chance.
func TestServerBreaksOverTheSchema(t *testing.T) {
	var breaks func(raw string) bool
	says := respondOpenAI("{}")
	s := newServer(t, nil)
	s.say(func(w http.ResponseWriter, r *http.Request) {
		if breaks(s.last().raw) {
			body(500, `{"error":{"message":"grammar compilation failed"}}`)(w, r)
			return
		}
		says(w, r)
	})
	m := s.model(func(c *Config) { c.Structure = "strict" })
	calls := func() int { return len(s.got()) }
	once := true
	breaks = func(string) bool { defer func() { once = false }(); return once }
	askModel(t, m, hello())
	if l := m.Limits(); l.Schemas != llm.StructureStrict || calls() != 2 {
		t.Errorf("after one failure: schemas %q, %d calls", l.Schemas, calls())
	}
	breaks = func(string) bool { return false }
	askModel(t, m, hello())
	breaks = func(raw string) bool { return strings.Contains(raw, "json_schema") }
	for i := range 3 {
		before := calls()
		askModel(t, m, hello())
		if n := calls() - before; n != 2 {
			t.Errorf("request %d: got %d calls", i+1, n)
		}
	}
	before := calls()
	askModel(t, m, hello())
	if l := m.Limits(); l.Schemas != llm.StructureNone || calls() != before+1 {
		t.Errorf("after three failures: schemas %q, %d calls", l.Schemas, calls()-before)
	}
	breaks = func(string) bool { return true }
	if failed := failModel(t, s.model(), hello()); failed.Kind != llm.ErrorRetryLater || failed.Status != 500 {
		t.Errorf("server down: got %v", failed)
	}
}

func TestRefusalThatIsNoneOfTheForm(t *testing.T) {
	s := newServer(t, body(400, `{"error":{"message":"maximum context length"}}`))
	m := s.model()
	failModel(t, m, hello())
	if n := len(s.got()); n != 1 {
		t.Errorf("got %d calls for a prompt that is too long", n)
	}
	s.say(body(400, `{"error":{"message":"you sent nonsense"}}`))
	if failed := failModel(t, m, hello()); failed.Kind != llm.ErrorFatal || failed.Status != 400 {
		t.Errorf("got %v", failed)
	}
	s.say(respondOpenAI("{}"))
	askModel(t, m, hello())
	if s.last().body["response_format"] == nil {
		t.Error("the schema form was given up although it was not the reason")
	}
}

func TestStructureOnlyForPlans(t *testing.T) {
	s := newServer(t, respondOpenAI("a summary"))
	askModel(t, s.model(), llm.Request{Messages: []llm.Utterance{{Role: llm.RoleUser, Text: "Summarise this."}}})
	if f := s.last().body["response_format"]; f != nil {
		t.Errorf("got %v", f)
	}
	askModel(t, s.model(func(c *Config) { c.Structure = "off" }), hello())
	if f := s.last().body["response_format"]; f != nil {
		t.Errorf("got %v", f)
	}
}

// TestSchemaIsSent checks that each provider gets the request's schema in its own way, and that its limits name
// the form of schema that it supports.
func TestSchemaIsSent(t *testing.T) {
	format := func(strict bool) string {
		return fmt.Sprintf(`"response_format":{"type":"json_schema","json_schema":{"name":"plan","strict":%t,"schema":%s}}`, strict, testSchema)
	}
	for name, tc := range map[string]struct {
		change func(*Config)
		kind   llm.Structure
		want   string
	}{
		"a local server":         {func(c *Config) { c.Provider = "llamacpp" }, llm.StructureSchema, format(false)},
		"a server like openai's": {func(c *Config) { c.Provider = "openai" }, llm.StructureSchema, format(false)},
		"strict":                 {func(c *Config) { c.Structure = "strict" }, llm.StructureStrict, format(true)},
		"object":                 {func(c *Config) { c.Structure = "object" }, llm.StructureNone, `"response_format":{"type":"json_object"}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, respondOpenAI("{}"))
			m := s.model(tc.change)
			if l := m.Limits(); l.Schemas != tc.kind {
				t.Errorf("schemas: got %q", l.Schemas)
			}
			askModel(t, m, hello())
			if got := s.last().raw; !strings.Contains(got, tc.want) {
				t.Error(got)
			}
		})
	}
	if p, _ := presetOf("openai"); p.form != formStrict {
		t.Error("the provider itself is not asked for strict mode")
	}
	s := newServer(t, respondOpenAI("{}"))
	s.strict = func(b map[string]any) string {
		if data, _ := json.Marshal(b); strings.Contains(string(data), `"strict":true`) {
			return "Invalid schema for response_format"
		}
		return ""
	}
	m := s.model(func(c *Config) { c.Structure = "strict" })
	askModel(t, m, hello())
	if l := m.Limits(); l.Schemas != llm.StructureSchema || len(s.got()) != 2 {
		t.Errorf("after a refusal of strict mode: schemas %q, %d calls", l.Schemas, len(s.got()))
	}
}

func TestAnswersAreCapped(t *testing.T) {
	chunk := strings.Repeat("x", 64<<10)
	flood := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 4096 { // 256 MiB
			if _, err := fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", chunk); err != nil {
				return
			}
		}
	}
	s := newServer(t, flood)
	shown := 0
	r := hello()
	r.Stream = func(p string) { shown += len(p) }
	a := askModel(t, s.model(), r)
	if len(a.Text) > maxAnswer || len(a.Text) < maxAnswer/2 || !a.Truncated || shown > maxAnswer {
		t.Errorf("got %d bytes, %d shown, truncated %v", len(a.Text), shown, a.Truncated)
	}
	s.say(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"choices":[{"message":{"content":"`)
		for range 4096 {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
	})
	if failed := failModel(t, s.model(), hello()); !strings.Contains(failed.Error(), errTooLarge.Error()) {
		t.Errorf("got %v", failed)
	}
	s.say(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(500)
		for range 4096 {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
	})
	if failed := failModel(t, s.model(), hello()); len(failed.Error()) > 1000 {
		t.Errorf("got an error of %d bytes", len(failed.Error()))
	}
}

func TestNobodyThere(t *testing.T) {
	s := newServer(t, respondOpenAI("x"))
	m := s.model()
	s.Close()
	if failed := failModel(t, m, hello()); failed.Kind != llm.ErrorRetryLater || failed.Status != 0 {
		t.Errorf("got %v", failed)
	}
}

// TestTimeout checks that a stream that runs into the timeout is an error. The library would return the part as
// a success.
func TestTimeout(t *testing.T) {
	for name, begin := range map[string]http.HandlerFunc{
		"silence":     func(http.ResponseWriter, *http.Request) {},
		"half":        events(`{"choices":[{"delta":{"content":"hal"}}]}`),
		"half a body": body(200, `{"choices":[{"mess`),
	} {
		s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
			begin(w, r)
			if f, ok := w.(http.Flusher); ok && name != "silence" {
				f.Flush()
			}
			<-r.Context().Done()
		})
		m := s.model(func(c *Config) { c.Timeout = 50 * time.Millisecond })
		var pieces []string
		failed := failModel(t, m, streaming(hello(), &pieces))
		timedOut := errors.Is(failed, errTimeout) && errors.Is(failed, context.DeadlineExceeded)
		if failed.Kind != llm.ErrorRetryLater || !timedOut {
			t.Errorf("%s: got %v", name, failed)
		}
	}
}

func TestCancelled(t *testing.T) {
	asked := make(chan struct{}, 1)
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(bounded(t))
	go func() {
		<-asked
		cancel()
	}()
	_, err := s.model().Generate(ctx, hello())
	if failed, ok := err.(*llm.Error); !ok || !strings.Contains(failed.Error(), "canceled") || failed.Unwrap() != context.Canceled {
		t.Errorf("got %v", err)
	}
}

// FuzzBody checks that a body is valid JSON with the values of the configuration and the prompt.
func FuzzBody(f *testing.F) {
	f.Add("m", "high", "hi", `{"type":"object"}`, 0.5, 100, byte(0))
	f.Add("a\"b\\c\n<&>\u2028\xff", "\"}", "\x00\b\f\"\\\n\u2029\xff", `{"x":"%t %s","y":[1,"\u2028"]}`, -1.0, 0, byte(1))
	f.Add("", "", "", `null`, 0.0, -1, byte(2))
	f.Fuzz(func(t *testing.T, model, effort, text, schema string, temperature float64, tokens int, form byte) {
		if !json.Valid([]byte(schema)) || math.IsNaN(temperature) || math.IsInf(temperature, 0) {
			t.Skip("impossible in a schema or a configuration")
		}
		c := &call{
			provider: &provider{cfg: Config{Model: model, Effort: effort, Temperature: temperature}},
			request:  llm.Request{Schema: []byte(schema)}, form: requestForm(form % 5),
		}
		said := []llms.MessageContent{
			llms.TextParts(llms.ChatMessageTypeSystem, text, text), llms.TextParts(llms.ChatMessageTypeHuman, text),
		}
		var b bytes.Buffer
		if err := (openAI{}).write(&b, c, said, llms.CallOptions{MaxTokens: tokens}); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Form struct {
				Schema struct{ Schema any } `json:"json_schema"`
			} `json:"response_format"`
			Model       string
			Effort      string `json:"reasoning_effort"`
			Temperature *float64
			Tokens      int `json:"max_tokens"`
			Messages    []map[string]string
		}
		var as any
		if err := errors.Join(json.Unmarshal(b.Bytes(), &got), json.Unmarshal([]byte(schema), &as)); err != nil {
			t.Fatalf("%v: %s", err, b.Bytes())
		}
		if c.form >= formObject {
			as = nil
		}
		if c.form >= formMinimal {
			effort = ""
		}
		sent := func(s string) string { return string([]rune(s)) } // invalid UTF-8 becomes U+FFFD
		want := []map[string]string{
			{"role": "system", "content": sent(text + "\n\n" + text)}, {"role": "user", "content": sent(text)},
		}
		heat := got.Temperature
		sameHeat := temperature < 0 && heat == nil || heat != nil && *heat == temperature
		if !reflect.DeepEqual(got.Form.Schema.Schema, as) || !reflect.DeepEqual(got.Messages, want) || !sameHeat ||
			got.Model != sent(model) || got.Effort != sent(effort) || got.Tokens != tokens {
			t.Errorf("got %s", b.Bytes())
		}
	})
}
