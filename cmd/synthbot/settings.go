package main

import (
	"cmp"
	"context"
	"log/slog"

	"synthbot/core"
	"synthbot/core/engine"
	"synthbot/core/recon"
	"synthbot/core/turn"
	"synthbot/memory"
	"synthbot/persona"
)

// settings are what holds in a place: by file, or changed by command since.
func (b *bot) settings(c *Config, place core.Path) turn.Settings {
	s := c.settings(place)
	said, at, ok := b.overlay.at(place, func(x changed) bool { return x.Activation != nil })
	if !ok {
		return s
	}
	if o := c.longest(place, func(o *Override) bool { return o.Activation != nil }); o == nil || at.Within(o.Path) {
		s.Activation = *said.Activation
	}
	return s
}

// castAt is who the bot is in a place.
func (b *bot) castAt(p *parts, place core.Path) *persona.Persona {
	said, at, ok := b.overlay.at(place, func(x changed) bool { return x.Persona != nil })
	if !ok {
		return p.cast.at(place)
	}
	if o := p.config.longest(place, func(o *Override) bool { return o.Persona != "" }); o == nil || at.Within(o.Path) {
		if who := p.cast.named(*said.Persona); who != nil {
			return who
		}
	}
	return p.cast.at(place)
}

// prefer is the engine that is asked first in a place; "" for the first one.
func (b *bot) prefer(c *Config, place core.Path) string {
	said, at, ok := b.overlay.at(place, func(x changed) bool { return x.Engine != nil })
	if !ok {
		return c.prefer(place)
	}
	if o := c.longest(place, func(o *Override) bool { return o.Engine != "" }); o == nil || at.Within(o.Path) {
		return *said.Engine
	}
	return c.prefer(place)
}

// small makes the recon by a small model, where one is named.
func (c *Config) small(p *program, log *slog.Logger) (*recon.Small, error) {
	for _, e := range c.Engines {
		if name := cmp.Or(e.Name, e.Provider); c.Prompt.Recon == name && name != "" {
			chain, err := engine.New([]engine.Config{e}, engine.Options{Log: log, Clock: c.clock(p.clock)})
			if err != nil {
				return nil, usage{err}
			}
			return recon.NewSmall(chain), nil
		}
	}
	return nil, nil
}

// embed lets memories be found by meaning, with the first engine that can tell
// what texts mean.
func (b *bot) embed(c *Config) {
	if b.db == nil {
		return
	}
	b.db.SetConfig(c.Memory)
	var by memory.Embedder
	for _, e := range c.Engines {
		if e.Disabled || e.EmbeddingModel == "" {
			continue
		}
		embedder, err := engine.NewEmbedder(e, engine.Options{Log: inRoom(b.log, "core/engine"), Clock: c.clock(b.program.clock)})
		if err != nil {
			b.log.Error("memories are not found by meaning", "err", err)
			break
		}
		by = memory.Embedder{Model: e.EmbeddingModel, Embed: func(ctx context.Context, texts []string) ([][]float32, error) {
			return embedder.Embed(ctx, texts)
		}}
		break
	}
	b.db.SetEmbedder(by)
}
