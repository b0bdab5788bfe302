package action

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"time"

	"synthbot/core"
)

// maxCached is how many results are kept.
const maxCached = 512

// cache keeps results that may serve again: to the same person, in the same
// place, for an equal payload, while nobody is forgotten of whom they may tell.
// What one person may see, another may not. Its zero value is ready.
type cache struct {
	mu      sync.Mutex
	entries map[string]cached
}

type cached struct {
	output json.RawMessage
	until  time.Time
}

func (e *execution) cacheKey(ctx context.Context, d *Definition, c core.Call) string {
	epoch, _, _ := core.EpochOf(ctx)
	return strings.Join(append(e.persons(), strconv.FormatUint(epoch, 10), d.Name, c.Path.String(), string(c.Payload)), "\x00")
}

// cached returns the result of an earlier equal call.
func (e *execution) cached(ctx context.Context, d *Definition, c core.Call) (json.RawMessage, bool) {
	e.cache.mu.Lock()
	defer e.cache.mu.Unlock()
	r := e.cache.entries[e.cacheKey(ctx, d, c)]
	return r.output, e.Clock().Before(r.until)
}

// keep remembers a result. One that asks for further actions is none to keep.
func (e *execution) keep(ctx context.Context, d *Definition, c core.Call, r core.Result) {
	if d.Cache <= 0 || len(r.Next) > 0 {
		return
	}
	now := e.Clock()
	e.cache.mu.Lock()
	defer e.cache.mu.Unlock()
	if len(e.cache.entries) >= maxCached {
		e.cache.evict(now)
	}
	if e.cache.entries == nil {
		e.cache.entries = make(map[string]cached)
	}
	e.cache.entries[e.cacheKey(ctx, d, c)] = cached{r.Output, now.Add(d.Cache)}
}

// evict makes room: by what is out of date, and by what will be next.
func (c *cache) evict(now time.Time) {
	first := ""
	for k, r := range c.entries {
		if !now.Before(r.until) {
			delete(c.entries, k)
		} else if first == "" || r.until.Before(c.entries[first].until) {
			first = k
		}
	}
	if len(c.entries) >= maxCached {
		delete(c.entries, first)
	}
}
