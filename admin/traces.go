package admin

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"synthbot/core"
	"synthbot/core/sorting"
	"synthbot/core/watch"
)

const (
	maxTraces  = 500
	maxPrompts = 20 // of the latest turns
)

// Traces keeps the latest turns in memory. It implements watch.Observer. Safe for concurrent use.
type Traces struct {
	mu   sync.Mutex
	last uint64         // the number of the newest
	ends []numberedTurn // the newest last
}

// numberedTurn is a turn with its number, which counts from 1.
type numberedTurn struct {
	watch.TurnEnd
	number uint64
}

// Observe implements watch.Observer.
func (t *Traces) Observe(e watch.TurnEnd) {
	if e.Turn.Seq == 0 || e.Trace == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if stale(&e) {
		return
	}
	t.last++
	t.ends = append(t.ends[max(len(t.ends)+1-maxTraces, 0):], numberedTurn{e, t.last})
	i := len(t.ends) - 1 - maxPrompts
	if i >= 0 {
		t.ends[i].Trace = withoutPrompts(t.ends[i].Trace)
	}
}

// Last returns the newest turn that match accepts.
func (t *Traces) Last(match func(*watch.TurnEnd) bool) (watch.TurnEnd, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range slices.Backward(t.ends) {
		if match(&k.TurnEnd) {
			return k.TurnEnd, true
		}
	}
	return watch.TurnEnd{}, false
}

// After returns the newest turns after a number, at most so many, the oldest first, and the number of the newest.
// Numbers count from 1.
func (t *Traces) After(number uint64, most int) (ends []watch.TurnEnd, last uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.ends {
		if k.number > number {
			ends = append(ends, k.TurnEnd)
		}
	}
	return ends[max(len(ends)-most, 0):], t.last
}

// stale reports whether a user of the turn was forgotten since it began.
func stale(e *watch.TurnEnd) bool { return e.Stale != nil && e.Stale() }

// Forget drops the turns of a place or a user, and the prompts and memories in all other turns, which
// may be about the user. Observe ignores stale turns that end later.
func (t *Traces) Forget(path core.Path) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ends = slices.DeleteFunc(t.ends, func(k numberedTurn) bool {
		return k.Turn.Path.Within(path) || k.Person == path || stale(&k.TurnEnd)
	})
	for i := range t.ends {
		bare := withoutPrompts(t.ends[i].Trace)
		bare.Memories = nil
		t.ends[i].Trace = bare
	}
}

// withoutPrompts returns a copy of a trace without the prompts. The trace is shared, so it must not change.
func withoutPrompts(t *watch.Trace) *watch.Trace {
	bare := *t
	bare.Asks = slices.Clone(t.Asks)
	for i := range bare.Asks {
		bare.Asks[i].Prompt = nil
	}
	return &bare
}

// Running lists the running turns. It implements watch.StageObserver. Safe for concurrent use.
type Running struct {
	mu    sync.Mutex
	turns map[core.TurnID]watch.TurnStage
}

// ObserveStage implements watch.StageObserver.
func (r *Running) ObserveStage(s watch.TurnStage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turns == nil {
		r.turns = make(map[core.TurnID]watch.TurnStage)
	}
	r.turns[s.Turn] = s
	if s.Stage == watch.StageOver {
		delete(r.turns, s.Turn)
	}
}

// Now returns the running turns, the oldest first.
func (r *Running) Now() []watch.TurnStage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return sorting.Sorted(maps.Values(r.turns), func(a, b watch.TurnStage) int {
		byPath := cmp.Compare(a.Turn.Path.String(), b.Turn.Path.String())
		return cmp.Or(a.Began.Compare(b.Began), byPath, cmp.Compare(a.Turn.Seq, b.Turn.Seq))
	})
}
