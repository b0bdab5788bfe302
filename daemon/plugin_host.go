package daemon

import (
	"context"

	"synthbot/core"
)

// inbox takes in what plugins put into places.
type inbox struct{ b *Bot }

func (i inbox) Receive(ctx context.Context, events ...core.Event) error {
	return i.b.Turns.InternalInbox().Receive(ctx, events...)
}

// asker asks the engines that are in force when it is asked.
type asker struct{ b *Bot }

func (a asker) Ask(ctx context.Context, q core.Question) (core.Answer, error) {
	p := a.b.InForce()
	if p == nil || !p.Config.thinks() {
		return core.Answer{}, core.ErrNoEngine
	}
	return a.b.budgeted(p, p.Config.Clock(a.b.env.Clock)).Ask(ctx, q)
}

// thinks reports whether there is an engine but the built-in one.
func (c *Config) thinks() bool {
	for i := range c.Engines {
		if e := &c.Engines[i]; !e.Disabled && e.Provider != offline && e.Provider != "" {
			return true
		}
	}
	return false
}
