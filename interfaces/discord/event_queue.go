package discord

import (
	"context"
	"encoding/json"
	"time"

	"golang.org/x/sync/semaphore"
)

// gatewayEvent is one event of the gateway, as it came.
type gatewayEvent struct {
	shard int
	kind  string // for example MESSAGE_CREATE
	data  json.RawMessage
	call  *arrival  // with an interaction
	since time.Time // with READY: until when the previous session received everything
}

// Limits of what may wait; beyond them the gateway does.
const (
	maxQueued      = 1024    // events
	maxQueuedBytes = 8 << 20 // of events
)

// eventQueue holds the events that wait to be taken in, in order.
type eventQueue struct {
	waiting chan gatewayEvent
	room    *semaphore.Weighted // bytes
}

func newEventQueue() *eventQueue {
	return &eventQueue{make(chan gatewayEvent, maxQueued), semaphore.NewWeighted(maxQueuedBytes)}
}

// size is the room that an event takes: one event always fits.
func (e *gatewayEvent) size() int64 { return min(int64(len(e.data)), maxQueuedBytes) }

// push waits for room. It returns false if ctx ends before.
func (q *eventQueue) push(ctx context.Context, e gatewayEvent) bool {
	if q.room.Acquire(ctx, e.size()) != nil {
		return false
	}
	select {
	case q.waiting <- e:
		return true
	case <-ctx.Done():
		q.room.Release(e.size())
		return false
	}
}

// empty reports whether nothing waits.
func (q *eventQueue) empty() bool { return len(q.waiting) == 0 }
