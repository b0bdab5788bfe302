package turn

import (
	"fmt"
	"testing"
	"time"

	"synthbot/core"
)

// numbered returns the path of room i.
func numbered(i int) core.Path { return core.MustPath(fmt.Sprint("room/", i)) }

// TestAttentionIsBounded: at most maxPlaces places are remembered. The ones unused for longest are
// dropped first.
func TestAttentionIsBounded(t *testing.T) {
	now := time.Now()
	a := &New(Options{}).attention
	silent, busy := numbered(-1), numbered(-2)
	at := func(place core.Path) (found *placeAttention) {
		a.with(place, now, func(e *placeAttention) { found = e })
		return found
	}
	at(silent).since = 7
	at(busy).since = 7
	for i := range maxPlaces {
		at(numbered(i))
		at(busy)
	}
	if n := a.places.Len(); n > maxPlaces {
		t.Errorf("%d places are remembered, want at most %d", n, maxPlaces)
	}
	if at(busy).since != 7 || at(silent).since != 0 {
		t.Error("the busy place was dropped or the silent one kept")
	}
}

// TestLimitsAreBounded: at most maxLimited users are remembered. The ones unused for longest are
// dropped first.
func TestLimitsAreBounded(t *testing.T) {
	now := time.Now()
	a := &New(Options{}).limiter
	for i := range maxLimited {
		a.claimNotice([]core.Path{numbered(i)}, now)
		if a.mayNotify(numbered(0), now) {
			t.Fatalf("a recent user was dropped after %d others", i)
		}
	}
	if n := a.people.Len(); n > maxLimited {
		t.Errorf("%d users are remembered, want at most %d", n, maxLimited)
	}
}
