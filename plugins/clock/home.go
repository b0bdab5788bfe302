package clock

import (
	"context"
	"sync"
	"time"
)

// home is where the bot is: found on the map once it is needed.
type home struct {
	name string

	mu    sync.Mutex
	spot  *spot
	retry time.Time
}

// at is the bot's spot, where it was found already.
func (h *home) at() *spot {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.spot
}

// due reports whether the map is to be asked now.
func (h *home) due(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.name != "" && h.spot == nil && !now.Before(h.retry)
}

// again is how long after a failure the map is asked again.
const again = 10 * time.Minute

// find looks for it, unless that was done or failed a moment ago.
func (h *home) find(ctx context.Context, p *Plugin) error {
	now := p.host.Clock()
	if !h.due(now) {
		return nil
	}
	h.mu.Lock()
	h.retry = now.Add(again)
	h.mu.Unlock()
	s, err := p.server.locate(ctx, h.name, p.host.Language)
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.spot = s
	h.mu.Unlock()
	return nil
}
