package turn

import (
	"context"
	"fmt"
	"sync"
	"time"

	"synthbot/core"
)

// pulser is the ability of a store to test whether a write commits. Pulse returns
// nil if one does, and also if the store does work that may take longer than ctx.
type pulser interface {
	Pulse(ctx context.Context) error
}

// pulseTime is how long Pulse waits; pulseAge is how old a result may be.
const (
	pulseTime = 10 * time.Second
	pulseAge  = time.Second
)

// pulse is one test of the store, for all who ask while it runs and shortly after.
type pulse struct {
	began time.Time
	over  chan struct{} // closed when err is known
	err   error
}

// health holds the latest test of the store.
type health struct {
	mu   sync.Mutex
	last *pulse // nil: none yet
}

// Pulse returns nil if events can be received and turns can run: the store can be
// read and written, and no lock is stuck. Concurrent calls share one test.
func (t *Turns) Pulse(ctx context.Context) error {
	p := t.lastPulse()
	select {
	case <-p.over:
		return p.err
	case <-ctx.Done():
		return fmt.Errorf("pulse: %w", ctx.Err())
	case <-time.After(pulseTime + time.Second):
		return fmt.Errorf("pulse: %w", context.DeadlineExceeded)
	}
}

// lastPulse returns the test that runs, or ended just now, or begins with this call.
func (t *Turns) lastPulse() *pulse {
	t.health.mu.Lock()
	defer t.health.mu.Unlock()
	p := t.health.last
	if p != nil {
		select {
		case <-p.over:
			if time.Since(p.began) < pulseAge {
				return p
			}
		default:
			return p
		}
	}
	p = &pulse{began: time.Now(), over: make(chan struct{})}
	t.health.last = p
	go func() {
		defer close(p.over)
		ctx, cancel := context.WithTimeout(context.Background(), pulseTime)
		defer cancel()
		t.retried() // takes the lock, which must not be stuck
		_, p.err = core.Read(ctx, t.store, core.View.Waiting)
		s, ok := t.store.(pulser)
		if ok && p.err == nil {
			p.err = s.Pulse(ctx)
		}
	}()
	return p
}
