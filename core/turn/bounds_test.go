package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"synthbot/core"
)

func numbered(i int) core.Path { return core.MustPath(fmt.Sprint("room/", i)) }

// TestEarsAreBounded checks that silent places are dropped first, and all places if none is silent.
func TestEarsAreBounded(t *testing.T) {
	now := time.Now()
	var a attention
	silent, edge := numbered(-1), numbered(-2)
	a.at(silent, now.Add(-silentAfter-1))
	a.at(edge, now.Add(-silentAfter)).since = 7
	for i := range maxPlaces - 2 {
		a.at(numbered(i), now)
	}
	if len(a.places) != maxPlaces || a.places[silent] == nil {
		t.Fatalf("%d places before the limit is reached", len(a.places))
	}
	a.at(numbered(0), now) // a known place needs no room
	if a.places[silent] == nil {
		t.Error("a known place drops another one")
	}
	a.at(numbered(maxPlaces), now)
	if len(a.places) != maxPlaces || a.places[silent] != nil || a.at(edge, now).since != 7 {
		t.Errorf("%d places are left of %d; the silent one: %v", len(a.places), maxPlaces, a.places[silent])
	}
	a.at(numbered(maxPlaces+1), now)
	if len(a.places) != 1 {
		t.Errorf("%d places are left where none was silent", len(a.places))
	}
}

// TestPaceIsBounded checks that the limits of known users are kept up to the bound.
func TestPaceIsBounded(t *testing.T) {
	now := time.Now()
	var a limiter
	for i := range maxLimited {
		a.notice([]core.Path{numbered(i)}, now)
	}
	if len(a.people) != maxLimited || a.mayNotice(numbered(0), now) {
		t.Fatalf("%d people are known, want %d", len(a.people), maxLimited)
	}
	a.mayNotice(numbered(maxLimited), now)
	if len(a.people) != 1 {
		t.Errorf("%d people are known above the bound", len(a.people))
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
	var kept injectionCache
	asked := 0
	now := time.Now()
	inject := func(i int, at time.Time) {
		t.Helper()
		if _, err := kept.inject(t.Context(), hourly{&asked}, core.Scene{Path: numbered(i), Now: at}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range maxInjections {
		inject(i, now)
	}
	inject(0, now.Add(time.Hour-1))
	if asked != maxInjections || len(kept.values) != maxInjections {
		t.Errorf("asked %d times, %d values are kept; want %d", asked, len(kept.values), maxInjections)
	}
	inject(0, now.Add(time.Hour)) // replacing a value drops all at the bound
	inject(1, now)
	if asked != maxInjections+2 || len(kept.values) != 2 {
		t.Errorf("asked %d times, %d values are kept above the bound", asked, len(kept.values))
	}
}
