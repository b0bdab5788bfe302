package engine

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestProbe checks that the probe requests one token, whatever models the server lists.
func TestProbe(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		change func(*Config)
		want   string
	}{
		"answers":         {answer: respondOpenAI("Hi")},
		"anthropic":       {answer: respondAnthropic(`[{"type":"text","text":"Hi"}]`), change: anthropicTable},
		"only thinks":     {answer: body(200, `{"choices":[{"message":{"content":"","reasoning_content":"h"},"finish_reason":"length"}]}`)},
		"limit reached":   {answer: body(400, `{"error":{"message":"Could not finish the message because max_tokens or model output limit was reached.","type":"invalid_request_error"}}`)},
		"limit elsewhere": {answer: body(503, `{"error":{"message":"the output limit was reached"}}`), want: "limit was reached"},
		"plainer":         {answer: body(200, `{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}`), change: func(c *Config) { c.Effort = "low" }},
		"unknown model":   {answer: body(404, `{"error":{"message":"The model m1 does not exist","code":"model_not_found"}}`), want: "model_not_found"},
		"nothing there":   {answer: body(404, `404 page not found`), want: "status 404"},
		"key":             {answer: body(401, `{"error":{"message":"bad key `+testKey+`"}}`), want: "status 401"},
		"down":            {answer: body(503, ``), want: "status 503"},
		"no such server":  {answer: body(200, `<html>welcome</html>`), want: "not an answer of this API"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, tc.answer)
			if tc.change == nil {
				tc.change = func(*Config) {}
			}
			c, err := New([]Config{s.table(tc.change)}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			probes := c.Probe(bounded(t))
			if len(probes) != 1 || probes[0].Engine != "test" {
				t.Fatalf("got %v", probes)
			}
			got := ""
			if probes[0].Err != nil {
				got = probes[0].Err.Error()
			}
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) || strings.Contains(got, testKey) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if most := s.last().body["max_tokens"]; most != 1.0 {
				t.Errorf("the probe requests %v tokens", most)
			}
		})
	}
}

// TestProbeAsksServers checks that the probe leaves out models that are not on a server.
func TestProbeAsksServers(t *testing.T) {
	if probes := chainOf(true, &script{name: "a"}).Probe(t.Context()); len(probes) != 0 {
		t.Errorf("got %v", probes)
	}
}

// TestParallel checks that no more calls run at the same time than configured.
func TestParallel(t *testing.T) {
	var running, most atomic.Int32
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		if n := running.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer running.Add(-1)
		io.WriteString(w, `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`)
	})
	c, err := New([]Config{s.table(func(c *Config) { c.Parallel = 1 })}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if a, err := c.Ask(bounded(t), plainQuestion()); err != nil || a.Engine != "test" {
				t.Error(a, err)
			}
		})
	}
	wg.Wait()
	if most.Load() != 1 {
		t.Errorf("got %d calls at the same time", most.Load())
	}
}
