// Package admin lets admins inspect a running bot: metrics and health, traces of turns, lines of the log, and
// the control socket. Metrics contain no paths, users or texts.
package admin

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/core/watch"
)

// Metrics counts turns. It implements watch.Observer. Safe for concurrent use.
type Metrics struct {
	set                           *metrics.Set
	turnTime, ownTime, confidence *metrics.PrometheusHistogram
}

// NewMetrics makes metrics that share no counters with others.
func NewMetrics() *Metrics {
	metrics.ExposeMetadata(true)
	m := &Metrics{set: metrics.NewSet()}
	m.turnTime = m.set.NewPrometheusHistogramExt("synthbot_turn_seconds", slowBuckets)
	m.ownTime = m.set.NewPrometheusHistogramExt("synthbot_own_seconds",
		[]float64{0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1})
	m.confidence = m.set.NewPrometheusHistogramExt("synthbot_intent_confidence", metrics.LinearBuckets(0.1, 0.1, 10))
	m.counter("synthbot_corrections_total") // so that the first one shows as an increase
	return m
}

// slowBuckets are the histogram bounds of durations that may reach minutes, in seconds.
var slowBuckets = []float64{0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120}

// counter returns the counter with these labels, which are pairs of name and value.
func (m *Metrics) counter(name string, labels ...string) *metrics.Counter {
	return m.set.GetOrCreateCounter(series(name, labels...))
}

// series returns a name with labels in Prometheus' text format.
func series(name string, labels ...string) string {
	var pairs []string
	for pair := range slices.Chunk(labels, 2) {
		pairs = append(pairs, pair[0]+"="+strconv.Quote(pair[1]))
	}
	if pairs == nil {
		return name
	}
	return name + "{" + strings.Join(pairs, ",") + "}"
}

func (m *Metrics) addTrace(t *watch.Trace) {
	m.turnTime.Update(t.Took.Seconds())
	m.ownTime.Update(max(t.Took-t.Thought, 0).Seconds())
	for i := range t.Steps {
		outcome := string(t.Steps[i].Progress)
		if t.Steps[i].Kind == core.Mismatch {
			outcome = string(core.Mismatch)
		}
		m.counter("synthbot_actions_total", "outcome", outcome).Inc()
	}
	for i := range t.Asks {
		a := &t.Asks[i]
		if a.Err != "" {
			continue
		}
		if len(a.Faults) > 0 {
			m.counter("synthbot_corrections_total").Inc()
		}
		m.set.GetOrCreatePrometheusHistogramExt(series("synthbot_model_seconds", "engine", a.Engine), slowBuckets).
			Update(a.Took.Seconds())
	}
}

// failures counts failed calls to models, even if another engine answered.
const failures = "synthbot_model_errors_total"

// Used counts the tokens of a call to a model, whether or not it succeeded.
func (m *Metrics) Used(engine string, u llm.Usage) {
	m.counter("synthbot_tokens_total", "engine", engine, "kind", "in").Add(u.In)
	m.counter("synthbot_tokens_total", "engine", engine, "kind", "cached").Add(u.Cached)
	m.counter("synthbot_tokens_total", "engine", engine, "kind", "out").Add(u.Out)
}

// Engines creates the counters of engines, so that the first failure of one shows as an increase.
func (m *Metrics) Engines(names ...string) {
	for _, name := range names {
		for _, kind := range []llm.ErrorKind{llm.ErrorRetryLater, llm.ErrorFatal, llm.ErrorRefused, llm.ErrorTooLong} {
			m.counter(failures, "engine", name, "kind", string(kind))
		}
	}
}

// ModelFailed counts a failed call to a model.
func (m *Metrics) ModelFailed(engine string, kind llm.ErrorKind) {
	m.counter(failures, "engine", engine, "kind", string(kind)).Inc()
}

// Observe implements watch.Observer.
func (m *Metrics) Observe(e watch.TurnEnd) {
	if e.Turn.Seq == 0 {
		return // there was no turn
	}
	outcome := "silent"
	switch {
	case e.Aside:
		outcome = "aside"
	case e.Answered:
		outcome = "answered"
	}
	m.counter("synthbot_turns_total", "outcome", outcome).Inc()
	if e.Trace != nil {
		m.addTrace(e.Trace)
	}
	if e.Intent == "" {
		return
	}
	m.counter("synthbot_intents_total", "intent", e.Intent).Inc()
	if e.Confidence > 0 {
		m.confidence.Update(e.Confidence)
	}
}

// Handler serves /metrics, /healthz and /readyz. alive returns nil if turns can run; ready
// returns nil if the bot receives messages, too.
func (m *Metrics) Handler(alive, ready func(context.Context) error) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		m.set.WritePrometheus(w)
		metrics.WriteProcessMetrics(w)
		metrics.WriteFDMetrics(w)
	})
	mux.HandleFunc("GET /healthz", health(alive, "the bot does not answer"))
	mux.HandleFunc("GET /readyz", health(ready, "the bot receives no messages"))
	return mux
}

func health(check func(context.Context) error, failure string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := check(r.Context()); err != nil {
			http.Error(w, failure, http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok\n"))
	}
}

// LocalOnly refuses requests with a Host other than localhost or a loopback address, against DNS rebinding.
func LocalOnly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			name = r.Host
		}
		ip := net.ParseIP(strings.Trim(name, "[]"))
		if name != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "only this machine has access", http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Server returns a server for h with short time limits.
func Server(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, MaxHeaderBytes: 16 << 10,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
	}
}
