package gateway

import (
	"context"
	"strconv"
	"sync"
	"time"

	"synthbot/core/driver"
	"synthbot/core/loop"
)

// Starts limits the identifies of an account: each bucket of shards may send one in each period. Safe for
// concurrent use.
type Starts struct {
	every   time.Duration
	shared  driver.State // of all processes that serve the account; nil: there is only this one
	mu      sync.Mutex
	buckets map[int]chan time.Time // each holds one value: when the next identify is allowed
}

// NewStarts returns Starts with a period. Processes that serve the same account share a State, which stores
// when the next identify is allowed. For a single process it is nil.
func NewStarts(every time.Duration, shared driver.State) *Starts {
	return &Starts{every: every, shared: shared, buckets: make(map[int]chan time.Time)}
}

// wait blocks until the shard may identify, or ctx ends. The caller calls done after it has identified or
// given up. Further calls of done have no effect.
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
		if !loop.Sleep(ctx, time.Until(next)) || !s.claim(ctx, shard%concurrency) {
			b <- next
			return nil, ctx.Err()
		}
	}
	return sync.OnceFunc(func() { b <- time.Now().Add(s.every) }), nil
}

// claim waits until no other process identifies in a bucket, and stores that this one does. If the State
// fails, it does not wait: Discord rejects an identify that is too early. It returns false if ctx ends.
func (s *Starts) claim(ctx context.Context, bucket int) bool {
	if s.shared == nil {
		return true
	}
	for {
		var left time.Duration
		claimed, err := driver.Update(ctx, s.shared, "starts "+strconv.Itoa(bucket), func(next *time.Time) bool {
			now := time.Now()
			left = next.Sub(now)
			if left > 0 && left <= s.every { // else the clocks differ
				return false
			}
			*next = now.Add(s.every)
			return true
		})
		if claimed || err != nil {
			return ctx.Err() == nil
		}
		if !loop.Sleep(ctx, left) {
			return false
		}
	}
}
