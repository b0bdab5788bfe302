package daemon

import (
	"context"
	"errors"
	"fmt"

	"synthbot/core"
	"synthbot/core/engine"
	"synthbot/core/txt"
)

// tell tells the admins something that they must know.
func (b *Bot) tell(text string) { (&desk{b: b, log: b.log}).Admins(text) }

// diskFull is told by the store when the disk is full, and when it is well again.
// Meanwhile nothing is taken in, so that nothing is lost: platforms keep what was
// not acknowledged. Then turns that failed because of it are tried again.
func (b *Bot) diskFull(full bool) {
	text := "There is room on the disk again, and I go on."
	if b.full.Store(full); full {
		text = "The disk is full. I take in no messages until there is room; nothing is lost."
	}
	b.conditions.set("disk", !full, text)
	if !full {
		b.Turns.Retry()
	}
}

// engineHealth is called by the chain of engines.
func (b *Bot) engineHealth(name string, h engine.Health) {
	text := engineBack(name)
	switch h {
	case engine.HealthSome:
		text = "Engine " + name + " fails for one person, call after call, and is left alone for them for a while; others still reach it."
	case engine.HealthBad:
		text = "Engine " + name + " fails, and is left alone for a while; the next one is asked."
	}
	b.conditions.set(engineCondition+name, h == engine.HealthGood, text)
}

// alive returns nil when turns can be taken and a write to the store commits. A full
// disk is not the bot's fault.
func (b *Bot) alive(ctx context.Context) error {
	if err := b.Turns.Pulse(ctx); !errors.Is(err, core.ErrFull) {
		return err
	}
	return nil
}

// ready returns nil when messages are taken in, by every interface, and a write to
// the store commits.
func (b *Bot) ready(ctx context.Context) error {
	if b.full.Load() {
		return core.ErrFull
	}
	for _, i := range b.InForce().Interfaces {
		if b.broken(i) {
			return fmt.Errorf("interface %s has stopped", i.Name())
		}
		if r, ok := i.(core.Readier); ok {
			if err := r.Ready(); err != nil {
				return fmt.Errorf("interface %s: %w", i.Name(), err)
			}
		}
	}
	return b.Turns.Pulse(ctx)
}

// doorbell lets the admins know when the bot comes to a new group.
type doorbell struct {
	core.Inbox
	b *Bot
}

// Receive implements core.Inbox.
func (d doorbell) Receive(ctx context.Context, events ...core.Event) error {
	if err := d.Inbox.Receive(ctx, events...); err != nil {
		return err
	}
	for i := range events {
		e := &events[i]
		if e.Kind == core.KindMembership && e.Data == "added" && !e.Message.Private {
			d.b.tell(newGroup(e))
		}
	}
	return nil
}

func newGroup(e *core.Event) string {
	by := ""
	if name := txt.Line(e.Message.Author.Name); name != "" {
		by = " by " + name
	}
	return fmt.Sprintf("I was added to the group %s%s. To keep me out of it, add it to access.deny.", e.Message.Path, by)
}

// tellAside tells the admins what the database refuses to do.
func (b *Bot) tellAside() {
	if b.Db == nil {
		return
	}
	for _, job := range b.Db.Aside() {
		b.tell("This is set aside for a day, because it blocked the database three times: " + txt.Line(job))
	}
}
