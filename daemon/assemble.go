package daemon

import (
	"context"
	"errors"
	"log/slog"

	"synthbot/admin"
	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/llm"
	"synthbot/core/turn"
	"synthbot/daemon/logs"
	"synthbot/daemon/settings"
	"synthbot/memory"
)

// Assemble puts a bot together: its store, what outlives a change of the configuration,
// the parts that the configuration describes, and the turns on them. It does not run yet.
// The caller closes it.
func (e *Env) Assemble(
	c *Config, log *slog.Logger, open func() (core.Store, error), interfaces makeInterfaces, further ...core.Plugin,
) (*Bot, error) {
	store, err := open()
	if err != nil {
		return nil, err
	}
	b, err := e.newBot(log, store)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	p, err := b.build(c, nil, interfaces, further...)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	b.parts.Store(p)
	b.embed(p)
	b.Turns = turn.New(b.options(p))
	b.monitor.turns = b.Turns
	e.bot.Store(b)
	return b, nil
}

// build makes the parts that a configuration describes, each with the help of those
// before it. It keeps those of the former parts that did not change.
func (b *Bot) build(
	c *Config, former *parts, interfaces makeInterfaces, further ...core.Plugin,
) (p *parts, err error) {
	p = &parts{Config: c, personas: c.Personas}
	p.settings = c.resolver(b.changes, p.scopes)
	if p.Engines, err = c.engines(b.engineOptions(p)); err != nil {
		return nil, err
	}
	b.monitor.metrics.Engines(p.Engines.Names()...)
	if p.plugins, err = b.load(c, former); err != nil {
		return nil, err
	}
	if p.Commands, err = b.commands(c, p.plugins); err != nil {
		return nil, err
	}
	if p.Interfaces, err = interfaces(b.maker(c, p.Commands), former); err != nil {
		return nil, err
	}
	if p.small, err = b.small(p); err != nil {
		return nil, err
	}
	return p, p.collectActions(further...)
}

// newBot makes what outlives a change of the configuration.
func (e *Env) newBot(log *slog.Logger, store core.Store) (*Bot, error) {
	b := &Bot{env: e, log: log, Data: &Storage{Store: store}, pdfs: make(pdfReader, maxPDFs)}
	b.runtime = action.NewRuntime(action.Options{Clock: e.Clock, Log: logs.Room(log, "core/action")})
	db, ok := store.(*memory.DB)
	if ok {
		b.Data.DB, b.Data.usage = db, &usageStore{db: db, log: log, cost: func(engine string, u llm.Usage) float64 {
			return b.InForce().Config.Cost(engine, u)
		}}
	}
	var err error
	if b.changes, err = settings.Open[settings.Settings](context.Background(), b.Data.Items("bot")); err != nil {
		return nil, err
	}
	b.outbox = &outbox{log: log, inForce: b.InForce, admins: b.adminsInForce}
	b.alerts = &alerts{log: log, clock: e.Clock, send: b.outbox.sendAdmins}
	b.outbox.alerts = b.alerts
	b.workers = &workers{log: log, alerts: b.alerts}
	b.monitor = &monitor{
		metrics: admin.NewMetrics(), traces: new(admin.Traces), began: e.Clock(),
		inForce: b.InForce, workers: b.workers, alerts: b.alerts,
	}
	b.reloads = &reloads{bot: b, outdated: make(chan struct{}, 1)}
	b.claim = &adminClaim{
		log: log, clock: e.Clock, items: b.Data.Items("bot"), changes: b.changes, admins: b.adminsInForce,
		alerts: b.alerts, reloads: b.reloads,
	}
	b.page = &pageServer{bot: b}
	return b, nil
}

// Reconfigured returns a bot to look at, with another configuration and further actions
// on the same store. It cannot run.
func (b *Bot) Reconfigured(c *Config, log *slog.Logger, further ...core.Plugin) (*Bot, error) {
	p := *b.InForce()
	p.Config = c
	if err := p.collectActions(further...); err != nil {
		return nil, err
	}
	other := &Bot{
		env: b.env, log: log, Data: b.Data, changes: b.changes, runtime: b.runtime, alerts: b.alerts, outbox: b.outbox,
		workers: b.workers, monitor: b.monitor, reloads: b.reloads, page: b.page, claim: b.claim, pdfs: b.pdfs,
	}
	other.parts.Store(&p)
	other.Turns = turn.New(other.options(&p))
	return other, nil
}

// admins are the people who may do everything: those of the configuration, and those who
// became admins since.
func (b *Bot) admins(c *Config) []core.Path {
	return append(paths(c.Bot.Admins), claimedAdmins(b.changes)...)
}

// adminsInForce are the admins now; none before the bot is assembled.
func (b *Bot) adminsInForce() []core.Path {
	p := b.InForce()
	if p == nil {
		return nil
	}
	return b.admins(p.Config)
}
