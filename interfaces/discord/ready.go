package discord

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"synthbot/core"
)

var _ core.Readier = (*Driver)(nil)

// outage is how long a shard may be without a session, or events may wait to be
// taken in, before the driver is not ready.
const outage = 30 * time.Second

// readiness knows which shards have a session, and whether events are taken in. Safe for
// concurrent use.
type readiness struct {
	mu      sync.Mutex
	count   int               // shards; 0: not connected yet
	lost    map[int]time.Time // by shard: when its session ended; zero while it has one
	refused time.Time         // since when events are not taken in; zero: they are
}

// begin sets the number of shards.
func (r *readiness) begin(count int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count, r.lost = count, make(map[int]time.Time)
}

func (r *readiness) connected(shard int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost[shard] = time.Time{}
}

func (r *readiness) disconnected(shard int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	since, had := r.lost[shard]
	if had && since.IsZero() {
		r.lost[shard] = time.Now()
	}
}

// takes sets whether events are taken in.
func (r *readiness) takes(ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ok {
		r.refused = time.Time{}
	} else if r.refused.IsZero() {
		r.refused = time.Now()
	}
}

// Ready implements core.Readier.
func (d *Driver) Ready() error {
	r := &d.feed.ready
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == 0 {
		return errors.New("not connected yet")
	}
	if !r.refused.IsZero() && time.Since(r.refused) >= outage {
		return errors.New("events are not taken in")
	}
	for shard := range r.count {
		since, had := r.lost[shard]
		if !had || !since.IsZero() && time.Since(since) >= outage {
			return fmt.Errorf("shard %d has no session", shard)
		}
	}
	return nil
}
