package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/recent"
)

func numbered(i int) core.Path { return core.MustPath(fmt.Sprint("room/", i)) }

// TestAttentionIsBounded checks that the places where something was said lately stay.
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
		t.Errorf("%d places are remembered, at most %d", n, maxPlaces)
	}
	if at(busy).since != 7 || at(silent).since != 0 {
		t.Error("not the silent place is dropped")
	}
}

// TestLimitsAreBounded checks that the limits of users who were seen lately stay.
func TestLimitsAreBounded(t *testing.T) {
	now := time.Now()
	a := &New(Options{}).limiter
	for i := range maxLimited {
		a.notice([]core.Path{numbered(i)}, now)
		if a.mayNotice(numbered(0), now) {
			t.Fatalf("a known user is dropped after %d others", i)
		}
	}
	if n := a.people.Len(); n > maxLimited {
		t.Errorf("%d people are known, at most %d", n, maxLimited)
	}
}

// hourly is an injector whose values hold for an hour.
type hourly struct{ asked *int }

func (h hourly) Lasts() time.Duration { return time.Hour }

func (h hourly) Inject(context.Context, core.Scene) (json.RawMessage, error) {
	*h.asked++
	return json.RawMessage(`1`), nil
}

// TestInjectionsAreBounded checks that values are kept up to the bound, each for its time.
func TestInjectionsAreBounded(t *testing.T) {
	kept := recent.NewShared[injectedKey, injectedValue](maxInjections / 2)
	asked := 0
	now := time.Now()
	ask := func(i int, at time.Time) {
		t.Helper()
		if _, err := inject(t.Context(), kept, hourly{&asked}, core.Scene{Path: numbered(i), Now: at}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range maxInjections {
		ask(i, now)
	}
	if asked != maxInjections {
		t.Errorf("asked %d times", asked)
	}
	ask(maxInjections-1, now.Add(time.Hour-1))
	if asked != maxInjections {
		t.Error("a value that holds is asked for again")
	}
	ask(maxInjections-1, now.Add(time.Hour))
	ask(0, now) // the first one gave way to later ones
	if asked != maxInjections+2 {
		t.Errorf("asked %d times; a value is kept for too long", asked)
	}
}
