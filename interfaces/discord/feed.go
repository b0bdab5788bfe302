package discord

import (
	"context"
	"fmt"
	"time"

	"synthbot/core/driver"
	"synthbot/interfaces/discord/gateway"
)

// feed queues the events of the gateway for the intake, and knows until when all of
// them were received. Safe for concurrent use.
type feed struct {
	*account
	responder *responder
	events    *eventQueue
	alive     *alive
	health    driver.Health // of shards, and of the intake
	shards    int           // 0: Listen does not know yet
}

var _ gateway.Handler = (*feed)(nil)

// begin is called when the number of shards is known.
func (f *feed) begin(shards int) {
	f.shards = shards
	for shard := range shards {
		f.health.Fails(shard, time.Time{}, noSession(shard))
	}
}

// Event implements gateway.Handler. It waits while the queue is full.
func (f *feed) Event(ctx context.Context, e gateway.Event) bool {
	event := gatewayEvent{shard: e.Shard, kind: e.Type, data: e.Data}
	switch e.Type {
	case "INTERACTION_CREATE":
		event.call = f.responder.arrive(ctx, e.Data)
	case "READY":
		f.health.Works(e.Shard)
		event.since = f.alive.begin(e.Shard, f.clock())
	case "RESUMED":
		f.health.Works(e.Shard)
	}
	wanted := event.call == nil || !event.call.done
	if wanted && !f.events.push(ctx, event) {
		f.responder.forget(event.call)
		return false
	}
	f.Alive(e.Shard)
	return true
}

// Alive implements gateway.Handler.
func (f *feed) Alive(shard int) { f.alive.touch(shard, f.clock()) }

// Disconnected implements gateway.Handler.
func (f *feed) Disconnected(shard int) { f.health.Fails(shard, time.Now(), noSession(shard)) }

func noSession(shard int) error { return fmt.Errorf("shard %d has no session", shard) }

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
	at := f.alive.all(f.shards)
	f.noteCursors(ctx)
	if !f.events.empty() || at.IsZero() {
		return
	}
	if err := f.alive.note(ctx, f.state, at, now); err != nil {
		f.log.Error("until when the gateway was heard is not stored", "err", err)
	}
}

func (f *feed) noteCursors(ctx context.Context) {
	if err := f.cursors.flush(ctx); err != nil {
		f.log.Error("what was seen is not stored", "err", err)
	}
}
