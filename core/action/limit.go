package action

import (
	"context"
	"slices"
	"sync"
	"time"

	"synthbot/core"
)

// persons are the people whose limits count. Turns that nobody caused share one limit.
func (w Requester) persons() []string {
	ids := make([]string, 0, len(w.Authors))
	for i := range w.Authors {
		ids = append(ids, w.Path.Interface()+"/"+w.Authors[i].ID)
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

// sweep drops, once an hour, the uses that no limit counts any more.
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

// locks lets one call at a time through for each action and person, in the order in which
// they came. Its zero value is ready.
type locks struct {
	mu   sync.Mutex
	last map[use]chan struct{} // of the latest call; closed when it is over
}

// enter waits for the calls of a busy action that came before, or refuses the call. release
// must be called once.
func (e *execution) enter(ctx context.Context, d *Definition) (release func(), err error) {
	if d.Busy == "" {
		return func() {}, nil
	}
	var unlocks []func()
	release = func() {
		for _, unlock := range unlocks {
			unlock()
		}
	}
	for _, p := range e.Who.persons() { // sorted: two calls never wait for each other
		unlock, err := e.locks.lock(ctx, use{d.Name, p}, d.Busy == core.BusyQueue)
		if err != nil {
			release()
			return nil, err
		}
		unlocks = append(unlocks, unlock)
	}
	return release, nil
}

func (l *locks) lock(ctx context.Context, k use, wait bool) (func(), error) {
	l.mu.Lock()
	before := l.last[k]
	if before != nil && !wait {
		l.mu.Unlock()
		return nil, core.Errorf(core.Occupied, "%s is still at work on the last request", k.action)
	}
	mine := make(chan struct{})
	if l.last == nil {
		l.last = make(map[use]chan struct{})
	}
	l.last[k] = mine
	l.mu.Unlock()
	unlock := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		close(mine)
		if l.last[k] == mine {
			delete(l.last, k)
		}
	}
	if before == nil {
		return unlock, nil
	}
	select {
	case <-before:
		return unlock, nil
	case <-ctx.Done():
		go func() { <-before; unlock() }() // those behind still wait for the one before
		return nil, ctx.Err()
	}
}
