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

// callUndo takes a call back.
func (r *Runtime) callUndo(ctx context.Context, d *Definition, c core.Call, done core.Result) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout(d))
	defer cancel()
	return safely(func() error { return d.Undo(ctx, c, done) })
}

// try calls Do, and again if that may help. It calls release when the last call has ended,
// which may be later.
func (e *execution) try(
	ctx context.Context, d *Definition, c core.Call, release func(),
) (result core.Result, tries int, err error) {
	pauses := backoff.NewExponentialBackOff()
	for tries = 1; ; tries++ {
		var running <-chan struct{}
		result, running, err = e.callOnce(ctx, d, c)
		if running != nil {
			e.overdue.Go(func() { <-running; release() })
			return result, tries, err
		}
		if err == nil || tries > d.Retries || !e.pause(ctx, d, pauses.NextBackOff(), err) {
			release()
			return result, tries, err
		}
	}
}

// pause waits before a call is tried again. It returns false if it is not worth that, or if ctx
// ends.
func (e *execution) pause(ctx context.Context, d *Definition, pause time.Duration, err error) bool {
	again := isRepeatable(d)
	if !errors.Is(err, errTimeout) {
		var known *core.Error
		if !errors.As(err, &known) {
			return false
		}
		again = known.Kind == core.Temporary || known.Kind == core.Occupied && known.After > 0
		pause = max(pause, known.After)
	}
	if !again || pause > maxPause {
		return false
	}
	e.log.Info("action tried again", "action", d.Name, "retry_in", pause, "err", err)
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}

// callOnce calls Do one time, and does not wait much longer for it than its time. running is nil
// if Do has ended, and else closed when it has.
func (e *execution) callOnce(
	ctx context.Context, d *Definition, c core.Call,
) (result core.Result, running <-chan struct{}, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout(d))
	defer cancel()
	var done core.Result
	var failure error
	ended := make(chan struct{})
	e.overdue.Go(func() {
		defer close(ended)
		failure = safely(func() (err error) {
			done, err = d.Do(ctx, c)
			return err
		})
	})
	select {
	case <-ended:
	case <-ctx.Done():
		select {
		case <-ended:
		case <-time.After(grace):
			e.log.Error("action does not end though its time is up", "action", d.Name)
			return result, ended, errTimeout
		}
	}
	if failure != nil && ctx.Err() != nil && isUncertain(failure) {
		return result, nil, fmt.Errorf("%w: %w", errTimeout, failure)
	}
	return done, nil, failure
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
