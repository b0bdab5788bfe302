package action

import (
	"context"
	"slices"
	"sync"
	"time"

	"synthbot/core"
)

// persons are those whom limits are kept for; turns that nobody caused share
// one.
func (e *execution) persons() []string {
	ids := make([]string, 0, len(e.Who.Authors))
	for i := range e.Who.Authors {
		ids = append(ids, e.Who.Path.Interface()+"/"+e.Who.Authors[i].ID)
	}
	slices.Sort(ids)
	return slices.Compact(append(ids, ""))[:max(1, len(ids))]
}

type use struct{ action, person string }

// rates remembers when actions were used. Its zero value is ready.
type rates struct {
	mu      sync.Mutex
	used    map[use][]time.Time
	swept   time.Time
	longest time.Duration // of all limits
}

// take counts one use for each of the persons, or says how long to wait.
func (r *rates) take(d *Definition, persons []string, now time.Time) (wait time.Duration, ok bool) {
	limit := d.RateLimit
	if limit.Count <= 0 {
		return 0, true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.longest = max(r.longest, limit.Per)
	r.sweep(now)
	for _, p := range persons {
		times := r.used[use{d.Name, p}]
		times = slices.DeleteFunc(times, func(t time.Time) bool { return now.Sub(t) >= limit.Per })
		r.used[use{d.Name, p}] = times
		if len(times) >= limit.Count {
			wait = max(wait, limit.Per-now.Sub(times[len(times)-limit.Count]))
		}
	}
	if wait > 0 {
		return wait, false
	}
	for _, p := range persons {
		r.used[use{d.Name, p}] = append(r.used[use{d.Name, p}], now)
	}
	return 0, true
}

// sweep forgets, now and then, uses that no limit counts any more.
func (r *rates) sweep(now time.Time) {
	if r.used == nil {
		r.used = make(map[use][]time.Time)
	}
	if now.Sub(r.swept) < time.Hour {
		return
	}
	r.swept = now
	for k, times := range r.used {
		if len(times) == 0 || now.Sub(times[len(times)-1]) >= r.longest {
			delete(r.used, k)
		}
	}
}

// locks lets one call at a time through, for each action and person. Its zero
// value is ready.
type locks struct {
	mu   sync.Mutex
	held map[use]*lock
}

type lock struct {
	token chan struct{} // full: somebody is inside
	users int
}

// enter waits for, or refuses, a call of an action that is busy. release must
// be called once.
func (e *execution) enter(ctx context.Context, d *Definition) (release func(), err error) {
	if d.Busy == core.BusyParallel {
		return func() {}, nil
	}
	var keys []use
	undo := func() {
		for _, k := range keys {
			e.locks.unlock(k)
		}
	}
	for _, p := range e.persons() { // sorted: two calls never wait for each other
		k := use{d.Name, p}
		if err := e.locks.lock(ctx, k, d.Busy == core.BusyQueue); err != nil {
			undo()
			return nil, err
		}
		keys = append(keys, k)
	}
	return undo, nil
}

func (l *locks) lock(ctx context.Context, k use, wait bool) error {
	h := l.share(k)
	select {
	case h.token <- struct{}{}:
		return nil
	default:
	}
	if !wait {
		l.drop(k)
		return core.Errorf(core.Occupied, "%s is still at work on the last request", k.action)
	}
	select {
	case h.token <- struct{}{}:
		return nil
	case <-ctx.Done():
		l.drop(k)
		return ctx.Err()
	}
}

func (l *locks) unlock(k use) {
	l.mu.Lock()
	h := l.held[k]
	l.mu.Unlock()
	<-h.token
	l.drop(k)
}

func (l *locks) share(k use) *lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = make(map[use]*lock)
	}
	h := l.held[k]
	if h == nil {
		h = &lock{token: make(chan struct{}, 1)}
		l.held[k] = h
	}
	h.users++
	return h
}

func (l *locks) drop(k use) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.held[k]; h != nil {
		if h.users--; h.users == 0 {
			delete(l.held, k)
		}
	}
}
