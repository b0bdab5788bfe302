package discord

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// globalRate is what the platform allows a bot over all in a second, less a
// little; globalTime is that second, and a little more for the way there.
const (
	globalRate = 48
	globalTime = 1100 * time.Millisecond
)

// resetSlack is added to the end of a period, which the server rounds.
const resetSlack = 10 * time.Millisecond

// maxBuckets is how many limits are remembered before old ones are dropped.
const maxBuckets = 4096

// limiter keeps requests below the server's limits. It knows what the server
// told: the bucket of a route, what is left in it and until when. Safe for
// concurrent use.
type limiter struct {
	pace bool

	mu     sync.Mutex
	names  map[string]string  // route → the server's name of its bucket
	bucket map[string]*bucket // by that name (or the route) and the id that it hangs on
	until  time.Time          // nothing at all before
	sent   []time.Time        // the latest requests, at most globalRate
}

// bucket is one of the server's limits.
type bucket struct {
	known bool // the server told
	left  int
	reset time.Time
	until time.Time // refused until then
}

func newLimiter(pace bool) *limiter {
	return &limiter{pace: pace, names: make(map[string]string), bucket: make(map[string]*bucket)}
}

// enter waits until the request may be made.
func (l *limiter) enter(ctx context.Context, q *request) error {
	for {
		wait := l.take(q, time.Now())
		if wait <= 0 {
			return ctx.Err()
		}
		if q.fast {
			return nil // it would be too late
		}
		if !sleep(ctx, wait) {
			return context.Cause(ctx)
		}
	}
}

// take lets the request pass, or says how long it must wait.
func (l *limiter) take(q *request, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q.fast {
		return 0
	}
	b := l.find(q)
	if b.known && b.left <= 0 && !b.reset.After(now) {
		b.known = false // a new period; the next answer tells
	}
	wait := max(l.until.Sub(now), b.until.Sub(now))
	if b.known && b.left <= 0 {
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

// find returns the request's bucket; l.mu is held.
func (l *limiter) find(q *request) *bucket {
	name, ok := l.names[q.key()]
	if !ok {
		name = q.key()
	}
	name += " " + q.major()
	b, ok := l.bucket[name]
	if !ok {
		l.evict()
		b = &bucket{}
		l.bucket[name] = b
	}
	return b
}

// evict forgets limits that are over.
func (l *limiter) evict() {
	if len(l.bucket) < maxBuckets {
		return
	}
	now := time.Now()
	for name, b := range l.bucket {
		if b.reset.Before(now) && b.until.Before(now) {
			delete(l.bucket, name)
		}
	}
}

// learn reads what the server says of its limits.
func (l *limiter) learn(q *request, h http.Header) {
	left, err := strconv.Atoi(h.Get("X-RateLimit-Remaining"))
	after, err2 := strconv.ParseFloat(h.Get("X-RateLimit-Reset-After"), 64)
	if err != nil || err2 != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if name := h.Get("X-RateLimit-Bucket"); name != "" && len(name) < 200 && len(l.names) < maxBuckets {
		l.names[q.key()] = name
	}
	b := l.find(q)
	reset := time.Now().Add(seconds(after) + resetSlack)
	if b.known && b.reset.After(time.Now()) {
		left = min(left, b.left) // others are on their way
	}
	b.known, b.left, b.reset = true, left, reset
}

// block obeys a refusal. A shared limit is not ours alone, but binds the same
// route.
func (l *limiter) block(q *request, e *apiError) {
	// A little more than told: the server's clock is not ours.
	until := time.Now().Add(e.after + rand.N(50*time.Millisecond))
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.global {
		l.until = later(l.until, until)
		return
	}
	b := l.find(q)
	b.until = later(b.until, until)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// sleep waits; false where ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// jitter is d, give or take a fifth.
func jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return d*4/5 + rand.N(d*2/5+1)
}
