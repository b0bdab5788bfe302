package discord

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"synthbot/core/driver"
)

// aliveKey is the State's key of the time until which all events were received.
const aliveKey = "alive"

// How exact the note of it is.
const (
	aliveEvery = 30 * time.Second // between two notes
	aliveSlack = time.Minute      // for clocks, and for events on their way
)

// alive knows until when all events were received, shard by shard. Safe for concurrent
// use.
type alive struct {
	mu     sync.Mutex
	shards map[int]time.Time
	behind bool      // events wait that are not on disk
	before time.Time // of an earlier process
	noted  time.Time
}

// touch is called when a shard has received everything until now.
func (a *alive) touch(shard int, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.shards[shard] = now
}

// begin is called when a shard has a new session. It returns until when the previous one
// received everything; zero if there was none.
func (a *alive) begin(shard int, now time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	until, known := a.shards[shard]
	if !known {
		until = a.before
	}
	a.shards[shard] = now
	return until
}

// wait sets whether events wait that are not on disk.
func (a *alive) wait(behind bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.behind = behind
}

// all is until when all shards have received everything, if that is on disk; zero if
// that is unknown.
func (a *alive) all(count int) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.behind || len(a.shards) < max(count, 1) {
		return a.before
	}
	return slices.MinFunc(slices.Collect(maps.Values(a.shards)), time.Time.Compare)
}

// load reads what an earlier process stored.
func (a *alive) load(ctx context.Context, s driver.State) error {
	raw, err := s.Get(ctx, aliveKey)
	if err != nil || raw == nil {
		return err
	}
	at, err := time.Parse(time.RFC3339, string(raw))
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.before, a.noted = at, at
	return nil
}

// note stores a time, if now or if the stored one is old. Everything before at is on
// disk.
func (a *alive) note(ctx context.Context, s driver.State, at time.Time, now bool) error {
	a.mu.Lock()
	due := at.Sub(a.noted) >= aliveEvery || now && at.After(a.noted)
	a.mu.Unlock()
	if !due {
		return nil
	}
	if err := s.Put(ctx, aliveKey, []byte(at.UTC().Format(time.RFC3339))); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.noted = at
	return nil
}
