package blueprint

import (
	"sync"
	"time"

	"synthbot/core"
)

// pace keeps to how often an agent wants to be called, all its tools and all
// people together. The zero limits allow any number.
type pace struct {
	limits
	clock func() time.Time

	mu    sync.Mutex
	calls []time.Time // of the last hour
}

// take counts a call, or says when there may be one.
func (p *pace) take() error {
	if p.Minute <= 0 && p.Hour <= 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock()
	for len(p.calls) > 0 && now.Sub(p.calls[0]) >= time.Hour {
		p.calls = p.calls[1:]
	}
	wait := max(p.wait(now, p.Minute, time.Minute), p.wait(now, p.Hour, time.Hour))
	if wait > 0 {
		return &core.Error{Kind: core.Occupied, Text: "The agent is called too often; try again a little later.", After: wait}
	}
	p.calls = append(p.calls, now)
	return nil
}

// wait is how long it takes until there are fewer than most calls within span.
func (p *pace) wait(now time.Time, most int, span time.Duration) time.Duration {
	if most <= 0 || len(p.calls) < most {
		return 0
	}
	return span - now.Sub(p.calls[len(p.calls)-most])
}
