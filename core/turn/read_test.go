package turn_test

import (
	"context"
	"sync/atomic"
	"testing"

	"synthbot/core"
	"synthbot/core/coretest"
)

// counted is a store that counts its views, but for those that only look whether
// anything waits, and find nothing.
type counted struct {
	core.Store
	views atomic.Int64
}

func (c *counted) View(ctx context.Context, f func(core.View) error) error {
	return c.Store.View(ctx, func(v core.View) error {
		l := &look{View: v}
		err := f(l)
		if !l.idle {
			c.views.Add(1)
		}
		return err
	})
}

// look notices that nothing waits.
type look struct {
	core.View
	idle bool
}

func (l *look) Waiting() ([]core.Path, error) {
	l.idle = true
	return l.View.Waiting()
}

func (l *look) Due(place core.Path, max int) ([]core.Entry, error) {
	due, err := l.View.Due(place, max)
	l.idle = len(due) == 0
	return due, err
}

// TestOneRead: what a prompt tells of the past is read in one view.
func TestOneRead(t *testing.T) {
	s := &counted{Store: open(t, t.TempDir())}
	t.Cleanup(func() { s.Close() })
	asker := coretest.NewAsker(plan("Hello."))
	asker.Hold = make(chan struct{}, 1)
	b := start(t, s, coretest.NewRoom("room"), asker)
	for i, id := range []string{"1", "2", "3"} {
		before := s.views.Load()
		b.receive(said(id, "jay", "hi"))
		b.thinks(1)
		if n := s.views.Load() - before; n != 1 {
			t.Errorf("message %d: the store was read %d times for its prompt, want 1", i, n)
		}
		asker.Hold <- struct{}{}
		b.ended(1)
	}
}
