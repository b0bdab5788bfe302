package discord

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"

	"synthbot/core/driver"
	"synthbot/interfaces/discord/gateway"
	"synthbot/interfaces/discord/progress"
)

type gatewayEvent struct {
	gateway.Event
	call  *arrival  // of an interaction
	since time.Time // of READY: until when the previous session received everything
}

// Limits of the queue. While it is full, the shards block.
const (
	maxQueued      = 1024    // events
	maxQueuedBytes = 8 << 20 // of events
)

// size returns the room that an event takes in the queue. A single event always fits.
func (e *gatewayEvent) size() int64 { return min(int64(len(e.Data)), maxQueuedBytes) }

// feed queues the events of the gateway for the intake, and tracks until when all of them were received. It
// is safe for concurrent use, except for begin.
type feed struct {
	*account
	responder *responder
	waiting   chan gatewayEvent   // in order
	room      *semaphore.Weighted // bytes in the queue
	progress  *progress.Progress
	behind    bool          // some events that the intake received are not on disk yet
	health    driver.Health // of the shards and of the intake
	shards    int           // of the account; 0: not known yet
	connected int           // how many of them this driver connects
}

func newFeed(a *account, r *responder) *feed {
	return &feed{
		account: a, responder: r, waiting: make(chan gatewayEvent, maxQueued),
		room: semaphore.NewWeighted(maxQueuedBytes), progress: progress.New(a.opt.State),
	}
}

// begin is called before the gateway connects, with the account's number of shards and those that this driver
// connects. It empties the queue: Discord repeats events that were not handled, perhaps in another order.
func (f *feed) begin(shards int, connected []int) {
	for len(f.waiting) > 0 {
		e := <-f.waiting
		f.room.Release(e.size())
		if e.call != nil {
			f.replies.arrived.Put(e.call.ID, nil)
		}
	}
	f.shards, f.connected = shards, len(connected)
	for _, shard := range connected {
		f.fails(shard, time.Time{})
	}
}

// Event implements gateway.Handler. It blocks while the queue is full.
func (f *feed) Event(ctx context.Context, e gateway.Event) bool {
	event := gatewayEvent{Event: e}
	switch e.Type {
	case "INTERACTION_CREATE":
		event.call = f.responder.handleArrival(ctx, e.Data)
	case "READY":
		event.since = f.progress.Until(e.Shard)
		f.storeFirst(ctx, e)
		f.health.Works(e.Shard)
	case "RESUMED":
		f.health.Works(e.Shard)
	}
	wanted := e.Type != "INTERACTION_CREATE" || event.call != nil
	if wanted && !f.push(ctx, event) {
		if event.call != nil {
			f.replies.arrived.Put(event.call.ID, nil) // Discord repeats it
		}
		return false
	}
	f.Alive(e.Shard)
	return true
}

// storeFirst stores the session that begins with e if no earlier one is known, even if ctx has ended: whatever comes
// after it, the next driver receives by resuming the session, or fetches.
func (f *feed) storeFirst(ctx context.Context, e gateway.Event) {
	if f.connected > 1 {
		return // the intake stores the sessions of all shards together
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), lastTime)
	defer done()
	if err := f.progress.StoreFirst(ctx, e.Shard, e.Session, f.opt.Clock()); err != nil {
		f.log.Error("first session not stored", "err", err)
	}
}

// push adds an event to the queue. It blocks while the queue is full, and returns false if ctx ends first.
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

func (f *feed) Alive(shard int) { f.progress.Touch(shard, f.opt.Clock()) }

func (f *feed) Disconnected(shard int) { f.fails(shard, time.Now()) }

func (f *feed) fails(shard int, since time.Time) {
	f.health.Fails(shard, since, fmt.Errorf("shard %d has no session", shard))
}

// intakeSource is the intake's number among the sources of health; the others are shards.
const intakeSource = -1

// store stores the cursors and, unless some received events are not on disk yet, until when all were received.
// now stores that time even if the stored one is recent.
func (f *feed) store(ctx context.Context, now bool) {
	at := f.progress.ReceivedUntil(f.connected)
	f.storeCursors(ctx, false)
	if f.behind || len(f.waiting) > 0 || at.IsZero() {
		return
	}
	if err := f.progress.Store(ctx, at, now); err != nil {
		f.log.Error("time of the last gateway event not stored", "err", err)
	}
}

func (f *feed) storeCursors(ctx context.Context, onlyNew bool) {
	if err := f.cursors.flush(ctx, onlyNew); err != nil {
		f.log.Error("channel positions not stored", "err", err)
	}
}
