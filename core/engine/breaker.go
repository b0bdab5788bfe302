package engine

import (
	"slices"
	"time"

	"synthbot/core"
)

const (
	tripAfter = 4                // failures in a row after which an engine is left alone
	tripFor   = 30 * time.Second // for so long
)

// Health is what the last calls say about an engine.
type Health int

const (
	HealthGood Health = iota
	HealthSome        // what the same people asked failed, call after call: it is left alone for them
	HealthBad         // calls of different people failed in a row: it is left alone
)

// breaker counts the calls of an engine that failed in a row, and says when the
// engine is left alone. As long as the same people caused all of these calls,
// their requests may be the reason, so the engine is left alone for them only.
type breaker struct {
	failed   int
	suspects []core.Path // the people who caused every one of these calls
	until    time.Time
}

// open reports whether the engine is left alone for what these people ask.
func (b *breaker) open(people []core.Path, now time.Time) bool {
	return b.countsAgainst(people) && now.Before(b.until)
}

// countsAgainst reports whether the failures count against what these people ask.
func (b *breaker) countsAgainst(people []core.Path) bool {
	innocent := func(p core.Path) bool { return !slices.Contains(b.suspects, p) }
	return b.failed >= tripAfter && (len(b.suspects) == 0 || len(people) > 0 && !slices.ContainsFunc(people, innocent))
}

// health says for whom the engine is left alone.
func (b *breaker) health() Health {
	switch {
	case b.failed < tripAfter:
		return HealthGood
	case len(b.suspects) > 0:
		return HealthSome
	}
	return HealthBad
}

// fail notes that a call failed.
func (b *breaker) fail(people []core.Path, now time.Time) {
	if b.failed == 0 {
		b.suspects = slices.Clone(people)
	}
	b.suspects = slices.DeleteFunc(b.suspects, func(p core.Path) bool { return !slices.Contains(people, p) })
	b.failed++
	b.until = now.Add(tripFor)
}
