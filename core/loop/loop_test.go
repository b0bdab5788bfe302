package loop

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestRepeat: the function is called at once, again after the duration it returned, and when it is
// woken.
func TestRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		wake := make(chan struct{}, 1)
		began, over := time.Now(), make(chan struct{})
		var at []time.Duration
		go func() {
			defer close(over)
			waits := []time.Duration{time.Minute, -1, time.Second, -1}
			Repeat(ctx, wake, func() time.Duration {
				at = append(at, time.Since(began))
				return waits[len(at)-1]
			})
		}()
		time.Sleep(time.Hour)
		Notify(wake)
		time.Sleep(time.Hour)
		cancel()
		<-over
		if want := []time.Duration{0, time.Minute, time.Hour, time.Hour + time.Second}; !slices.Equal(at, want) {
			t.Errorf("unexpected times of the calls: %v", at)
		}
	})
}

// TestSleep: a pause ends with its time, or with the context; one of no time only asks the context.
func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		if !Sleep(ctx, time.Hour) || time.Since(began) != time.Hour || !Sleep(ctx, 0) || !Sleep(ctx, -time.Hour) {
			t.Errorf("pauses ended after %v", time.Since(began))
		}
		if Sleep(ctx, 2*time.Hour) || time.Since(began) != 2*time.Hour || Sleep(ctx, 0) || Sleep(ctx, time.Hour) {
			t.Errorf("the context ended after %v", time.Since(began))
		}
	})
}
