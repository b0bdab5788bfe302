package engine

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"synthbot/core"
)

func TestProbe(t *testing.T) {
	answers := map[string]http.HandlerFunc{
		"/ok/models":      body(200, `{"data":[{"id":"other"},{"id":"m1"}]}`),
		"/latest/models":  body(200, `{"data":[{"id":"m1:latest"}]}`),
		"/silent/models":  body(200, `{}`),
		"/unknown/models": body(200, `{"data":[{"id":"other"}]}`),
		"/key/models":     body(401, `{"error":{"message":"bad key `+testKey+`"}}`),
		"/down/models":    body(503, ``),
	}
	s := newServer(t, nil)
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+testKey {
			t.Errorf("%v", r.Header)
		}
		answers[r.URL.Path](w, r)
	})
	for name, want := range map[string]string{"ok": "", "latest": "", "silent": "", "unknown": "does not list", "key": "status 401", "down": "status 503"} {
		c, err := New([]Config{s.table(func(c *Config) { c.BaseURL += "/" + name })}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		probes := c.Probe(bounded(t))
		if len(probes) != 1 || probes[0].Engine != "test" {
			t.Fatalf("%v", probes)
		}
		got := ""
		if probes[0].Err != nil {
			got = probes[0].Err.Error()
		}
		if (got == "") != (want == "") || !strings.Contains(got, want) || strings.Contains(got, testKey) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestParallel(t *testing.T) {
	var running, most atomic.Int32
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		if n := running.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer running.Add(-1)
		io.WriteString(w, `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`)
	})
	m := s.model(func(c *Config) { c.Parallel = 1 })
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := m.Generate(bounded(t), hello()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most.Load() != 1 {
		t.Errorf("%d at a time", most.Load())
	}
	m.seats <- struct{}{}
	ctx := canceled()
	if _, err := m.Generate(ctx, hello()); err == nil || err.(*core.ModelError).Kind != core.RetryLater {
		t.Errorf("%v", err)
	}
}
