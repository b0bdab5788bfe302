package gateway

import (
	"context"
	"strconv"
	"sync"
	"time"

	"synthbot/core/driver"
)

// Starts spaces the identifies of an account: each bucket of shards has one in each period. Safe for
// concurrent use.
type Starts struct {
	every   time.Duration
	shared  driver.State // of all processes that serve the account; nil: this one serves it alone
	mu      sync.Mutex
	buckets map[int]chan time.Time // hold one value: when the next identify is allowed
}

// NewStarts makes Starts with that period. The processes that serve an account share a State, which
// keeps when the next identify is allowed; for an account with one process it is nil.
func NewStarts(every time.Duration, shared driver.State) *Starts {
	return &Starts{every: every, shared: shared, buckets: make(map[int]chan time.Time)}
}

// wait waits for the shard's turn to identify. done must be called when it has done so,
// or will not; calling it again has no effect.
func (s *Starts) wait(ctx context.Context, shard, concurrency int) (done func(), err error) {
	s.mu.Lock()
	b := s.buckets[shard%concurrency]
	if b == nil {
		b = make(chan time.Time, 1)
		b <- time.Time{}
		s.buckets[shard%concurrency] = b
	}
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case next := <-b:
		if !driver.Sleep(ctx, time.Until(next)) || !s.claim(ctx, shard%concurrency) {
			b <- next
			return nil, ctx.Err()
		}
	}
	return sync.OnceFunc(func() { b <- time.Now().Add(s.every) }), nil
}

// claim waits until no process identifies in a bucket, and notes that this one does. A State that fails
// keeps nobody from identifying: Discord refuses what comes too early. It returns false if ctx ends.
func (s *Starts) claim(ctx context.Context, bucket int) bool {
	if s.shared == nil {
		return true
	}
	for {
		var left time.Duration
		_, err := driver.Update(ctx, s.shared, "starts "+strconv.Itoa(bucket), func(next *time.Time) bool {
			now := time.Now()
			left = next.Sub(now)
			if left > 0 && left <= s.every { // else the clocks differ
				return false
			}
			left = 0
			*next = now.Add(s.every)
			return true
		})
		if err != nil || left == 0 {
			return ctx.Err() == nil
		}
		if !driver.Sleep(ctx, left) {
			return false
		}
	}
}
