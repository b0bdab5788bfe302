package action

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/cenkalti/backoff/v5"

	"synthbot/core"
)

var errTimeout = errors.New("the time is up")

func (r *Runtime) timeout(d *Definition) time.Duration {
	if d.Timeout > 0 {
		return d.Timeout
	}
	return r.Timeout
}

// try calls Do, again and again while that makes sense. release is called when
// the last call has really ended, which may be later.
func (e *execution) try(ctx context.Context, d *Definition, c core.Call, release func()) (result core.Result, tries int, err error) {
	pauses := backoff.NewExponentialBackOff()
	for tries = 1; ; tries++ {
		ended := make(chan struct{})
		result, err = e.once(ctx, d, c, ended)
		pause, again := pauseAfter(err, pauses.NextBackOff(), repeatable(d))
		again = again && tries <= d.Retries && pause <= maxWait && isClosed(ended)
		if again {
			e.log.Info("action tried again", "action", d.Name, "retry_in", pause, "err", err)
			again = sleep(ctx, pause)
		}
		if !again {
			e.leave(ended, release)
			return result, tries, err
		}
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// leave releases what a call held: now, or when it comes to its end after all.
func (r *Runtime) leave(ended chan struct{}, release func()) {
	if isClosed(ended) {
		release()
		return
	}
	r.strays.Go(func() { <-ended; release() })
}

// pauseAfter says whether an error is worth another try, and when.
func pauseAfter(err error, pause time.Duration, repeatable bool) (time.Duration, bool) {
	if errors.Is(err, errTimeout) {
		return pause, repeatable
	}
	var e *core.Error
	if !errors.As(err, &e) {
		return 0, false
	}
	switch e.Kind {
	case core.Temporary:
		return max(pause, e.After), true
	case core.Occupied:
		return max(pause, e.After), e.After > 0
	}
	return 0, false
}

// sleep reports whether it slept to its end.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// once calls Do one time. Do that does not end with its context is left behind:
// ended is closed when it has.
func (e *execution) once(ctx context.Context, d *Definition, c core.Call, ended chan struct{}) (core.Result, error) {
	within, cancel := context.WithTimeout(ctx, e.timeout(d))
	defer cancel()
	var result core.Result
	var err error
	e.strays.Go(func() {
		defer close(ended)
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
			}
		}()
		result, err = d.Do(within, c)
	})
	if !e.await(within, ended) {
		e.log.Error("action does not end though its time is up", "action", d.Name)
		return core.Result{}, errTimeout
	}
	if err != nil && within.Err() != nil && timeoutLike(err) {
		return core.Result{}, fmt.Errorf("%w: %w", errTimeout, err)
	}
	return result, err
}

// await waits for the call, and a while longer than its context.
func (e *execution) await(ctx context.Context, ended chan struct{}) bool {
	select {
	case <-ended:
		return true
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
		return false
	}
}

// timeoutLike reports whether an error leaves it open what was done.
func timeoutLike(err error) bool {
	var e *core.Error
	if !errors.As(err, &e) {
		return true
	}
	return e.Kind == core.Temporary || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// worded sorts an error, and says it in words that are fit for people. What is
// no *core.Error was not written for them.
func worded(err error) (core.ErrorKind, string) {
	var e *core.Error
	switch {
	case errors.As(err, &e):
		return e.Kind, e.Text
	case errors.Is(err, errTimeout):
		return core.Temporary, "it took too long"
	}
	return core.Broken, "it did not work"
}

// span writes a duration for people.
func span(d time.Duration) string {
	if d < time.Minute {
		return max(d, time.Second).Round(time.Second).String()
	}
	return d.Round(time.Minute).String()
}
