package turn

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
)

// slowPulse is a store whose Pulse counts its calls and takes a millisecond, or hangs until stuck
// is closed.
type slowPulse struct {
	core.Store
	pulses atomic.Int32
	stuck  chan struct{} // nil: Pulse does not hang
}

func (s *slowPulse) View(ctx context.Context, _ func(core.View) error) error { return ctx.Err() }

func (s *slowPulse) Pulse(context.Context) error {
	s.pulses.Add(1)
	if s.stuck != nil {
		<-s.stuck
	}
	time.Sleep(time.Millisecond)
	return nil
}

// TestOnePulseForAll: all callers during a test of the store, or just after, share its result. A
// stuck store costs one goroutine.
func TestOnePulseForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowPulse{}
		turns := &Turns{store: s}
		ask := func(n int) (failed int32) {
			var all sync.WaitGroup
			var count atomic.Int32
			for range n {
				all.Go(func() {
					if err := turns.Pulse(t.Context()); errors.Is(err, context.DeadlineExceeded) {
						count.Add(1)
					} else if err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			return count.Load()
		}
		for range 3 {
			if failed := ask(50); failed > 0 {
				t.Errorf("%d of 50 callers timed out, want none", failed)
			}
		}
		if n := s.pulses.Load(); n != 1 {
			t.Errorf("150 calls within a second caused %d tests, want 1", n)
		}
		time.Sleep(pulseAge - time.Millisecond - time.Nanosecond) // the test took a millisecond
		if ask(1); s.pulses.Load() != 1 {
			t.Error("the result expired too early")
		}
		time.Sleep(time.Nanosecond)
		if ask(1); s.pulses.Load() != 2 {
			t.Error("the result did not expire")
		}
		time.Sleep(2 * time.Second)
		s.stuck = make(chan struct{})
		if failed := ask(50) + ask(50); failed != 100 {
			t.Errorf("%d of 100 callers timed out on a stuck store, want all", failed)
		}
		if n := s.pulses.Load(); n != 3 {
			t.Errorf("100 calls on a stuck store caused %d tests, want 1", n-2)
		}
		close(s.stuck)
		time.Sleep(2 * time.Second)
		if ask(1) != 0 {
			t.Error("the store did not recover")
		}
	})
}
