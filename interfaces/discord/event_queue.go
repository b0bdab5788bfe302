package discord

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

// gatewayEvent is one event of the gateway, as it came.
type gatewayEvent struct {
	shard int
	kind  string // for example MESSAGE_CREATE
	data  json.RawMessage
	call  *arrival  // with an interaction
	since time.Time // with READY: until when the previous session received everything
}

// maxQueued is how many bytes of events may wait; then the gateway does.
const maxQueued = 8 << 20

// eventQueue holds the events that wait to be taken in, in order.
type eventQueue struct {
	mu     sync.Mutex
	events []gatewayEvent
	bytes  int
	filled chan struct{} // one token: there is something
	freed  chan struct{} // one token: there is room again
}

func newEventQueue() *eventQueue {
	return &eventQueue{filled: make(chan struct{}, 1), freed: make(chan struct{}, 1)}
}

// push waits for room, unless the queue is empty: one event always fits. It returns false
// if done is closed before.
func (q *eventQueue) push(done <-chan struct{}, f gatewayEvent) bool {
	for {
		q.mu.Lock()
		if len(q.events) == 0 || q.bytes+len(f.data) <= maxQueued {
			q.events = append(q.events, f)
			q.bytes += len(f.data)
			room := q.bytes < maxQueued
			q.mu.Unlock()
			signal(q.filled)
			if room {
				signal(q.freed) // others may wait as well
			}
			return true
		}
		q.mu.Unlock()
		select {
		case <-done:
			return false
		case <-q.freed:
		}
	}
}

// take returns the events that wait, at most max; none if there are none.
func (q *eventQueue) take(max int) []gatewayEvent {
	q.mu.Lock()
	n := min(max, len(q.events))
	taken := q.events[:n:n]
	q.events = q.events[n:]
	for i := range taken {
		q.bytes -= len(taken[i].data)
	}
	if len(q.events) == 0 {
		q.events = nil
	} else {
		signal(q.filled)
	}
	q.mu.Unlock()
	signal(q.freed)
	return taken
}

// empty reports whether nothing waits.
func (q *eventQueue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.events) == 0
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// received reports whether a token came before ctx ended.
func received(ctx context.Context, c <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case <-c:
		return true
	}
}
