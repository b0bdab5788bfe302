package rest

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// TestPaceStaysBelowTheGlobalLimit: at most globalRate requests are sent within globalTime, in bursts.
func TestPaceStaysBelowTheGlobalLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(true)
		begun := time.Now()
		var at []time.Time
		for range 5 * globalRate {
			q := &Request{Method: "GET", Route: "/x"}
			if err := l.enter(t.Context(), q); err != nil {
				t.Fatal(err)
			}
			at = append(at, time.Now())
		}
		for i := range at[globalRate:] {
			if d := at[i+globalRate].Sub(at[i]); d < globalTime {
				t.Fatalf("request %d came %v after the one %d before it", i+globalRate, d, globalRate)
			}
		}
		if took := time.Since(begun); took > 5*globalTime {
			t.Errorf("took %v, want at most %v, because bursts are allowed", took, 5*globalTime)
		}
	})
}

// TestLimiterHonoursTheServer: requests wait for the limits that the server announces. Answers to
// interactions do not wait.
func TestLimiterHonoursTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(false)
		head := http.Header{}
		for k, v := range map[string]string{"X-RateLimit-Bucket": "b", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": "2.5"} {
			head.Set(k, v)
		}
		here := &Request{Method: "POST", Route: "/channels/{}/messages", IDs: []string{"1"}}
		there := &Request{Method: "POST", Route: "/channels/{}/messages", IDs: []string{"2"}}
		begun := time.Now()
		l.learn(here, head)
		if _ = l.enter(t.Context(), there); time.Since(begun) != 0 {
			t.Errorf("another channel waited %v, want no wait", time.Since(begun))
		}
		if _ = l.enter(t.Context(), here); time.Since(begun) < 2500*time.Millisecond {
			t.Errorf("waited %v, want at least 2.5s", time.Since(begun))
		}
		l.block(here, &Error{After: time.Hour, Global: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := l.enter(ctx, there); err == nil {
			t.Error("a request passed a global limit")
		}
		fast := &Request{Method: "POST", Route: "/interactions/{}/{}/callback", IDs: []string{"1", "2"}, Fast: true}
		before := time.Now()
		if err := l.enter(t.Context(), fast); err != nil || time.Since(before) != 0 {
			t.Errorf("an interaction waited %v, %v, want no wait", time.Since(before), err)
		}
	})
}
