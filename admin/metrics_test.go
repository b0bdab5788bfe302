package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/core/watch"
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
	var sick, full error
	alive, ready := func(context.Context) error { return sick }, func(context.Context) error { return full }
	server := httptest.NewServer(m.Handler(alive, ready))
	defer server.Close()
	turn := core.TurnID{Path: core.MustPath("room/secret-place"), Seq: 1}
	m.Observe(watch.TurnEnd{Turn: turn, Messages: []string{"m-1"}, Answered: true, Intent: "greeting", Confidence: 0.95})
	m.Observe(watch.TurnEnd{Turn: turn, Answered: true})
	m.Observe(watch.TurnEnd{Turn: turn, Aside: true})
	m.Observe(watch.TurnEnd{Turn: turn})
	m.Observe(watch.TurnEnd{}) // an event without a turn
	took, thought := 3*time.Second, 2900*time.Millisecond
	m.Observe(watch.TurnEnd{Turn: turn, Trace: &watch.Trace{Took: took, Thought: thought, Asks: []watch.Ask{
		{Engine: "home", Took: time.Second, Faults: []string{"secret fault"}},
		{Engine: "home", Took: 2 * time.Second},
		{Err: "secret error"},
	}, Steps: []watch.Step{
		{Progress: core.ProgressDone}, {Progress: core.ProgressDone}, {Progress: core.ProgressFailed},
		{Progress: core.ProgressFailed, Outcome: core.Outcome{Kind: core.Mismatch}},
	}}})
	m.Used("home", llm.Usage{In: 100, Cached: 40, Out: 7})
	m.Used("home", llm.Usage{In: 50, Out: 3})
	m.Engines("home", "spare")
	m.ModelFailed("home", llm.ErrorRetryLater)
	m.ModelFailed("home", llm.ErrorRetryLater)
	m.ModelFailed("cloud", llm.ErrorFatal)
	_, body := get(t, server.URL+"/metrics")
	for _, want := range []string{
		`synthbot_turns_total{outcome="answered"} 2`, `synthbot_turns_total{outcome="aside"} 1`, `synthbot_turns_total{outcome="silent"} 2`,
		`synthbot_tokens_total{engine="home",kind="in"} 150`, `synthbot_tokens_total{engine="home",kind="cached"} 40`, `synthbot_tokens_total{engine="home",kind="out"} 10`,
		`synthbot_model_seconds_count{engine="home"} 2`, `synthbot_model_errors_total{engine="home",kind="retry_later"} 2`, `synthbot_model_errors_total{engine="cloud",kind="fatal"} 1`,
		`synthbot_model_errors_total{engine="spare",kind="too_long"} 0`, `synthbot_model_errors_total{engine="home",kind="refused"} 0`, `synthbot_corrections_total 1`,
		`synthbot_actions_total{outcome="done"} 2`, `synthbot_actions_total{outcome="failed"} 1`, `synthbot_actions_total{outcome="mismatch"} 1`,
		`synthbot_turn_seconds_sum 3`, `synthbot_own_seconds_bucket{le="0.1"} 1`,
		`synthbot_intents_total{intent="greeting"} 1`, `synthbot_intent_confidence_count 1`, `go_goroutines`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
	if strings.Contains(body, "secret") || strings.Contains(body, "m-1") {
		t.Error("the metrics contain a place or a message")
	}
	if status, _ := get(t, server.URL+"/healthz"); status != 200 {
		t.Errorf("/healthz: got status %d", status)
	}
	sick = errors.New("the store at /secret is closed")
	if status, _ := get(t, server.URL+"/healthz"); status != 503 {
		t.Errorf("/healthz of an unhealthy bot: got status %d", status)
	}
	if status, _ := get(t, server.URL+"/readyz"); status != 200 {
		t.Errorf("/readyz: got status %d", status)
	}
	full = errors.New("the disk of /secret is full")
	if status, body := get(t, server.URL+"/readyz"); status != 503 || strings.Contains(body, "secret") {
		t.Errorf("/readyz of an unhealthy bot: got status %d, %s", status, body)
	}
}

// sample is a line of the Prometheus text format.
var sample = regexp.MustCompile(`^\w+(\{\w+="(\\.|[^"\\])*"(,\w+="(\\.|[^"\\])*")*\})? [0-9.e+-]+\n$`)

var typeLine = regexp.MustCompile(`^# TYPE (synthbot_\w+) (counter|histogram)$`)

// TestStrangeLabels checks that unusual names of engines and intents are escaped.
func TestStrangeLabels(t *testing.T) {
	m := NewMetrics()
	for _, name := range []string{"", `a"b\c`, "two\nlines", "ö {x=\"y\"}", "\x00\xff", "}"} {
		m.Engines(name)
		trace := &watch.Trace{Asks: []watch.Ask{{Engine: name}}}
		m.Observe(watch.TurnEnd{Turn: core.TurnID{Seq: 1}, Intent: name, Trace: trace})
	}
	w := httptest.NewRecorder()
	m.Handler(nil, nil).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "synthbot_") && !sample.MatchString(line) {
			t.Errorf("invalid line %q", line)
		}
	}
}

// TestMetricsAreWellNamed checks that names follow the conventions of Prometheus, and that the number of series
// does not grow with users and places.
func TestMetricsAreWellNamed(t *testing.T) {
	m := NewMetrics()
	observe := func(from, to int) {
		for i := from; i < to; i++ {
			m.Observe(watch.TurnEnd{
				Turn: core.TurnID{Path: core.MustPath(fmt.Sprintf("room/%d", i)), Seq: uint64(i)}, Person: core.MustPath(fmt.Sprintf("room/@user/%d", i)), Answered: i%2 == 0,
				Intent: []string{"greeting", "query"}[i%2], Confidence: 0.5, Messages: []string{fmt.Sprint(i)},
				Trace: &watch.Trace{Took: time.Second, Asks: []watch.Ask{{Engine: "home", Took: time.Second}}},
			})
			m.Used("home", llm.Usage{In: i})
		}
	}
	series := func() (body string, n int) {
		w := httptest.NewRecorder()
		m.Handler(nil, nil).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		body = w.Body.String()
		return body, strings.Count(body, "\nsynthbot_")
	}
	observe(1, 3)
	_, few := series()
	observe(3, 1000)
	body, many := series()
	if few < 10 || many != few {
		t.Errorf("got %d series with few places and %d with many", few, many)
	}
	types := make(map[string]string)
	for line := range strings.Lines(body) {
		typed := typeLine.FindStringSubmatch(strings.TrimSpace(line))
		if typed != nil {
			types[typed[1]] = typed[2]
			continue
		}
		if strings.HasPrefix(line, "synthbot_") && !sample.MatchString(line) {
			t.Errorf("invalid line %q", line)
		}
	}
	if len(types) < 8 {
		t.Errorf("too few types: %v", types)
	}
	for name, kind := range types {
		if strings.HasSuffix(name, "_total") != (kind == "counter") {
			t.Errorf("%s must not be a %s", name, kind)
		}
	}
}
