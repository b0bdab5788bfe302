package daemon

import (
	"context"

	"synthbot/core"
	"synthbot/core/llm"
)

// inbox receives what plugins write into places.
type inbox struct{ bot *Bot }

// Receive implements core.Inbox.
func (i inbox) Receive(ctx context.Context, events ...core.Event) error {
	return i.bot.Turns.InternalInbox().Receive(ctx, events...)
}

// asker asks the engines in force.
type asker struct{ bot *Bot }

// Ask implements core.Asker.
func (a asker) Ask(ctx context.Context, q core.Question) (llm.Answer, error) {
	p := a.bot.InForce()
	if !p.Config.thinks() {
		return llm.Answer{}, core.ErrNoEngine
	}
	return a.bot.budgeted(p, p.Config.Clock(a.bot.env.Clock)).Ask(ctx, q)
}

// thinks reports whether there is an engine besides the built-in one.
func (c *Config) thinks() bool {
	for i := range c.Engines {
		e := &c.Engines[i]
		if !e.Disabled && e.Provider != offline && e.Provider != "" {
			return true
		}
	}
	return false
}
