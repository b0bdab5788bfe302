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

// lanes keep the order of what is sent to a channel: one message action at a
// time, the rest waits by priority, then as it came. Safe for concurrent use.
type lanes struct {
	mu  sync.Mutex
	all map[string]*lane
}

type lane struct{ waiting []*ticket }

type ticket struct {
	priority int
	turn     chan struct{}
}

func newLanes() *lanes { return &lanes{all: make(map[string]*lane)} }

// enter waits for the channel to be free; leave lets the next one in.
func (l *lanes) enter(ctx context.Context, channel string, priority int) (leave func(), err error) {
	l.mu.Lock()
	a := l.all[channel]
	if a == nil {
		l.all[channel] = &lane{}
		l.mu.Unlock()
		return func() { l.leave(channel) }, nil
	}
	t := &ticket{priority, make(chan struct{})}
	at := len(a.waiting)
	for at > 0 && a.waiting[at-1].priority < priority {
		at--
	}
	a.waiting = slices.Insert(a.waiting, at, t)
	l.mu.Unlock()
	select {
	case <-t.turn:
		return func() { l.leave(channel) }, nil
	case <-ctx.Done():
	}
	if !l.withdraw(channel, t) {
		l.leave(channel) // it was our turn in the same moment
	}
	return nil, ctx.Err()
}

// withdraw takes a ticket back; false where its turn had come.
func (l *lanes) withdraw(channel string, t *ticket) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.all[channel]
	if a == nil {
		return false
	}
	i := slices.Index(a.waiting, t)
	if i < 0 {
		return false
	}
	a.waiting = slices.Delete(a.waiting, i, i+1)
	return true
}

func (l *lanes) leave(channel string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.all[channel]
	if len(a.waiting) == 0 {
		delete(l.all, channel)
		return
	}
	next := a.waiting[0]
	a.waiting = a.waiting[1:]
	close(next.turn)
}
