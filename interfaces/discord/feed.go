package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"

	"synthbot/core/driver"
	"synthbot/interfaces/discord/gateway"
	"synthbot/interfaces/discord/progress"
)

// gatewayEvent is one event of the gateway, as it came.
type gatewayEvent struct {
	shard int
	kind  string // for example MESSAGE_CREATE
	data  json.RawMessage
	call  *arrival  // with an interaction
	since time.Time // with READY: until when the previous session received everything

	session gateway.Session // once the event was taken
}

// Limits of what may wait; beyond them the gateway does.
const (
	maxQueued      = 1024    // events
	maxQueuedBytes = 8 << 20 // of events
)

// size is the room that an event takes: one event always fits.
func (e *gatewayEvent) size() int64 { return min(int64(len(e.data)), maxQueuedBytes) }

// feed queues the events of the gateway for the intake, and knows until when all of
// them were received. Safe for concurrent use.
type feed struct {
	*account
	responder *responder
	waiting   chan gatewayEvent // in order
	room      *semaphore.Weighted
	progress  *progress.Progress
	health    driver.Health // of shards, and of the intake
	shards    int           // of the account; 0: Listen does not know yet
	connected int           // how many of them are connected here
}

func newFeed(a *account, r *responder) *feed {
	return &feed{
		account: a, responder: r, waiting: make(chan gatewayEvent, maxQueued),
		room: semaphore.NewWeighted(maxQueuedBytes), progress: progress.New(a.state),
	}
}

// begin is called when it is known how many shards the account has, and which of them are connected. What
// still waits from the time before comes again, and other events may come before it by now.
func (f *feed) begin(shards int, connected []int) {
	for len(f.waiting) > 0 {
		e := <-f.waiting
		f.room.Release(e.size())
		if e.call != nil {
			f.responder.arrived.Put(e.call.id, false)
		}
	}
	f.shards, f.connected = shards, len(connected)
	for _, shard := range connected {
		f.fails(shard, time.Time{})
	}
}

// Event implements gateway.Handler. It waits while the queue is full.
func (f *feed) Event(ctx context.Context, e gateway.Event) bool {
	event := gatewayEvent{shard: e.Shard, kind: e.Type, data: e.Data, session: e.Session}
	switch e.Type {
	case "INTERACTION_CREATE":
		event.call = f.responder.arrive(ctx, e.Data)
	case "READY":
		f.health.Works(e.Shard)
		event.since = f.progress.Touch(e.Shard, f.clock())
	case "RESUMED":
		f.health.Works(e.Shard)
	}
	wanted := e.Type != "INTERACTION_CREATE" || event.call != nil
	if wanted && !f.push(ctx, event) {
		if event.call != nil {
			f.responder.arrived.Put(event.call.id, false) // it comes again
		}
		return false
	}
	f.Alive(e.Shard)
	return true
}

// push waits for room. It returns false if ctx ends before.
func (f *feed) push(ctx context.Context, e gatewayEvent) bool {
	if f.room.Acquire(ctx, e.size()) != nil {
		return false
	}
	select {
	case f.waiting <- e:
		return true
	case <-ctx.Done():
		f.room.Release(e.size())
		return false
	}
}

// Alive implements gateway.Handler.
func (f *feed) Alive(shard int) { f.progress.Touch(shard, f.clock()) }

// Disconnected implements gateway.Handler.
func (f *feed) Disconnected(shard int) { f.fails(shard, time.Now()) }

func (f *feed) fails(shard int, since time.Time) {
	f.health.Fails(shard, since, fmt.Errorf("shard %d has no session", shard))
}

// intakeSource is the intake among the sources of health, which are shards.
const intakeSource = -1

// ContentRefused implements gateway.Handler.
func (f *feed) ContentRefused() {
	f.notices.once("content", "the message content intent is off for this bot: it sees what mentions it, what "+
		"replies to it and direct messages, and nothing else. Switch the intent on in the developer portal, "+
		"under Bot, and restart.")
}

// note stores what was taken in, and until when everything was. It is called by the
// intake, or when that has ended: everything before is on disk.
func (f *feed) note(ctx context.Context, now bool) {
	at := f.progress.All(f.connected)
	f.noteCursors(ctx)
	if len(f.waiting) > 0 || at.IsZero() {
		return
	}
	if err := f.progress.Note(ctx, at, now); err != nil {
		f.log.Error("until when the gateway was heard is not stored", "err", err)
	}
}

func (f *feed) noteCursors(ctx context.Context) {
	if err := f.cursors.flush(ctx); err != nil {
		f.log.Error("what was seen is not stored", "err", err)
	}
}
