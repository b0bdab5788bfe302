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

// tracesMax is how many turns are kept.
const tracesMax = 500

// promptsMax is how many of the latest turns are kept with their prompts.
const promptsMax = 20

// Traces keeps the latest turns in memory. It implements watch.Observer. Safe for concurrent use.
type Traces struct {
	mu   sync.Mutex
	ends []watch.TurnEnd // the newest last
	subs subscribers[watch.TurnEnd]
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
	t.ends = append(t.ends[max(len(t.ends)+1-tracesMax, 0):], e)
	i := len(t.ends) - 1 - promptsMax
	if i >= 0 {
		t.ends[i].Trace = promptless(t.ends[i].Trace)
	}
	t.subs.publish(e)
}

// Last returns the newest turn that match accepts.
func (t *Traces) Last(match func(*watch.TurnEnd) bool) (watch.TurnEnd, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.ends {
		e := &t.ends[len(t.ends)-1-i]
		if match(e) {
			return *e, true
		}
	}
	return watch.TurnEnd{}, false
}

// Recent returns the newest turns, at most n, newest first.
func (t *Traces) Recent(n int) []watch.TurnEnd {
	var list []watch.TurnEnd
	t.Last(func(e *watch.TurnEnd) bool {
		list = append(list, *e)
		return len(list) >= n
	})
	return list
}

// Subscribe returns a channel of the turns that end from now on. It drops turns that the
// channel has no room for. done ends the subscription.
func (t *Traces) Subscribe(room int) (ends <-chan watch.TurnEnd, done func()) {
	return t.subs.subscribe(room)
}

// stale reports whether a user of the turn was forgotten since it began.
func stale(e *watch.TurnEnd) bool { return e.Stale != nil && e.Stale() }

// Forget drops the turns of a place or a user, and the prompts and memories in all other turns, which
// may be about the user. Observe ignores stale turns that end later.
func (t *Traces) Forget(path core.Path) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ends = slices.DeleteFunc(t.ends, func(e watch.TurnEnd) bool {
		return e.Turn.Path.Within(path) || e.Person == path || stale(&e)
	})
	for i := range t.ends {
		bare := promptless(t.ends[i].Trace)
		bare.Memories = nil
		t.ends[i].Trace = bare
	}
}

// promptless returns a copy of a trace, which is shared, without the prompts.
func promptless(t *watch.Trace) *watch.Trace {
	bare := *t
	bare.Asks = slices.Clone(t.Asks)
	for i := range bare.Asks {
		bare.Asks[i].Prompt = nil
	}
	return &bare
}

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
	return sorting.Sorted(maps.Values(r.turns), func(a, b watch.TurnStage) int {
		byPath := cmp.Compare(a.Turn.Path.String(), b.Turn.Path.String())
		return cmp.Or(a.Began.Compare(b.Began), byPath, cmp.Compare(a.Turn.Seq, b.Turn.Seq))
	})
}

// Changes returns a channel that holds a token if Now has changed since the last token was
// taken. done ends the subscription.
func (r *Running) Changes() (changes <-chan struct{}, done func()) { return r.changes.subscribe(1) }

// subscribers are channels that receive what is published. Safe for concurrent use.
type subscribers[T any] struct {
	mu  sync.Mutex
	all map[chan T]bool
}

// subscribe returns a channel with room for n values. done ends the subscription.
func (s *subscribers[T]) subscribe(n int) (_ <-chan T, done func()) {
	c := make(chan T, n)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make(map[chan T]bool)
	}
	s.all[c] = true
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.all, c)
	}
}

// publish sends a value to each channel that has room. It does not block.
func (s *subscribers[T]) publish(value T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.all {
		select {
		case c <- value:
		default:
		}
	}
}
