package admin

import (
	"sync"

	"synthbot/core"
	"synthbot/core/watch"
)

// tracesMax is how many turns are remembered.
const tracesMax = 500

// Traces remembers the latest turns, for as long as the process lives. It
// implements watch.Observer. Safe for concurrent use.
type Traces struct {
	mu   sync.Mutex
	ends []watch.TurnEnd // a ring
	next int
	subs map[chan watch.TurnEnd]bool
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
	if len(t.ends) < tracesMax {
		t.ends = append(t.ends, e)
	} else {
		t.ends[t.next] = e
	}
	t.next = (t.next + 1) % tracesMax
	for sub := range t.subs {
		select {
		case sub <- e:
		default: // who is slow misses something; turns wait for nobody
		}
	}
}

// Last returns the newest turn that meant accepts.
func (t *Traces) Last(meant func(*watch.TurnEnd) bool) (watch.TurnEnd, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.ends {
		e := &t.ends[(t.next-1-i+2*len(t.ends))%len(t.ends)]
		if e.Trace != nil && meant(e) { // else it was forgotten
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

// Subscribe returns a channel of the turns that end from now on; what it has no
// room for is left out. done ends it.
func (t *Traces) Subscribe(room int) (ends <-chan watch.TurnEnd, done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.subs == nil {
		t.subs = make(map[chan watch.TurnEnd]bool)
	}
	sub := make(chan watch.TurnEnd, room)
	t.subs[sub] = true
	return sub, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.subs, sub)
	}
}

// stale reports whether a turn tells of somebody who was forgotten since it began.
func stale(e *watch.TurnEnd) bool { return e.Stale != nil && e.Stale() }

// Forget drops what is remembered of a place or a person, and, of all other turns,
// what memories they were told, which may be of him. It is called when he is
// forgotten: of turns that end later, Observe knows by itself.
func (t *Traces) Forget(path core.Path) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.ends {
		e := &t.ends[i]
		switch {
		case e.Trace == nil: // dropped before
		case e.Turn.Path.Within(path) || e.Person == path || stale(e):
			*e = watch.TurnEnd{}
		default: // others have the trace, too
			bare := *e.Trace
			bare.Memories = nil
			e.Trace = &bare
		}
	}
}
