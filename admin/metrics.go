// Package admin lets admins look at a running bot: metrics and health, traces of turns, and
// the control socket. Metrics contain no paths, users and texts.
package admin

import (
	"context"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/core/watch"
)

// Metrics counts turns. It implements watch.Observer. Safe for concurrent use.
type Metrics struct {
	registry   *prometheus.Registry
	turns      *prometheus.CounterVec
	actions    *prometheus.CounterVec
	intents    *prometheus.CounterVec
	confidence prometheus.Histogram

	took, own   prometheus.Histogram
	models      *prometheus.HistogramVec
	tokens      *prometheus.CounterVec
	failures    *prometheus.CounterVec
	corrections prometheus.Counter
}

// NewMetrics makes metrics with a registry of their own.
func NewMetrics() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	make := promauto.With(m.registry)
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return make.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets ...float64) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}
	}
	slow := []float64{0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120}
	m.turns = counters("synthbot_turns_total", "Finished turns by outcome: answered, silent or aside.", "outcome")
	m.actions = counters("synthbot_actions_total", "Actions by outcome: done, failed, skipped, pending, unknown, or "+
		"mismatch if the output breaks its schema.", "outcome")
	m.intents = counters("synthbot_intents_total", "Turns by the intent that the model reports.", "intent")
	m.confidence = make.NewHistogram(histogram("synthbot_intent_confidence",
		"How sure the model was of the intent, if it reports that.", 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1))
	m.took = make.NewHistogram(histogram("synthbot_turn_seconds", "How long turns took.", slow...))
	m.own = make.NewHistogram(histogram("synthbot_own_seconds", "How long turns took without the models.",
		0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1))
	m.models = make.NewHistogramVec(
		histogram("synthbot_model_seconds", "How long models took to answer, by engine.", slow...), []string{"engine"})
	m.tokens = counters("synthbot_tokens_total", "Tokens of all calls, including cancelled ones, by engine and kind: "+
		"in, out, and cached, which are part of in.", "engine", "kind")
	m.failures = counters("synthbot_model_errors_total", "Failed calls by engine and kind of error, "+
		"even if another engine answered.", "engine", "kind")
	m.corrections = make.NewCounter(prometheus.CounterOpts{
		Name: "synthbot_corrections_total", Help: "Wrong answers of models.",
	})
	m.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *Metrics) addTrace(t *watch.Trace) {
	m.took.Observe(t.Took.Seconds())
	m.own.Observe(max(t.Took-t.Thought, 0).Seconds())
	for i := range t.Steps {
		outcome := string(t.Steps[i].Progress)
		if t.Steps[i].Kind == core.Mismatch {
			outcome = string(core.Mismatch)
		}
		m.actions.WithLabelValues(outcome).Inc()
	}
	for i := range t.Asks {
		a := &t.Asks[i]
		if a.Err != "" {
			continue
		}
		if len(a.Faults) > 0 {
			m.corrections.Inc()
		}
		m.models.WithLabelValues(a.Engine).Observe(a.Took.Seconds())
	}
}

// Used counts the tokens of a call to a model, whether or not it succeeded.
func (m *Metrics) Used(engine string, u llm.Usage) {
	m.tokens.WithLabelValues(engine, "in").Add(float64(u.In))
	m.tokens.WithLabelValues(engine, "cached").Add(float64(u.Cached))
	m.tokens.WithLabelValues(engine, "out").Add(float64(u.Out))
}

// Engines creates the counters of engines, so that the first failure of one shows as an increase.
func (m *Metrics) Engines(names ...string) {
	for _, name := range names {
		for _, kind := range []llm.ErrorKind{llm.ErrorRetryLater, llm.ErrorFatal, llm.ErrorRefused, llm.ErrorTooLong} {
			m.failures.WithLabelValues(name, string(kind))
		}
	}
}

// ModelFailed counts a failed call to a model.
func (m *Metrics) ModelFailed(engine string, kind llm.ErrorKind) {
	m.failures.WithLabelValues(engine, string(kind)).Inc()
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
	m.turns.WithLabelValues(outcome).Inc()
	if e.Trace != nil {
		m.addTrace(e.Trace)
	}
	if e.Intent == "" {
		return
	}
	m.intents.WithLabelValues(e.Intent).Inc()
	if e.Confidence > 0 {
		m.confidence.Observe(e.Confidence)
	}
}

// Handler serves /metrics, /healthz and /readyz. alive returns nil if turns can run; ready
// returns nil if the bot receives messages, too.
func (m *Metrics) Handler(alive, ready func(context.Context) error) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", health(alive, "the bot does not answer"))
	mux.HandleFunc("GET /readyz", health(ready, "the bot receives no messages"))
	return mux
}

// health reports whether check returns nil.
func health(check func(context.Context) error, otherwise string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := check(r.Context()); err != nil {
			http.Error(w, otherwise, http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok\n"))
	}
}

// LocalOnly refuses requests to names that are not of this machine, against DNS rebinding.
func LocalOnly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			name = r.Host
		}
		ip := net.ParseIP(strings.Trim(name, "[]"))
		if name != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "this is for this machine alone", http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Server makes a server with short time limits.
func Server(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, MaxHeaderBytes: 16 << 10,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
	}
}
