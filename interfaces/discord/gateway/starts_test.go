package gateway

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
)

// TestStartsOfTwoProcesses: processes of one account keep the required time between two identifies of a
// bucket. Different buckets do not wait for each other.
func TestStartsOfTwoProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const every = 5 * time.Second
		state := new(coretest.SharedState)
		if err := state.Put(t.Context(), "starts 0", core.JSON(time.Now().Add(time.Hour))); err != nil { // written by a process whose clock is wrong
			t.Fatal(err)
		}
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
				t.Errorf("bucket %d: got %v, want %v", bucket, got, want)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := NewStarts(every, state).wait(ctx, 0, 2); err == nil {
			t.Error("got no error of a cancelled context")
		}
	})
}
