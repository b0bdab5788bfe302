package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"synthbot/core"
)

var errTimeout = errors.New("timed out")

// catch turns a panic in code of a plugin into an error. It is deferred.
func catch(err *error) {
	r := recover()
	if r != nil {
		*err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
	}
}

// callBounded calls code of an action, with the time limit of one try.
func (r *Runtime) callBounded(ctx context.Context, d *Definition, call func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(d.Timeout, tryTime))
	defer cancel()
	defer catch(&err)
	return call(ctx)
}

// pause waits before a call is tried again. It returns false if the error does not allow another try, or if ctx ends.
func (e *execution) pause(ctx context.Context, d *Definition, pause time.Duration, err error) bool {
	again := isRepeatable(d)
	if !errors.Is(err, errTimeout) {
		known, ok := errors.AsType[*core.Error](err)
		if !ok {
			return false
		}
		again = known.Kind == core.Temporary || known.Kind == core.Occupied && known.After > 0
		pause = max(pause, known.After)
	}
	if !again || pause > maxPause {
		return false
	}
	e.log().Info("action tried again", "action", d.Name, "retry_in", pause, "err", err)
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}

// callOnce calls Do, and waits until grace after its time limit. running is nil if Do has ended, else closed then.
func (e *execution) callOnce(
	ctx context.Context, d *Definition, c core.Call,
) (result core.Result, running <-chan struct{}, err error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(d.Timeout, tryTime))
	defer cancel()
	var done core.Result
	var failure error
	ended := make(chan struct{})
	e.overdue.Go(func() {
		defer close(ended)
		defer catch(&failure)
		done, failure = d.Do(ctx, c)
	})
	select {
	case <-ended:
	case <-ctx.Done():
		select {
		case <-ended:
		case <-time.After(grace):
			e.log().Error("action does not end after its time limit", "action", d.Name)
			return result, ended, errTimeout
		}
	}
	if failure != nil && ctx.Err() != nil && isUncertain(failure) {
		return result, nil, fmt.Errorf("%w: %w", errTimeout, failure)
	}
	return done, nil, failure
}

// isUncertain reports whether it is unknown, after this error of a call that ran out of time, what was done.
func isUncertain(err error) bool {
	e, ok := errors.AsType[*core.Error](err)
	ended := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	return !ok || e.Kind == core.Temporary || ended
}

// UserText returns the kind of an error, and a text for users: that of a *core.Error, else a general one.
func UserText(err error) (core.ErrorKind, string) {
	if e, ok := errors.AsType[*core.Error](err); ok {
		return e.Kind, e.Text
	}
	if errors.Is(err, errTimeout) {
		return core.Temporary, "it took too long"
	}
	return core.Broken, "it did not work"
}

// users returns the sorted paths of those whose limits count. Turns that nobody caused share one limit, under "".
func (w Requester) users() []string {
	paths := make([]string, max(1, len(w.Authors)))
	for i := range w.Authors {
		path, _ := w.Path.Person(w.Authors[i].ID)
		paths[i] = path.String()
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

type use struct{ action, person string }

// usesKept is how long uses are kept at least: Used does not know the limits.
const usesKept = 24 * time.Hour

type rates struct {
	mu      sync.Mutex
	used    map[use][]time.Time
	swept   time.Time
	longest time.Duration // of all limits
}

// take counts one use for each of the users, if it returns 0; otherwise it returns how long to wait.
func (r *rates) take(d *Definition, users []string, now time.Time) (wait time.Duration) {
	limit := d.RateLimit
	r.mu.Lock()
	defer r.mu.Unlock()
	r.longest = max(r.longest, limit.Per)
	r.sweep(now)
	for _, p := range users {
		times := r.used[use{d.Name, p}]
		times = slices.DeleteFunc(times, func(t time.Time) bool { return now.Sub(t) >= limit.Per })
		r.used[use{d.Name, p}] = times
		if len(times) >= limit.Count {
			wait = max(wait, limit.Per-now.Sub(times[len(times)-limit.Count]))
		}
	}
	if wait > 0 {
		return wait
	}
	for _, p := range users {
		r.used[use{d.Name, p}] = append(r.used[use{d.Name, p}], now)
	}
	return 0
}

// Used counts a use of an action in another process, where Options.Used was called.
func (r *Runtime) Used(by core.Path, action string) {
	now := r.Clock()
	r.rates.mu.Lock()
	defer r.rates.mu.Unlock()
	r.rates.sweep(now)
	key := use{action, by.String()}
	r.rates.used[key] = append(r.rates.used[key], now)
}

// sweep drops, once an hour, the uses that no limit counts any more.
func (r *rates) sweep(now time.Time) {
	if now.Sub(r.swept) < time.Hour {
		return
	}
	r.swept = now
	for k, times := range r.used {
		if len(times) == 0 || now.Sub(times[len(times)-1]) >= max(r.longest, usesKept) {
			delete(r.used, k)
		}
	}
}

// locks lets one call at a time run for each action and person, in the order in which they came.
type locks struct {
	mu   sync.Mutex
	last map[use]chan struct{} // of the latest call; closed when it is over
}

// lockBusy waits for earlier calls of a busy action, or refuses the call. release must be called once.
func (e *execution) lockBusy(ctx context.Context, d *Definition) (release func(), err error) {
	if d.Busy == "" {
		return func() {}, nil
	}
	var unlocks []func()
	release = func() {
		for _, unlock := range unlocks {
			unlock()
		}
	}
	for _, p := range e.Who.users() { // sorted: two calls never wait for each other
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
		return nil, core.Errorf(core.Occupied, "%s is still working on the last request", k.action)
	}
	mine := make(chan struct{})
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
		go func() { <-before; unlock() }() // later calls wait for the earlier one, too
		return nil, ctx.Err()
	}
}
