package admin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"synthbot/core"
)

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(body)
}

func TestMetrics(t *testing.T) {
	m := NewMetrics()
	var sick error
	server := httptest.NewServer(m.Handler(func(context.Context) error { return sick }))
	defer server.Close()
	turn := core.TurnID{Path: core.MustPath("room/secret-place"), Seq: 1}
	m.Observe(core.TurnEnd{Turn: turn, Messages: []string{"m-1"}, Answered: true, Intent: "greeting", Confidence: 0.95})
	m.Observe(core.TurnEnd{Turn: turn, Answered: true})
	m.Observe(core.TurnEnd{Turn: turn, Aside: true})
	m.Observe(core.TurnEnd{Turn: turn})
	m.Observe(core.TurnEnd{}) // no turn
	_, body := get(t, server.URL+"/metrics")
	for _, want := range []string{
		`synthbot_turns_total{outcome="answered"} 2`, `synthbot_turns_total{outcome="aside"} 1`, `synthbot_turns_total{outcome="silent"} 1`,
		`synthbot_intents_total{intent="greeting"} 1`, `synthbot_intent_confidence_count 1`, `go_goroutines`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
	if strings.Contains(body, "secret-place") || strings.Contains(body, "m-1") {
		t.Error("a place or a message shows in the metrics")
	}
	if status, _ := get(t, server.URL+"/healthz"); status != 200 {
		t.Errorf("healthz: %d", status)
	}
	sick = errors.New("the store at /secret is closed")
	if status, body := get(t, server.URL+"/readyz"); status != 503 || strings.Contains(body, "secret") {
		t.Errorf("readyz of a sick bot: %d %s", status, body)
	}
}
