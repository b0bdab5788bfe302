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

// tested is a store that counts how often it is tested, and takes its time for it.
type tested struct {
	core.Store
	pulses atomic.Int32
	stuck  chan struct{} // nil: it is not
}

func (s *tested) View(ctx context.Context, _ func(core.View) error) error { return ctx.Err() }

func (s *tested) Pulse(context.Context) error {
	s.pulses.Add(1)
	if s.stuck != nil {
		<-s.stuck
	}
	time.Sleep(time.Millisecond)
	return nil
}

// TestOnePulseForAll: all who ask while the store is tested, or just after, share the
// result; a store that is stuck costs one goroutine.
func TestOnePulseForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tested{}
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
				t.Errorf("%d of 50 got no answer", failed)
			}
		}
		if n := s.pulses.Load(); n != 1 {
			t.Errorf("150 questions within a second were %d tests", n)
		}
		time.Sleep(pulseAge - time.Millisecond - time.Nanosecond) // the test took a millisecond
		if ask(1); s.pulses.Load() != 1 {
			t.Error("a result is too old too soon")
		}
		time.Sleep(time.Nanosecond)
		if ask(1); s.pulses.Load() != 2 {
			t.Error("a result is never too old")
		}
		time.Sleep(2 * time.Second)
		s.stuck = make(chan struct{})
		if failed := ask(50) + ask(50); failed != 100 {
			t.Errorf("%d of 100 heard that the store is stuck", failed)
		}
		if n := s.pulses.Load(); n != 3 {
			t.Errorf("100 questions of a stuck store were %d tests", n-2)
		}
		close(s.stuck)
		time.Sleep(2 * time.Second)
		if ask(1) != 0 {
			t.Error("it is not well again")
		}
	})
}
