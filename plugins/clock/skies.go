package clock

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"synthbot/core/loop"
	"synthbot/core/recent"
)

// skies is a cache of weather. Safe for concurrent use.
type skies struct {
	wake chan struct{} // holds a token if Run has something to fetch

	mu     sync.Mutex
	known  recent.Cache[cell, *seen]
	wanted map[cell]spot // to be fetched by Run
}

// cell is an area of the map with the same weather, about 5 km wide.
type cell struct{ lat, lon int32 }

func cellOf(s *spot) cell {
	const wide = 20 // cells per degree
	return cell{int32(math.Round(s.Lat * wide)), int32(math.Round(s.Lon * wide))}
}

// seen is the cached weather of a cell.
type seen struct {
	sky   *forecast // nil: none yet
	at    time.Time // when it was fetched
	retry time.Time // not fetched before then, after an error
}

const (
	maxSkies = 250           // cached cells, the most recently used
	tooOld   = 3 * time.Hour // the age from which on cached weather is not shown
)

func newSkies() *skies {
	return &skies{wake: make(chan struct{}, 1), known: recent.NewCache[cell, *seen](maxSkies),
		wanted: make(map[cell]spot)}
}

// getOrRequest returns the cached weather, and makes Run fetch it if it is older than fresh.
func (k *skies) getOrRequest(s *spot, now time.Time, fresh time.Duration) (*forecast, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	x := k.cell(s)
	age := now.Sub(x.at)
	if (x.sky == nil || age >= fresh) && !now.Before(x.retry) && len(k.wanted) < maxSkies {
		k.wanted[cellOf(s)] = *s
		loop.Notify(k.wake)
	}
	return x.sky, x.sky != nil && age <= max(tooOld, fresh)
}

func (k *skies) cell(s *spot) *seen {
	return k.known.Ensure(cellOf(s), func() *seen { return new(seen) })
}

// fresh returns the cached weather if it is at most that old.
func (k *skies) fresh(s *spot, now time.Time, age time.Duration) (*forecast, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	x, ok := k.known.Get(cellOf(s))
	if !ok || x.sky == nil || now.Sub(x.at) > age {
		return nil, false
	}
	return x.sky, true
}

// put stores fetched weather; nil says that fetching failed.
func (k *skies) put(s *spot, f *forecast, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.wanted, cellOf(s))
	x := k.cell(s)
	if f == nil {
		x.retry = now.Add(retryDelay)
		return
	}
	*x = seen{sky: f, at: now}
}

// next returns a spot whose weather Run must fetch.
func (k *skies) next() (s spot, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.wanted {
		return s, true
	}
	return s, false
}

// Run implements core.Runner: it fetches the weather for prompts until ctx ends.
func (p *Plugin) Run(ctx context.Context) error {
	if p.config.Weather != weatherPrompt {
		<-ctx.Done()
		return nil
	}
	loop.Repeat(ctx, p.skies.wake, func() time.Duration {
		if err := p.home.find(ctx, p); err != nil && ctx.Err() == nil {
			p.host.Log.Warn("the bot's place was not found", "err", err)
		}
		for s, ok := p.skies.next(); ok && ctx.Err() == nil; s, ok = p.skies.next() {
			if _, err := p.look(ctx, &s); err != nil && ctx.Err() == nil {
				p.host.Log.Warn("no weather", "err", err)
			}
		}
		return -1
	})
	return nil
}

func (p *Plugin) look(ctx context.Context, s *spot) (*forecast, error) {
	f, err := p.server.forecast(ctx, s)
	p.skies.put(s, f, p.host.Clock())
	if err != nil {
		return nil, fmt.Errorf("weather: %w", err)
	}
	return f, nil
}

// home is the bot's place. It is searched for on the map when it is needed.
type home struct {
	name string

	mu    sync.Mutex
	spot  *spot
	retry time.Time
}

// at returns the bot's spot, nil if it was not found yet. due says whether to search for it now.
func (h *home) at(now time.Time) (s *spot, due bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.spot, h.name != "" && h.spot == nil && !now.Before(h.retry)
}

const retryDelay = 10 * time.Minute // the pause after a failed request

// find searches for the bot's place, unless it is known or a search failed lately.
func (h *home) find(ctx context.Context, p *Plugin) error {
	now := p.host.Clock()
	_, due := h.at(now)
	if !due {
		return nil
	}
	h.mu.Lock()
	h.retry = now.Add(retryDelay)
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
