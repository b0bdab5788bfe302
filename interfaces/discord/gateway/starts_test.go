package gateway

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
)

// sharedState is a driver.State that processes share.
type sharedState struct {
	mu     sync.Mutex
	values map[string][]byte
}

func (s *sharedState) Get(_ context.Context, key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[key], nil
}

func (s *sharedState) Put(_ context.Context, key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[key] = value
	return nil
}

func (s *sharedState) Swap(_ context.Context, key string, old, value []byte) (ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !bytes.Equal(s.values[key], old) {
		return false, nil
	}
	s.values[key] = value
	return true, nil
}

// TestStartsOfTwoProcesses: processes that serve one account leave time between identifies of a bucket,
// and none between those of different ones.
func TestStartsOfTwoProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const every = 5 * time.Second
		state := &sharedState{values: map[string][]byte{"starts 0": core.JSON(time.Now().Add(time.Hour))}} // by another clock
		began := time.Now()
		var mu sync.Mutex
		times := make(map[int][]time.Duration)
		var all sync.WaitGroup
		for range 2 {
			starts := NewStarts(every, state)
			for shard := range 6 {
				all.Go(func() {
					done, err := starts.wait(t.Context(), shard, 2)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					times[shard%2] = append(times[shard%2], time.Since(began))
					mu.Unlock()
					done()
				})
			}
		}
		all.Wait()
		want := []time.Duration{0, every, 2 * every, 3 * every, 4 * every, 5 * every}
		for bucket := range 2 {
			if got := slices.Sorted(slices.Values(times[bucket])); !slices.Equal(got, want) {
				t.Errorf("bucket %d: %v", bucket, got)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := NewStarts(every, state).wait(ctx, 0, 2); err == nil {
			t.Error("it waits for nobody")
		}
	})
}
