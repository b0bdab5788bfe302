package daemon

import (
	"context"

	"synthbot/core"
	"synthbot/memory"
)

// inbox takes in what plugins put into places.
type inbox struct{ b *Bot }

func (i inbox) Receive(ctx context.Context, events ...core.Event) error {
	return i.b.Turns.Own().Receive(ctx, events...)
}

// asker asks the engines that are in force when it is asked.
type asker struct{ b *Bot }

func (a asker) Ask(ctx context.Context, q core.Question) (core.Answer, error) {
	a.b.mu.Lock()
	p := a.b.parts
	a.b.mu.Unlock()
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

// Items is what a plugin keeps.
func (b *Bot) Items(plugin string) core.Items {
	if b.Db == nil {
		return nowhere{}
	}
	return b.Db.Items(plugin)
}

func (b *Bot) Facts() core.Facts {
	if b.Db == nil {
		return nowhere{}
	}
	return b.Db
}

var _ core.Facts = (*memory.DB)(nil)

// nowhere is what plugins keep where there is no database: for commands that
// only look.
type nowhere struct{}

func (nowhere) Get(_ context.Context, path core.Path, key string) (core.Item, bool, error) {
	return core.Item{Path: path, Key: key}, false, nil
}
func (nowhere) Put(context.Context, core.Item) (uint64, error)       { return 0, core.ErrClosed }
func (nowhere) PutAll(context.Context, ...core.Item) error           { return core.ErrClosed }
func (nowhere) List(context.Context, core.Path) ([]core.Item, error) { return nil, nil }
func (nowhere) SaveFact(context.Context, core.Fact) (core.Fact, error) {
	return core.Fact{}, core.ErrClosed
}
func (nowhere) DropFact(context.Context, string, ...core.Path) error         { return core.ErrUnknown }
func (nowhere) Recall(context.Context, core.FactQuery) ([]core.Found, error) { return nil, nil }
func (nowhere) Epoch() uint64                                                { return 0 }
