package discord

import (
	"context"
	"slices"
	"sync"
)

// Priorities of what waits to be sent.
const (
	low    = -1
	normal = 0
	high   = 1
)

// sendQueue keeps the order of what is sent to a channel: one message action at a
// time; the others wait by priority, then in the order in which they came. Safe for
// concurrent use.
type sendQueue struct {
	mu      sync.Mutex
	waiting map[string][]*ticket // by channel that is in use
}

type ticket struct {
	priority int
	turn     chan struct{} // closed when the channel is free
}

func newSendQueue() *sendQueue { return &sendQueue{waiting: make(map[string][]*ticket)} }

// enter waits for the channel to be free; leave lets the next one in.
func (q *sendQueue) enter(ctx context.Context, channel string, priority int) (leave func(), err error) {
	leave = func() { q.leave(channel) }
	q.mu.Lock()
	list, busy := q.waiting[channel]
	if !busy {
		q.waiting[channel] = nil
		q.mu.Unlock()
		return leave, nil
	}
	t := &ticket{priority, make(chan struct{})}
	at := len(list)
	for at > 0 && list[at-1].priority < priority {
		at--
	}
	q.waiting[channel] = slices.Insert(list, at, t)
	q.mu.Unlock()
	select {
	case <-t.turn:
		return leave, nil
	case <-ctx.Done():
	}
	if !q.withdraw(channel, t) {
		leave() // the turn came in the same moment
	}
	return nil, ctx.Err()
}

// withdraw removes a ticket; it returns false if its turn had come.
func (q *sendQueue) withdraw(channel string, t *ticket) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.waiting[channel]
	i := slices.Index(list, t)
	if i < 0 {
		return false
	}
	q.waiting[channel] = slices.Delete(list, i, i+1)
	return true
}

func (q *sendQueue) leave(channel string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.waiting[channel]
	if len(list) == 0 {
		delete(q.waiting, channel)
		return
	}
	q.waiting[channel] = list[1:]
	close(list[0].turn)
}
