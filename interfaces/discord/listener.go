package discord

import (
	"context"

	"synthbot/interfaces/discord/gateway"
)

// listener puts the events of the gateway into the queue.
type listener struct{ d *Driver }

var _ gateway.Handler = listener{}

// Event implements gateway.Handler. It waits while the queue is full.
func (l listener) Event(ctx context.Context, e gateway.Event) bool {
	d := l.d
	f := frame{shard: e.Shard, kind: e.Type, data: e.Data}
	switch e.Type {
	case "INTERACTION_CREATE":
		f.call = d.arrive(ctx, e.Data)
	case "READY":
		d.ready.stands(e.Shard)
		f.since = d.alive.begin(e.Shard, d.clock())
	case "RESUMED":
		d.ready.stands(e.Shard)
	}
	if f.call.wanted() && !d.queue.push(ctx.Done(), f) {
		d.arrivals.forget(f.call)
		return false
	}
	l.Alive(e.Shard)
	return true
}

// Alive implements gateway.Handler.
func (l listener) Alive(shard int) { l.d.alive.touch(shard, l.d.clock()) }

// Disconnected implements gateway.Handler.
func (l listener) Disconnected(shard int) { l.d.ready.ended(shard) }

// ContentRefused implements gateway.Handler.
func (l listener) ContentRefused() { l.d.missingContent() }
