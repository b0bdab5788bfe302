package admin

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"synthbot/core"
	"synthbot/core/watch"
)

// Running knows the turns that run now. It implements watch.StageObserver. Safe for
// concurrent use.
type Running struct {
	mu    sync.Mutex
	turns map[core.TurnID]watch.TurnStage
	subs  map[chan struct{}]bool
}

// ObserveStage implements watch.StageObserver. It waits for nobody: whoever is slow is told
// once of all that changed meanwhile.
func (r *Running) ObserveStage(s watch.TurnStage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.Stage == watch.StageOver {
		delete(r.turns, s.Turn)
	} else {
		if r.turns == nil {
			r.turns = make(map[core.TurnID]watch.TurnStage)
		}
		r.turns[s.Turn] = s
	}
	for sub := range r.subs {
		select {
		case sub <- struct{}{}:
		default:
		}
	}
}

// Now returns the turns that run, the one that began first coming first.
func (r *Running) Now() []watch.TurnStage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.turns), func(a, b watch.TurnStage) int {
		return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.Turn.Path.String(), b.Turn.Path.String()), cmp.Compare(a.Turn.Seq, b.Turn.Seq))
	})
}

// Changes returns a channel that holds a token when Now has changed since the
// last one was taken. done ends it.
func (r *Running) Changes() (changes <-chan struct{}, done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.subs == nil {
		r.subs = make(map[chan struct{}]bool)
	}
	sub := make(chan struct{}, 1)
	r.subs[sub] = true
	return sub, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.subs, sub)
	}
}
