package turn_test

import (
	"context"
	"sync/atomic"
	"testing"

	"synthbot/core"
	"synthbot/core/coretest"
)

// counted is a store that counts its views.
type counted struct {
	core.Store
	views atomic.Int64
}

func (c *counted) View(ctx context.Context, f func(core.View) error) error {
	c.views.Add(1)
	return c.Store.View(ctx, f)
}

// TestOneRead: what a prompt tells of the past is read in one view.
func TestOneRead(t *testing.T) {
	s := &counted{Store: open(t, t.TempDir())}
	t.Cleanup(func() { s.Close() })
	asker := coretest.NewAsker(plan("Hello."))
	asker.Hold = make(chan struct{}, 1)
	b := start(t, s, coretest.NewRoom("room"), asker)
	before := s.views.Load()
	b.receive(said("1", "jay", "hi"))
	b.thinks(1)
	if n := s.views.Load() - before; n > 2 { // Run's own look at what waits may fall into it
		t.Errorf("the store was read %d times for one prompt", n)
	}
	asker.Hold <- struct{}{}
	b.ended(1)
	before = s.views.Load()
	b.receive(said("2", "jay", "again"))
	b.thinks(1)
	if n := s.views.Load() - before; n != 1 {
		t.Errorf("the store was read %d times for one prompt, want 1", n)
	}
	asker.Hold <- struct{}{}
	b.ended(1)
}
