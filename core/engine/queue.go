package engine

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"

	"synthbot/core"
)

// queue limits how many calls run at a time. Among the waiting calls, that of the person who was served longest ago
// runs next, and of several such calls the oldest. A call that other people wait for, too, has the priority of the
// first of them. People are forgotten when they have no call left. A newcomer comes before people whose calls are
// running, but not before those who are waiting.
type queue struct {
	size int

	mu      sync.Mutex
	waiting []*queuedCall // oldest first
	running []*queuedCall
	served  map[core.Path]int // by person: the number of their last call
	calls   int
}

// queuedCall is a call that waits or runs.
type queuedCall struct {
	people []core.Path
	behind func() []core.Path // the other people who wait for it; nil: nobody
	seen   map[core.Path]int  // like queue.served, for people behind without a call of their own
	turn   chan struct{}      // closed when the call may run
}

// newQueue makes a queue for n calls at a time. For n = 0 it returns nil, which lets every call run.
func newQueue(n int) *queue {
	if n <= 0 {
		return nil
	}
	return &queue{size: n, served: make(map[core.Path]int)}
}

// acquire waits until a call of these people may run. behind is that of the core.Question. The caller
// calls release after the call. The error is the cause of ctx's end.
func (q *queue) acquire(ctx context.Context, people []core.Path, behind func() []core.Path) (release func(), _ error) {
	if q == nil {
		return func() {}, nil
	}
	if len(people) == 0 {
		people = []core.Path{{}} // the bot itself
	}
	e := &queuedCall{people, behind, make(map[core.Path]int), make(chan struct{})}
	q.mu.Lock()
	q.waiting = append(q.waiting, e)
	for _, p := range e.people {
		_, known := q.served[p]
		if !known {
			q.served[p] = q.calls - q.size
		}
	}
	q.serve()
	q.mu.Unlock()
	select {
	case <-e.turn:
		return func() { q.remove(e) }, nil
	case <-ctx.Done():
		q.remove(e)
		return func() {}, context.Cause(ctx)
	}
}

func (q *queue) remove(e *queuedCall) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = without(q.waiting, e)
	q.running = without(q.running, e)
	q.serve()
	calls := slices.Concat(q.waiting, q.running)
	maps.DeleteFunc(q.served, func(p core.Path, _ int) bool {
		return !slices.ContainsFunc(calls, func(c *queuedCall) bool { return slices.Contains(c.people, p) })
	})
}

func without(list []*queuedCall, e *queuedCall) []*queuedCall {
	return slices.DeleteFunc(list, func(other *queuedCall) bool { return other == e })
}

// serve lets waiting calls run while there is room. The caller holds q.mu.
func (q *queue) serve() {
	for len(q.running) < q.size && len(q.waiting) > 0 {
		next := slices.MinFunc(q.waiting, func(a, b *queuedCall) int { return q.lastServed(a) - q.lastServed(b) })
		q.waiting = without(q.waiting, next)
		q.running = append(q.running, next)
		q.calls++
		for _, p := range next.people {
			q.served[p] = q.calls
		}
		close(next.turn)
	}
}

// lastServed returns the lowest number of a last call among e's people and those behind: that of the person
// who was served longest ago.
func (q *queue) lastServed(e *queuedCall) int {
	last := math.MaxInt
	for _, p := range e.people {
		last = min(last, q.served[p])
	}
	if e.behind == nil {
		return last
	}
	for _, p := range e.behind() {
		n, known := q.served[p]
		if !known {
			n, known = e.seen[p]
		}
		if !known { // a newcomer
			n = q.calls - q.size
			e.seen[p] = n
		}
		last = min(last, n)
	}
	return last
}
