package driver

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"synthbot/core"
)

// Health tracks whether events arrive from one or several sources, such as shards. The zero value means
// not connected yet. Safe for concurrent use.
type Health struct {
	mu      sync.Mutex
	sources map[int]failure // by number
}

type failure struct {
	since time.Time
	err   error // nil: it works
}

// Works records that a source works.
func (h *Health) Works(source int) { h.Fails(source, time.Time{}, nil) }

// Fails records that a source has failed since then, or that it works if err is nil. A source that already failed
// keeps the time of its first failure.
func (h *Health) Fails(source int, since time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sources == nil {
		h.sources = make(map[int]failure)
	}
	old := h.sources[source]
	if err != nil && old.err != nil {
		since = old.since
	}
	h.sources[source] = failure{since, err}
}

// Ready returns nil if all sources work or have failed for less than 30 seconds. Otherwise it returns the
// error of one of them.
func (h *Health) Ready() error {
	const outage = 30 * time.Second
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.sources) == 0 {
		return errors.New("not connected yet")
	}
	for _, source := range slices.Sorted(maps.Keys(h.sources)) {
		f := h.sources[source]
		if f.err != nil && time.Since(f.since) >= outage {
			return f.err
		}
	}
	return nil
}

// ClockFinding reports how far this machine's clock differs from the platform's, with a fix if that is more
// than 30 seconds.
func ClockFinding(ahead time.Duration) core.Finding {
	ahead = ahead.Round(time.Second).Abs()
	f := core.Finding{What: "clock", Found: ahead.String() + " from the platform's"}
	if ahead > 30*time.Second {
		f.Fix = "let this machine's clock be set by the network (timedatectl set-ntp true)"
	}
	return f
}
