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

// at returns the bot's spot; nil if it was not found yet, and then whether the map is to be asked now.
func (h *home) at(now time.Time) (s *spot, due bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.spot, h.name != "" && h.spot == nil && !now.Before(h.retry)
}

// again is how long after a failure the map is asked again.
const again = 10 * time.Minute

// find looks for it, unless that was done or failed a moment ago.
func (h *home) find(ctx context.Context, p *Plugin) error {
	now := p.host.Clock()
	_, due := h.at(now)
	if !due {
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
