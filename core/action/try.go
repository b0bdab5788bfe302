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

// safely calls code of a plugin. A panic in it is its error.
func safely(call func() error) (err error) {
	defer func() {
		r := recover()
		if r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return call()
}

func (r *Runtime) timeout(d *Definition) time.Duration {
	if d.Timeout > 0 {
		return d.Timeout
	}
	return r.Timeout
}

// try calls Do, and again if that may help. It calls release when the last call has ended,
// which may be later.
func (e *execution) try(
	ctx context.Context, d *Definition, c core.Call, release func(),
) (result core.Result, tries int, err error) {
	pauses := backoff.NewExponentialBackOff()
	for tries = 1; ; tries++ {
		ended := make(chan struct{})
		result, err = e.callOnce(ctx, d, c, ended)
		pause, again := pauseAfter(err, pauses.NextBackOff(), isRepeatable(d))
		again = again && tries <= d.Retries && pause <= maxPause && isClosed(ended)
		if again {
			e.log.Info("action tried again", "action", d.Name, "retry_in", pause, "err", err)
			again = sleep(ctx, pause)
		}
		switch {
		case again:
			continue
		case isClosed(ended):
			release()
		default:
			e.overdue.Go(func() { <-ended; release() })
		}
		return result, tries, err
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

// pauseAfter returns whether an error is worth another try, and after how long.
func pauseAfter(err error, pause time.Duration, repeatable bool) (time.Duration, bool) {
	if errors.Is(err, errTimeout) {
		return pause, repeatable
	}
	var e *core.Error
	if !errors.As(err, &e) {
		return 0, false
	}
	return max(pause, e.After), e.Kind == core.Temporary || e.Kind == core.Occupied && e.After > 0
}

// sleep returns false if ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// callOnce calls Do one time. It closes ended when Do has ended, and does not wait much
// longer than the context for that.
func (e *execution) callOnce(
	ctx context.Context, d *Definition, c core.Call, ended chan struct{},
) (core.Result, error) {
	within, cancel := context.WithTimeout(ctx, e.timeout(d))
	defer cancel()
	var result core.Result
	var err error
	e.overdue.Go(func() {
		defer close(ended)
		err = safely(func() (err error) {
			result, err = d.Do(within, c)
			return err
		})
	})
	select {
	case <-ended:
	case <-within.Done():
		select {
		case <-ended:
		case <-time.After(grace):
			e.log.Error("action does not end though its time is up", "action", d.Name)
			return core.Result{}, errTimeout
		}
	}
	if err != nil && within.Err() != nil && isUncertain(err) {
		return core.Result{}, fmt.Errorf("%w: %w", errTimeout, err)
	}
	return result, err
}

// isUncertain reports whether after the error of a call that ran out of time it is unknown
// what was done.
func isUncertain(err error) bool {
	var e *core.Error
	if !errors.As(err, &e) {
		return true
	}
	return e.Kind == core.Temporary || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// userText returns the kind of an error, and a text for users. Other errors than
// *core.Error were not written for them.
func userText(err error) (core.ErrorKind, string) {
	var e *core.Error
	switch {
	case errors.As(err, &e):
		return e.Kind, e.Text
	case errors.Is(err, errTimeout):
		return core.Temporary, "it took too long"
	}
	return core.Broken, "it did not work"
}
