package clock

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"synthbot/core"
)

// skies is the weather that is at hand. Safe for concurrent use.
type skies struct {
	wake chan struct{}

	mu    sync.Mutex
	known map[cell]*seen
}

// cell is a piece of the map that has one weather, about 5 km wide.
type cell struct{ lat, lon int32 }

func cellOf(s *spot) cell {
	const wide = 20 // of a degree
	return cell{int32(math.Round(s.Lat * wide)), int32(math.Round(s.Lon * wide))}
}

// seen is a cell's weather.
type seen struct {
	spot   spot
	sky    *forecast // nil: none yet
	at     time.Time // when it was asked for
	wanted bool      // Run is to get it
	retry  time.Time
}

// Limits of what is kept and shown.
const (
	maxSkies = 500
	tooOld   = 3 * time.Hour
)

func newSkies() *skies { return &skies{wake: make(chan struct{}, 1), known: make(map[cell]*seen)} }

// glance returns what is at hand, and asks Run for what is older than fresh.
func (k *skies) glance(s *spot, now time.Time, fresh time.Duration) (*forecast, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	x := k.cell(s)
	age := now.Sub(x.at)
	if (x.sky == nil || age >= fresh) && !now.Before(x.retry) {
		x.wanted = true
		core.Notify(k.wake)
	}
	return x.sky, x.sky != nil && now.Sub(x.at) <= max(tooOld, fresh)
}

// cell finds or makes an entry; the oldest one makes room for it.
func (k *skies) cell(s *spot) *seen {
	c := cellOf(s)
	known := k.known[c]
	if known != nil {
		return known
	}
	if len(k.known) >= maxSkies {
		var oldest cell
		var at time.Time
		for other, x := range k.known {
			if at.IsZero() || x.at.Before(at) {
				oldest, at = other, x.at
			}
		}
		delete(k.known, oldest)
	}
	x := &seen{spot: *s}
	k.known[c] = x
	return x
}

// fresh returns what is at most that old.
func (k *skies) fresh(s *spot, now time.Time, age time.Duration) (*forecast, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	x := k.known[cellOf(s)]
	if x == nil || x.sky == nil || now.Sub(x.at) > age {
		return nil, false
	}
	return x.sky, true
}

// put keeps what was asked for; nil: it failed.
func (k *skies) put(s *spot, f *forecast, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	x := k.cell(s)
	x.wanted = false
	if f == nil {
		x.retry = now.Add(again)
		return
	}
	x.sky, x.at, x.retry = f, now, time.Time{}
}

// wanted lists what Run is to get.
func (k *skies) wanted() (list []spot) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, x := range k.known {
		if x.wanted {
			list = append(list, x.spot)
		}
	}
	return list
}

// Run gets the weather that prompts want, until ctx ends. Where nobody wants any
// it sleeps.
func (p *Plugin) Run(ctx context.Context) error {
	if p.config.Weather != weatherPrompt {
		<-ctx.Done()
		return nil
	}
	for {
		if err := p.home.find(ctx, p); err != nil && ctx.Err() == nil {
			p.host.Log.Warn("the bot's place was not found", "err", err)
		}
		for _, s := range p.skies.wanted() {
			if _, err := p.look(ctx, &s); err != nil && ctx.Err() == nil {
				p.host.Log.Warn("no weather", "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-p.skies.wake:
		}
	}
}

// look asks for the weather of a spot now.
func (p *Plugin) look(ctx context.Context, s *spot) (*forecast, error) {
	f, err := p.server.forecast(ctx, s)
	p.skies.put(s, f, p.host.Clock())
	if err != nil {
		return nil, fmt.Errorf("weather: %w", err)
	}
	return f, nil
}
