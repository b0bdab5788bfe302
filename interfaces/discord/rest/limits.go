package rest

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"synthbot/core/driver"
	"synthbot/core/loop"
	"synthbot/core/recent"
)

// At most globalRate requests are made in globalTime. Discord allows a few more within a second.
// The rest of globalTime allows for varying delays on the way there.
const (
	globalRate = 48
	globalTime = 1100 * time.Millisecond
)

// resetSlack is added to the end of a bucket's period, because the server rounds it.
const resetSlack = 10 * time.Millisecond

// maxBuckets is how many of the latest buckets are kept, at least.
const maxBuckets = 4096

// limiter delays requests to stay within the server's rate limits. The server's headers name the bucket of a route, how
// many requests it still allows, and when its period ends. Safe for concurrent use.
type limiter struct {
	pace bool

	mu      sync.Mutex
	names   map[string]string             // route → the server's name of its bucket
	buckets recent.Cache[string, *bucket] // by that name (or the route) and the request's first ID
	until   time.Time                     // no request is allowed before
	sent    []time.Time                   // of the latest requests, at most globalRate
}

// bucket is one of the server's rate limits.
type bucket struct {
	left  int       // how many more requests are allowed in this period
	reset time.Time // the end of the period, according to the server
	until time.Time // no request is allowed before, because the server refused one
}

func newLimiter(pace bool) *limiter {
	buckets := recent.NewCache[string, *bucket](maxBuckets)
	return &limiter{pace: pace, names: make(map[string]string), buckets: buckets}
}

// enter blocks until the request is allowed, or ctx ends.
func (l *limiter) enter(ctx context.Context, q *Request) error {
	for {
		wait := l.take(q, time.Now())
		if wait <= 0 {
			return ctx.Err()
		}
		if !loop.Sleep(ctx, wait) {
			return context.Cause(ctx)
		}
	}
}

// take counts the request if it is allowed now, or returns how long it must wait.
func (l *limiter) take(q *Request, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q.Fast {
		return 0
	}
	b := l.find(q)
	wait := max(l.until.Sub(now), b.until.Sub(now))
	if b.left <= 0 { // after the reset, the next response says how many are left
		wait = max(wait, b.reset.Sub(now))
	}
	if l.pace && len(l.sent) >= globalRate {
		wait = max(wait, l.sent[0].Add(globalTime).Sub(now))
	}
	if wait > 0 {
		return wait
	}
	b.left--
	l.sent = append(l.sent[max(0, len(l.sent)-globalRate+1):], now)
	return 0
}

// find returns the request's bucket. l.mu is held.
func (l *limiter) find(q *Request) *bucket {
	name := cmp.Or(l.names[q.name()], q.name())
	if len(q.IDs) > 0 {
		name += " " + q.IDs[0] // each has its own limits
	}
	return l.buckets.Ensure(name, func() *bucket { return &bucket{} })
}

// learn updates the request's bucket from the headers of its response.
func (l *limiter) learn(q *Request, h http.Header) {
	left, err := strconv.Atoi(h.Get("X-RateLimit-Remaining"))
	after, err2 := strconv.ParseFloat(h.Get("X-RateLimit-Reset-After"), 64)
	if err != nil || err2 != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	name := h.Get("X-RateLimit-Bucket")
	if name != "" && len(name) < 200 && len(l.names) < maxBuckets {
		l.names[q.name()] = name
	}
	b := l.find(q)
	reset := time.Now().Add(Seconds(after) + resetSlack)
	if b.reset.After(time.Now()) {
		left = min(left, b.left) // b.left also counts requests without a response yet
	}
	b.left, b.reset = left, reset
}

// block delays further requests after a rate limit was exceeded. A limit that is shared with other bots
// is treated like the bot's own.
func (l *limiter) block(q *Request, e *Error) {
	// A little longer than the server says, because clocks differ.
	until := time.Now().Add(e.After + rand.N(50*time.Millisecond))
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Global {
		l.until = driver.Later(l.until, until)
		return
	}
	b := l.find(q)
	b.until = driver.Later(b.until, until)
}
