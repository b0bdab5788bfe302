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
	"synthbot/core/recent"
)

// globalRate is how many requests Discord allows a bot in a second, less a few.
// globalTime is that second, and a little more for the way there.
const (
	globalRate = 48
	globalTime = 1100 * time.Millisecond
)

// resetSlack is added to the end of a period, which the server rounds.
const resetSlack = 10 * time.Millisecond

// maxBuckets is how many buckets are kept at least, those that were used last.
const maxBuckets = 4096

// limiter keeps requests below the server's rate limits. From the server's headers it
// knows the bucket of a route, what is left in it and until when. Safe for concurrent
// use.
type limiter struct {
	pace bool

	mu      sync.Mutex
	names   map[string]string             // route → the server's name of its bucket
	buckets recent.Cache[string, *bucket] // by that name (or the route) and the major ID
	until   time.Time                     // no request at all is allowed before
	sent    []time.Time                   // the latest requests, at most globalRate
}

// bucket is one of the server's rate limits.
type bucket struct {
	left  int
	reset time.Time // until when left holds; as the server said
	until time.Time // refused until then
}

func newLimiter(pace bool) *limiter {
	buckets := recent.NewCache[string, *bucket](maxBuckets)
	return &limiter{pace: pace, names: make(map[string]string), buckets: buckets}
}

// enter waits until the request may be made.
func (l *limiter) enter(ctx context.Context, q *Request) error {
	for {
		wait := l.take(q, time.Now())
		if wait <= 0 {
			return ctx.Err()
		}
		if !driver.Sleep(ctx, wait) {
			return context.Cause(ctx)
		}
	}
}

// take lets the request pass, or returns how long it must wait.
func (l *limiter) take(q *Request, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q.Fast {
		return 0
	}
	b := l.find(q)
	wait := max(l.until.Sub(now), b.until.Sub(now))
	if b.left <= 0 { // in a new period, the next answer says what is left
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
		name += " " + q.IDs[0] // what rate limits depend on
	}
	return l.buckets.Ensure(name, func() *bucket { return &bucket{} })
}

// learn reads the server's headers.
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
		left = min(left, b.left) // other requests are on their way
	}
	b.left, b.reset = left, reset
}

// block applies a refusal. A shared rate limit is applied like one of our own.
func (l *limiter) block(q *Request, e *Error) {
	// A little longer than the server says: its clock is not ours.
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
