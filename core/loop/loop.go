// Package loop repeats something in the background, after a time or when it is woken.
package loop

import (
	"context"
	"time"
)

// Notify puts a token into a channel that has room for one, unless there is one.
func Notify(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// Repeat calls do at once, again after the time that it returned, and whenever it is woken,
// until ctx ends. After a negative time it waits until it is woken.
func Repeat(ctx context.Context, wake <-chan struct{}, do func() time.Duration) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
		case <-wake:
		case <-timer.C:
		}
		if ctx.Err() != nil {
			return
		}
		wait := do()
		timer.Stop()
		if wait >= 0 {
			timer.Reset(wait)
		}
	}
}
