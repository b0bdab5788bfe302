package daemon

import (
	"cmp"

	"synthbot/core"
	"synthbot/core/engine"
	"synthbot/core/recon"
	"synthbot/daemon/logs"
	"synthbot/memory"
)

// engineOptions are what engines need besides their tables.
func (b *Bot) engineOptions(p *parts) engine.Options {
	clock := p.Config.Clock(b.env.Clock)
	return engine.Options{
		Log: logs.Room(b.log, "core/engine"), Clock: clock, Zone: clock().Location(),
		Prefer: func(place core.Path) string { return p.settings.At(place).Engine },
		Health: b.alerts.engineHealth, Failed: b.monitor.metrics.ModelFailed,
	}
}

// engines makes the chain of language models.
func (b *Bot) engines(p *parts) (*engine.Chain, error) {
	chain, err := engine.New(p.Config.Engines, b.engineOptions(p))
	if err != nil {
		return nil, UsageError{err}
	}
	b.monitor.metrics.Engines(chain.Names()...)
	return chain, nil
}

// budgeted wraps an Asker, as the engines of p, so that it is asked only within the budgets of
// the place, the user and the bot.
func (b *Bot) budgeted(p *parts, asker core.Asker) core.Asker {
	all, clock := p.Config.Budget, p.Config.Clock(b.env.Clock)
	all.Places = p.placeBudgets()
	return engine.Budgeted(asker, all, engine.BudgetOptions{
		Ledger: b.Data.usage, Cost: p.Config.Cost, Used: b.monitor.metrics.Used,
		Clock: clock, Zone: clock().Location(), Log: logs.Room(b.log, "core/engine"),
		PersonTokens: func(place core.Path) int64 { return *p.settings.At(place).PersonTokens },
	})
}

// small makes the recon by a small model, if the configuration names one.
func (b *Bot) small(p *parts) (*recon.Small, error) {
	for _, e := range p.Config.Engines {
		name := cmp.Or(e.Name, e.Provider)
		if name == "" || name != p.Config.Prompt.Recon {
			continue
		}
		o := b.engineOptions(p)
		o.Prefer, o.Health = nil, nil
		chain, err := engine.New([]engine.Config{e}, o)
		if err != nil {
			return nil, UsageError{err}
		}
		return recon.NewSmall(b.budgeted(p, chain)), nil
	}
	return nil, nil
}

// embed lets memories be found by meaning, with the first engine that has a model
// for that.
func (b *Bot) embed(p *parts) {
	if b.Data.DB == nil {
		return
	}
	b.Data.DB.SetConfig(p.Config.Memory)
	var by memory.Embedder
	for _, e := range p.Config.Engines {
		if e.Disabled || e.EmbeddingModel == "" {
			continue
		}
		embedder, err := engine.NewEmbedder(e, b.engineOptions(p))
		if err != nil {
			b.log.Error("memories are not found by meaning", "err", err)
			break
		}
		by = memory.Embedder{Model: e.EmbeddingModel, Embed: embedder.Embed}
		break
	}
	b.Data.DB.SetEmbedder(by)
}
