package admin

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"synthbot/core"
	"synthbot/core/watch"
)

// Running lists the running turns. It implements watch.StageObserver. Safe for concurrent use.
type Running struct {
	mu      sync.Mutex
	turns   map[core.TurnID]watch.TurnStage
	changes subscribers[struct{}]
}

// ObserveStage implements watch.StageObserver.
func (r *Running) ObserveStage(s watch.TurnStage) {
	r.mu.Lock()
	if r.turns == nil {
		r.turns = make(map[core.TurnID]watch.TurnStage)
	}
	r.turns[s.Turn] = s
	if s.Stage == watch.StageOver {
		delete(r.turns, s.Turn)
	}
	r.mu.Unlock()
	r.changes.publish(struct{}{})
}

// Now returns the running turns, the oldest first.
func (r *Running) Now() []watch.TurnStage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.turns), func(a, b watch.TurnStage) int {
		byPath := cmp.Compare(a.Turn.Path.String(), b.Turn.Path.String())
		return cmp.Or(a.Began.Compare(b.Began), byPath, cmp.Compare(a.Turn.Seq, b.Turn.Seq))
	})
}

// Changes returns a channel that holds a token if Now has changed since the last token was
// taken. done ends the subscription.
func (r *Running) Changes() (changes <-chan struct{}, done func()) { return r.changes.subscribe(1) }
