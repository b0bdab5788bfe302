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

	"synthbot/core"
)

// Metrics counts what becomes of turns. It implements core.Observer. Safe for
// concurrent use.
type Metrics struct {
	registry   *prometheus.Registry
	turns      *prometheus.CounterVec
	intents    *prometheus.CounterVec
	confidence prometheus.Histogram
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
	m.registry.MustRegister(m.turns, m.intents, m.confidence,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Observe implements core.Observer.
func (m *Metrics) Observe(e core.TurnEnd) {
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
	if e.Intent == "" {
		return
	}
	m.intents.WithLabelValues(e.Intent).Inc()
	if e.Confidence > 0 {
		m.confidence.Observe(e.Confidence)
	}
}

// Handler serves /metrics, /healthz and /readyz. alive is asked for the latter
// two: nil means that the bot takes messages in and answers them.
func (m *Metrics) Handler(alive func(context.Context) error) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	health := func(w http.ResponseWriter, r *http.Request) {
		if err := alive(r.Context()); err != nil {
			http.Error(w, "the bot does not answer", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok\n"))
	}
	mux.HandleFunc("GET /healthz", health)
	mux.HandleFunc("GET /readyz", health)
	return mux
}

// Server makes a server that gives nobody much time.
func Server(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10}
}
