package blueprint

import (
	"sync"
	"time"

	"synthbot/core"
)

// pace limits how often an agent is called, by all users and all its tools together. Zero
// limits allow any number.
type pace struct {
	limits
	clock func() time.Time

	mu    sync.Mutex
	calls []time.Time // of the last hour
}

// take counts a call. Its error says when there may be one.
func (p *pace) take() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock()
	for len(p.calls) > 0 && now.Sub(p.calls[0]) >= time.Hour {
		p.calls = p.calls[1:]
	}
	wait := func(most int, span time.Duration) time.Duration {
		if most <= 0 || len(p.calls) < most {
			return 0
		}
		return span - now.Sub(p.calls[len(p.calls)-most])
	}
	after := max(wait(p.Minute, time.Minute), wait(p.Hour, time.Hour))
	if after > 0 {
		text := "The agent is called too often; try again a little later."
		return &core.Error{Kind: core.Occupied, Text: text, After: after}
	}
	if p.Minute > 0 || p.Hour > 0 {
		p.calls = append(p.calls, now)
	}
	return nil
}
