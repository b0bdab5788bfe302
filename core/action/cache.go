package action

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/recent"
)

// maxCached is how many results are kept at most.
const maxCached = 512

// cache keeps results that may serve again: to the same people, in the same place, for an
// equal payload, until somebody is forgotten. What one person may see, another may not.
type cache struct {
	mu      sync.Mutex
	results recent.Cache[string, cachedResult]
}

type cachedResult struct {
	output json.RawMessage
	until  time.Time
}

func (e *execution) cacheKey(ctx context.Context, d *Definition, c core.Call) string {
	epoch, _, _ := core.EpochOf(ctx)
	key := append(e.Who.persons(), strconv.FormatUint(epoch, 10), d.Name, c.Path.String(), string(c.Payload))
	return strings.Join(key, "\x00")
}

// cached returns the result of an earlier equal call.
func (e *execution) cached(ctx context.Context, d *Definition, c core.Call) (json.RawMessage, bool) {
	e.cache.mu.Lock()
	defer e.cache.mu.Unlock()
	r, _ := e.cache.results.Get(e.cacheKey(ctx, d, c))
	return r.output, e.Clock().Before(r.until)
}

// keep adds a result, unless it asks for further actions.
func (e *execution) keep(ctx context.Context, d *Definition, c core.Call, r core.Result) {
	if d.Cache <= 0 || len(r.Next) > 0 {
		return
	}
	e.cache.mu.Lock()
	defer e.cache.mu.Unlock()
	e.cache.results.Put(e.cacheKey(ctx, d, c), cachedResult{r.Output, e.Clock().Add(d.Cache)})
}
