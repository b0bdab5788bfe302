package driver

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Tasks are goroutines that a driver waits for at its end. The zero value is ready. Safe
// for concurrent use.
type Tasks struct {
	Most int // at the same time; 0: any number

	mu      sync.Mutex
	group   sync.WaitGroup
	running atomic.Int64
	closed  bool
}

// Go runs f in a goroutine. It returns false if f will not run, because the end has come
// or too many run.
func (t *Tasks) Go(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.Most > 0 && t.running.Load() >= int64(t.Most) {
		return false
	}
	t.running.Add(1)
	t.group.Go(func() {
		defer t.running.Add(-1)
		f()
	})
	return true
}

// Close waits for all tasks. No others begin.
func (t *Tasks) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.group.Wait()
}

// Sleep waits; it returns false if ctx ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// Later returns the later one of two times.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Jitter returns d, give or take a fifth.
func Jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return d*4/5 + rand.N(d*2/5+1)
}
