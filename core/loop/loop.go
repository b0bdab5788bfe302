// Package loop pauses, and repeats work in the background, after a pause or when it is woken.
package loop

import (
	"context"
	"time"
)

// Notify puts a token into a channel of capacity one, unless it has one already.
func Notify(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// Sleep waits for d. It returns false if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Repeat calls do at once, then again after the pause that do returned and whenever wake
// has a token, until ctx ends. After a negative pause it waits for a token.
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
