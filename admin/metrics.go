// Package admin lets an admin look at a bot that runs: metrics and health. It
// decides nothing, and shows no path, no person and no text.
package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"synthbot/core/llm"
	"synthbot/core/watch"
)

// Metrics counts what becomes of turns. It implements watch.Observer. Safe for
// concurrent use.
type Metrics struct {
	registry   *prometheus.Registry
	turns      *prometheus.CounterVec
	intents    *prometheus.CounterVec
	confidence prometheus.Histogram

	took, own   prometheus.Histogram
	models      *prometheus.HistogramVec
	tokens      *prometheus.CounterVec
	failures    *prometheus.CounterVec
	corrections prometheus.Counter
}

// NewMetrics makes metrics of their own registry.
func NewMetrics() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		turns: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "synthbot_turns_total", Help: "Turns that are over, by outcome: answered, silent or aside.",
		}, []string{"outcome"}),
		intents: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "synthbot_intents_total", Help: "Turns by what the model took them for.",
		}, []string{"intent"}),
		confidence: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "synthbot_intent_confidence", Help: "How sure the model was of the intent, where it said so.",
			Buckets: []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1},
		}),
	}
	m.time()
	m.registry.MustRegister(m.turns, m.intents, m.confidence, m.took, m.own, m.models, m.tokens, m.failures, m.corrections,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// time makes what tells of times and tokens.
func (m *Metrics) time() {
	fine := []float64{0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1}
	slow := []float64{0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120}
	m.took = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "synthbot_turn_seconds", Help: "How long turns took.", Buckets: slow,
	})
	m.own = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "synthbot_own_seconds", Help: "How long turns took, models aside.", Buckets: fine,
	})
	m.models = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "synthbot_model_seconds", Help: "How long models took to answer, by engine.", Buckets: slow,
	}, []string{"engine"})
	m.tokens = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "synthbot_tokens_total", Help: "Tokens of all calls, also those that were given up, by engine and kind: in, out, and cached, which are part of in.",
	}, []string{"engine", "kind"})
	m.failures = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "synthbot_model_errors_total", Help: "Calls that failed, by engine and kind of error, also when another engine answered then.",
	}, []string{"engine", "kind"})
	m.corrections = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "synthbot_corrections_total", Help: "Answers of models that were wrong.",
	})
}

// traced counts what a turn took.
func (m *Metrics) traced(t *watch.Trace) {
	m.took.Observe(t.Took.Seconds())
	m.own.Observe(max(t.Took-t.Thought, 0).Seconds())
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

// Used counts what a call to a model took, whether or not it was answered.
func (m *Metrics) Used(engine string, u llm.Usage) {
	m.tokens.WithLabelValues(engine, "in").Add(float64(u.In))
	m.tokens.WithLabelValues(engine, "cached").Add(float64(u.Cached))
	m.tokens.WithLabelValues(engine, "out").Add(float64(u.Out))
}

// Engines begins to count for engines of these names, so that the first failure
// of one shows as a rise.
func (m *Metrics) Engines(names ...string) {
	for _, name := range names {
		for _, kind := range []llm.ErrorKind{llm.ErrorRetryLater, llm.ErrorFatal, llm.ErrorRefused, llm.ErrorTooLong} {
			m.failures.WithLabelValues(name, string(kind))
		}
	}
}

// ModelFailed counts a call to a model that failed.
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
		m.traced(e.Trace)
	}
	if e.Intent == "" {
		return
	}
	m.intents.WithLabelValues(e.Intent).Inc()
	if e.Confidence > 0 {
		m.confidence.Observe(e.Confidence)
	}
}

// Handler serves /metrics, /healthz and /readyz. alive is asked for the second:
// nil means that turns can be taken; ready for the last: nil means that messages
// are taken in, too.
func (m *Metrics) Handler(alive, ready func(context.Context) error) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", health(alive, "the bot does not answer"))
	mux.HandleFunc("GET /readyz", health(ready, "the bot takes nothing in"))
	return mux
}

// health answers whether something is as it should be.
func health(ask func(context.Context) error, otherwise string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := ask(r.Context()); err != nil {
			http.Error(w, otherwise, http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok\n"))
	}
}

// Server makes a server that gives nobody much time.
func Server(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10}
}
