package engine

import (
	"context"
	"errors"
	"time"

	"synthbot/core/llm"
)

// Probe is what an engine said when it was asked for a word.
type Probe struct {
	Engine string
	Err    error // nil: it answers
}

// probeTime is how long an engine may take for one token. Some have to load their
// model first.
const probeTime = 30 * time.Second

// Probe asks every engine for one token: servers differ in what they list as their
// models, and whether they do. The offline engine needs no asking.
func (c *Chain) Probe(ctx context.Context) []Probe {
	var probes []Probe
	for _, l := range c.links {
		r, ok := l.model.(*remote)
		if !ok {
			continue
		}
		cfg := r.cfg
		cfg.MaxTokens, cfg.Timeout = 1, min(cfg.Timeout, probeTime)
		short, err := newRemote(cfg, r.transport)
		if err == nil {
			hello := []llm.Utterance{{Role: llm.RoleUser, Text: "Hello"}}
			_, err = short.Generate(ctx, llm.Request{Messages: hello})
		}
		if errors.Is(err, errEmptyAnswer) || errors.Is(err, errOutputLimit) {
			err = nil // one token may hold no word yet
		}
		probes = append(probes, Probe{l.name, err})
	}
	return probes
}
