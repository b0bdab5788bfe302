package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/llm"
	"synthbot/core/secret"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testKey = "sk-very-secret-0123456789"

// server is a local API that is as strict as the real ones and rejects the same bodies.
type server struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	requests []received
	answer   http.HandlerFunc
	strict   func(map[string]any) string // returns why a body is rejected, or ""
}

// received is a request to the server.
type received struct {
	path   string
	raw    string
	body   map[string]any
	header http.Header
}

func newServer(t *testing.T, answer http.HandlerFunc) *server {
	s := &server{t: t, answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Server.Close)
	return s
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	got := received{path: r.URL.Path, raw: string(raw), header: r.Header.Clone()}
	if err := json.Unmarshal(raw, &got.body); err != nil {
		s.t.Errorf("the body is not JSON: %v", err)
	}
	s.mu.Lock()
	s.requests = append(s.requests, got)
	answer, strict := s.answer, s.strict
	s.mu.Unlock()
	if strict != nil {
		if why := strict(got.body); why != "" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":{"message":%q,"type":"invalid_request_error"}}`, why)
			return
		}
	}
	answer(w, r)
}

func (s *server) say(answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *server) got() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *server) last() received {
	all := s.got()
	if len(all) == 0 {
		s.t.Fatal("no request has arrived")
	}
	return all[len(all)-1]
}

// body returns a handler that answers with a status and a body.
func body(status int, text string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		if w.Header().Get("Content-Type") == "" {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(status)
		io.WriteString(w, text)
	}
}

// events returns a handler that streams the lines.
func events(lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, l := range lines {
			io.WriteString(w, "data: "+l+"\n\n")
			w.(http.Flusher).Flush()
		}
	}
}

// respondOpenAI returns a handler that answers with the text, in the format of the OpenAI API.
func respondOpenAI(text string) http.HandlerFunc {
	data, _ := json.Marshal(text)
	return body(200, `{"choices":[{"index":0,"message":{"role":"assistant","content":`+string(data)+`},"finish_reason":"stop"}],`+
		`"usage":{"prompt_tokens":30,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":20}}}`)
}

// table returns the configuration of an engine with the OpenAI API at this server.
func (s *server) table(change ...func(*Config)) Config {
	c := Config{Name: "test", Provider: "vllm", Model: "m1", BaseURL: s.URL, APIKey: secret.New(testKey), Timeout: coretest.Patience, Temperature: -1, MaxTokens: 100, Stream: true}
	for _, f := range change {
		f(&c)
	}
	return c
}

func anthropicTable(c *Config) { c.Provider = "anthropic" }

// model returns a remote engine at this server, without a chain.
func (s *server) model(change ...func(*Config)) *remote {
	pool := newTransport(time.Now)
	s.t.Cleanup(pool.close)
	r, err := newRemote(s.table(change...).withDefaults(), pool)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// hello returns a prompt that asks for a plan.
func hello() llm.Request {
	return llm.Request{
		System:   []string{"You are Aria. Reply with one JSON object.", "Be short.", `{"actions":{"message_x":{"brief":"b"}}}`},
		Messages: []llm.Utterance{{Role: llm.RoleUser, Text: `{"context":{},"input":{"type":"message","payload":{"text":"hello"}}}`}},
		Schema:   json.RawMessage(testSchema),
	}
}

const testSchema = `{"type":"object","properties":{"response":{"type":"string"}},"required":["response"],"additionalProperties":false}`

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), coretest.Patience)
	t.Cleanup(cancel)
	return ctx
}

// askModel asks once and requires an answer.
func askModel(t *testing.T, m llm.Model, r llm.Request) llm.Answer {
	t.Helper()
	a, err := m.Generate(bounded(t), r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// failModel asks once and requires an error that does not contain the key.
func failModel(t *testing.T, m llm.Model, r llm.Request) *llm.Error {
	t.Helper()
	a, err := m.Generate(bounded(t), r)
	failed, ok := err.(*llm.Error)
	if !ok {
		t.Fatalf("answer %+v, error %v", a, err)
	}
	if strings.Contains(failed.Error(), testKey) {
		t.Errorf("the error contains the key: %q", failed)
	}
	return failed
}

func question(build func(llm.Limits) (llm.Request, error)) core.Question {
	return core.Question{Path: core.MustPath("console/x"), People: []core.Path{core.MustPath("console/@user/1")}, Build: build}
}

func plainQuestion() core.Question {
	return question(func(llm.Limits) (llm.Request, error) { return hello(), nil })
}

// roundTripFunc is a transport whose round trips a test implements.
type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestBodyIsRead checks that a request's buffer is reused only after the last reader has closed it. A second
// attempt, which the transport makes by itself, may still read it after the response has arrived.
func TestBodyIsRead(t *testing.T) {
	for _, attempts := range []int{1, 2} {
		pool := newTransport(time.Now)
		pool.base = roundTripFunc(func(r *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(r.Context())
			for n := range attempts {
				if trace.GotConn != nil {
					trace.GotConn(httptrace.GotConnInfo{})
				}
				if n == 0 {
					trace.WroteRequest(httptrace.WroteRequestInfo{})
				}
			}
			return &http.Response{StatusCode: http.StatusTooManyRequests, Body: http.NoBody}, nil
		})
		p := provider{endpoint: "http://localhost", transport: pool}
		_, _, err := p.post(t.Context(), "", func(b *bytes.Buffer) error { return encode(b, "words") })
		if kept := len(pool.bodies); err == nil || kept != 2-attempts {
			t.Errorf("after %d attempts: %d buffers in the pool, %v", attempts, kept, err)
		}
	}
}
