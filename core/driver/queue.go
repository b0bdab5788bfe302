package driver

import (
	"context"
	"slices"
	"sync"
)

// Queue lets one sender at a time into each chat. The others wait by priority, then in
// the order in which they came. The zero value is ready. Safe for concurrent use.
type Queue[K comparable] struct {
	mu      sync.Mutex
	waiting map[K][]*ticket // by chat that is in use
}

type ticket struct {
	priority int
	turn     chan struct{} // closed when the chat is free
}

// Enter waits for the chat to be free. leave lets the next one in.
func (q *Queue[K]) Enter(ctx context.Context, chat K, priority int) (leave func(), err error) {
	leave = func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.next(chat)
	}
	q.mu.Lock()
	list, busy := q.waiting[chat]
	if !busy {
		if q.waiting == nil {
			q.waiting = make(map[K][]*ticket)
		}
		q.waiting[chat] = nil
		q.mu.Unlock()
		return leave, nil
	}
	t := &ticket{priority, make(chan struct{})}
	at := slices.IndexFunc(list, func(o *ticket) bool { return o.priority < priority })
	if at < 0 {
		at = len(list)
	}
	q.waiting[chat] = slices.Insert(list, at, t)
	q.mu.Unlock()
	select {
	case <-t.turn:
		return leave, nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting[chat], t)
	if i >= 0 {
		q.waiting[chat] = slices.Delete(q.waiting[chat], i, i+1)
	} else {
		q.next(chat) // the turn came in the same moment
	}
	return nil, ctx.Err()
}

// next lets the next one in, if there is one. q.mu is held.
func (q *Queue[K]) next(chat K) {
	list := q.waiting[chat]
	if len(list) == 0 {
		delete(q.waiting, chat)
		return
	}
	q.waiting[chat] = list[1:]
	close(list[0].turn)
}

// Busy reports whether the chat is in use.
func (q *Queue[K]) Busy(chat K) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, busy := q.waiting[chat]
	return busy
}
