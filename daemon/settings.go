package daemon

import (
	"cmp"
	"context"

	"synthbot/core"
	"synthbot/core/engine"
	"synthbot/core/recon"
	"synthbot/core/turn"
	"synthbot/memory"
	"synthbot/persona"
)

// nearer is what was changed by command for a place, where no override of the file
// has a longer path; sets and changes ask whether they are about what is meant.
func (b *Bot) nearer(c *Config, place core.Path, sets func(*Override) bool, changes func(changed) bool) (x changed, at core.Path, ok bool) {
	if x, at, ok = b.overlay.at(place, changes); ok {
		o := c.longest(place, sets)
		ok = o == nil || core.Nearer(at, o.Path, place)
	}
	return x, at, ok
}

// settings are what holds in a place: by file, or changed by command since.
func (b *Bot) settings(c *Config, place core.Path) turn.Settings {
	s := c.settings(place)
	if x, _, ok := b.nearer(c, place, setsActivation, func(x changed) bool { return x.Activation != nil }); ok {
		s.Activation = *x.Activation
	}
	if x, _, ok := b.nearer(c, place, setsLanguage, func(x changed) bool { return x.Language != nil }); ok {
		s.Language = *x.Language
	}
	if x, _, ok := b.nearer(c, place, setsScope, func(x changed) bool { return x.Scope != nil }); ok {
		s.Scope = *x.Scope
	}
	return s
}

// castAt is who the bot is in a place.
func (b *Bot) castAt(p *parts, place core.Path) *persona.Persona {
	if x, _, ok := b.nearer(p.Config, place, setsPersona, func(x changed) bool { return x.Persona != nil }); ok {
		if who := p.cast.named(*x.Persona); who != nil {
			return who
		}
	}
	return p.cast.At(place)
}

// prefer is the engine that is asked first in a place; "" for the first one.
func (b *Bot) prefer(c *Config, place core.Path) string {
	if x, _, ok := b.nearer(c, place, setsEngine, func(x changed) bool { return x.Engine != nil }); ok {
		return *x.Engine
	}
	return c.prefer(place)
}

// engineOptions are what engines need besides their tables.
func (b *Bot) engineOptions(c *Config) engine.Options {
	clock := c.Clock(b.env.Clock)
	return engine.Options{
		Log: inRoom(b.log, "core/engine"), Clock: clock, Zone: clock().Location(),
		Prefer: func(place core.Path) string { return b.prefer(c, place) }, Health: b.engineHealth, Failed: b.metrics.ModelFailed,
	}
}

// small makes the recon by a small model, where one is named.
func (b *Bot) small(c *Config) (*recon.Small, error) {
	for _, e := range c.Engines {
		if name := cmp.Or(e.Name, e.Provider); c.Prompt.Recon == name && name != "" {
			o := b.engineOptions(c)
			o.Prefer, o.Health = nil, nil
			chain, err := engine.New([]engine.Config{e}, o)
			if err != nil {
				return nil, UsageError{err}
			}
			return recon.NewSmall(b.budgeted(&parts{Config: c, Engines: chain}, o.Clock)), nil
		}
	}
	return nil, nil
}

// embed lets memories be found by meaning, with the first engine that can tell
// what texts mean.
func (b *Bot) embed(c *Config) {
	if b.Db == nil {
		return
	}
	b.Db.SetConfig(c.Memory)
	var by memory.Embedder
	for _, e := range c.Engines {
		if e.Disabled || e.EmbeddingModel == "" {
			continue
		}
		embedder, err := engine.NewEmbedder(e, b.engineOptions(c))
		if err != nil {
			b.log.Error("memories are not found by meaning", "err", err)
			break
		}
		by = memory.Embedder{Model: e.EmbeddingModel, Embed: func(ctx context.Context, texts []string) ([][]float32, error) {
			return embedder.Embed(ctx, texts)
		}}
		break
	}
	b.Db.SetEmbedder(by)
}
