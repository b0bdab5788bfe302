package turn

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"

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

// health tests the store. Calls that wait at the same time share one test.
type health struct {
	tests singleflight.Group

	// Of the latest test; owned by the one that runs.
	began time.Time
	err   error
}

// Pulse returns nil if events can be received and turns can run: the store can be
// read and written, and no lock is stuck. Concurrent calls share one test.
func (t *Turns) Pulse(ctx context.Context) error {
	select {
	case tested := <-t.health.tests.DoChan("", t.testStore):
		return tested.Err
	case <-ctx.Done():
		return fmt.Errorf("pulse: %w", ctx.Err())
	case <-time.After(pulseTime + time.Second):
		return fmt.Errorf("pulse: %w", context.DeadlineExceeded)
	}
}

// testStore tests the store, unless it did so just now.
func (t *Turns) testStore() (_ any, err error) {
	h := &t.health
	if time.Since(h.began) < pulseAge {
		return nil, h.err
	}
	h.began = time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), pulseTime)
	defer cancel()
	t.retried() // takes the lock, which must not be stuck
	_, err = core.Read(ctx, t.store, core.View.Waiting)
	s, ok := t.store.(pulser)
	if ok && err == nil {
		err = s.Pulse(ctx)
	}
	h.err = err
	return nil, err
}
