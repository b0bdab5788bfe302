package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"synthbot/admin"
	"synthbot/core"
)

// monitor observes the turns and knows whether the bot is well.
type monitor struct {
	*Bot
	metrics *admin.Metrics
	traces  *admin.Traces
	began   time.Time
	full    atomic.Bool // the disk
}

// diskFull is called by the store when the disk is full, and when there is room again.
// While it is full no message is taken in, so that none is lost: platforms keep what was
// not acknowledged. Afterwards turns that failed because of it are tried again.
func (m *monitor) diskFull(full bool) {
	m.full.Store(full)
	if full {
		m.alerts.set("disk", false, "The disk is full. I take in no messages until there is room; nothing is lost.")
		return
	}
	m.alerts.set("disk", true, "There is room on the disk again, and I go on.")
	m.Turns.Retry()
}

// alive returns nil if turns can run and a write to the store commits. A full disk is
// not the bot's fault.
func (m *monitor) alive(ctx context.Context) error {
	if err := m.Turns.Pulse(ctx); !errors.Is(err, core.ErrFull) {
		return err
	}
	return nil
}

// ready returns nil if every interface takes in messages, and a write to the store
// commits.
func (m *monitor) ready(ctx context.Context) error {
	if m.full.Load() {
		return core.ErrFull
	}
	for _, i := range m.InForce().Interfaces {
		if m.workers.failed(i) {
			return fmt.Errorf("interface %s has stopped", i.Name())
		}
		if r, ok := i.(core.Readier); ok {
			if err := r.Ready(); err != nil {
				return fmt.Errorf("interface %s: %w", i.Name(), err)
			}
		}
	}
	return m.Turns.Pulse(ctx)
}
