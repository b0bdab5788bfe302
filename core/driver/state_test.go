package driver

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core/coretest"
)

// TestUpdatesOfTwoDrivers: no update is lost while two drivers of one interface run.
func TestUpdatesOfTwoDrivers(t *testing.T) {
	var all sync.WaitGroup
	s := new(coretest.SharedState)
	for range 8 {
		all.Go(func() {
			for range 100 {
				_, err := Update(t.Context(), s, "count", func(n *int) bool { *n++; return true })
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	var n int
	if err := Load(t.Context(), s, "count", &n); err != nil || n != 800 {
		t.Errorf("got %d updates, %v, want 800", n, err)
	}
}

// TestAwaitState checks that a driver waits for its state while the store cannot be read, and goes on without what is
// damaged.
func TestAwaitState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, tries := slog.New(slog.DiscardHandler), 0
		later := func(context.Context) error {
			tries++
			if tries < 10 {
				return errors.New("connection refused")
			}
			return nil
		}
		if !AwaitState(t.Context(), log, later) || tries != 10 {
			t.Errorf("gave up after %d tries", tries)
		}
		s := new(coretest.SharedState)
		_ = s.Put(t.Context(), "broken", []byte("{"))
		damaged := func(ctx context.Context) error { return Load(ctx, s, "broken", new(int)) }
		if !AwaitState(t.Context(), log, damaged) {
			t.Error("damaged state keeps the driver from starting")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if AwaitState(ctx, log, func(context.Context) error { return errors.New("never") }) {
			t.Error("went on without its state")
		}
	})
}
