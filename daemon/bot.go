package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"synthbot/admin"
	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/command"
	"synthbot/core/engine"
	"synthbot/core/recon"
	"synthbot/core/speech"
	"synthbot/core/turn"
	"synthbot/daemon/logs"
)

// Bot is one bot: the parts that its configuration describes, and what remains when a reload replaces them.
type Bot struct {
	env     *Env
	log     *slog.Logger
	Data    *Storage
	changes *placeChanges   // the settings that users changed by command
	runtime *action.Runtime // rate limits and running actions
	Turns   *turn.Turns
	parts   atomic.Pointer[parts] // in force

	alerts  *alerts
	sending sync.WaitGroup // messages to admins, and hints to other processes
	workers *workers
	monitor *monitor
	reloads *reloads
	page    *pageServer
	claim   *adminClaim
	pdfs    pdfReader
}

// newBot makes what remains over reloads, except for the store.
func (e *Env) newBot(l RunOptions) *Bot {
	b := &Bot{env: e, log: l.Log, changes: new(placeChanges), pdfs: make(pdfReader, maxPDFs)}
	b.parts.Store(&parts{Config: new(Config), Commands: new(command.Registry)}) // until the real parts are built
	b.alerts = &alerts{log: l.Log, clock: e.Clock, send: b.sendAdmins}
	b.workers = &workers{log: l.Log, alerts: b.alerts}
	b.monitor = &monitor{Bot: b, metrics: admin.NewMetrics(), traces: new(admin.Traces), began: e.Clock()}
	b.workers.sharing = &sharing{Bot: b}
	b.runtime = action.NewRuntime(action.Options{
		Clock: b.now, Log: logs.Room(l.Log, "core/action"), Used: b.workers.sharing.used(actionLimits),
	})
	b.reloads = &reloads{Bot: b, outdated: make(chan struct{}, 1)}
	if l.RunCommand != nil {
		b.reloads.lastRead.Store(&l.Config.stamps)
		b.reloads.requested = make(chan struct{}, 1)
		b.reloads.announced = make(chan struct{}, 1)
	}
	b.claim = &adminClaim{Bot: b}
	b.page = &pageServer{bot: b}
	return b
}

// close waits for what still runs in the background, and closes the store and the engines.
func (b *Bot) close() error {
	b.alerts.close()
	b.runtime.Wait()
	b.reloads.retiring.Wait()
	b.sending.Wait()
	if b.Data.usage != nil {
		b.Data.usage.writing.Wait()
		if b.workers.sharing.active.Load() && b.workers.sharing.database() != nil {
			if err := b.Data.usage.returnUnused(context.Background()); err != nil {
				b.log.Warn("unused tokens not returned", "err", err)
			}
		}
	}
	engines := b.InForce().Engines
	if engines != nil {
		engines.Close()
	}
	return b.Data.Close()
}

// TurnsWith returns turns for previews, with another configuration and further actions.
func (b *Bot) TurnsWith(c *Config, log *slog.Logger, further ...core.Plugin) (*turn.Turns, error) {
	p := *b.InForce()
	p.Config = c
	if err := p.collectActions(further...); err != nil {
		return nil, err
	}
	o := b.turnOptions(&p)
	o.Log = logs.Room(log, "core/turn")
	return turn.New(o), nil
}

// InForce returns the parts in force. They are empty until the first ones are built.
func (b *Bot) InForce() *parts { return b.parts.Load() }

// putInForce puts parts in force for everything except turns, which get theirs from Reconfigure.
func (b *Bot) putInForce(p *parts) {
	b.parts.Store(p)
	b.setEmbedder(p)
}

// now returns the time in the bot's time zone, which a reload may change.
func (b *Bot) now() time.Time { return b.InForce().Config.Clock(b.env.Clock)() }

// Relay sends another program's text to a place, as the bot's own words that are based on text by strangers.
func (b *Bot) Relay(ctx context.Context, to core.Path, text string) error {
	return host{b}.say(ctx, to, text, true)
}

func (b *Bot) admins() []core.Path { return b.InForce().Config.admins(b.changes) }

// admins returns the admins of the configuration, and the users who became admins by a claim code.
func (c *Config) admins(changes *placeChanges) []core.Path {
	return slices.Concat(c.Bot.Admins, claimedAdmins(changes))
}

// parts are what one configuration describes. They do not change once they are in force.
type parts struct {
	Config     *Config
	personas   *personas
	settings   *resolver
	Engines    *engine.Chain
	budget     *engine.Budget // shared by turns, plugins and speech; nil without a database
	plugins    []loaded
	Commands   *command.Registry
	Snapshot   *action.Snapshot
	Interfaces []core.Interface
	listener   *speech.Listener // nil if speech is not recognised
	speaker    *speech.Speaker  // nil if nothing is spoken
	smallRecon *recon.Small     // nil if no small model is configured
}

func (b *Bot) commands(p *parts) (*command.Registry, error) {
	claim, err := b.claim.commands(p.Config)
	if err != nil {
		return nil, err
	}
	lists := [][]command.Command{(&chatCommands{b}).all(), claim}
	for _, c := range pluginsWith[command.Commander](p) {
		lists = append(lists, c.Commands())
	}
	r, err := command.New(lists...)
	if err != nil {
		return nil, UsageError{err}
	}
	return r, nil
}

// withActions returns all interfaces and plugins. An interface in several parts is listed once.
func (p *parts) withActions() (all []core.Plugin) {
	for n, i := range p.Interfaces {
		parts := p.interfacesNamed(i.Name())
		switch {
		case len(parts) == 1:
			all = append(all, i)
		case p.Interfaces[n] == parts[0]:
			all = append(all, &dividedInterface{i, p})
		}
	}
	for _, l := range p.plugins {
		all = append(all, l.Plugin)
	}
	return all
}

// collectActions makes the snapshot of all actions, under the policy of the configuration.
func (p *parts) collectActions(further ...core.Plugin) error {
	snapshot, err := action.Build(append(p.withActions(), further...)...)
	if err != nil {
		return UsageError{fmt.Errorf("actions: %w", err)}
	}
	policy := p.policy()
	for i := range p.Config.Enabled {
		e := &p.Config.Enabled[i]
		root, _ := core.MakePath(e.Name) // the configuration takes no name that is not a path
		var names []string
		for _, d := range snapshot.All() {
			if e.withholds(d) {
				names = append(names, d.Name)
			}
		}
		if len(names) > 0 {
			rule := action.Rule{Path: root, Actions: names, Permission: action.Nobody}
			policy.Rules = slices.Insert(policy.Rules, 0, rule)
		}
	}
	p.Snapshot = snapshot.With(policy)
	return nil
}

// interfaceAt returns the interface, or the part of one, that serves a place; nil if there is none.
func (p *parts) interfaceAt(place core.Path) core.Interface {
	for _, i := range p.Interfaces {
		part, ok := i.(interfacePart)
		if i.Name() == place.Interface() && (!ok || part.Serves(place)) {
			return i
		}
	}
	return nil
}

func (p *parts) interfacesNamed(name string) []core.Interface {
	return slices.DeleteFunc(slices.Clone(p.Interfaces), func(i core.Interface) bool { return i.Name() != name })
}

// interfacePart is an interface that may be one of several with the same name, such as a shard, in any process.
type interfacePart interface {
	Part() string // its name among the parts; "" if it is the only one
	Serves(place core.Path) bool
}

// label returns the name of an interface, followed by the name of its part if it has several.
func label(i core.Interface) string {
	if p, ok := i.(interfacePart); ok && p.Part() != "" {
		return i.Name() + " " + p.Part()
	}
	return i.Name()
}

// dividedInterface presents an interface in several parts as one plugin. The part that serves a place acts there.
type dividedInterface struct {
	core.Interface // the first part
	parts          *parts
}

var _ action.Resolver = (*dividedInterface)(nil)

// Type returns the name of the driver.
func (d *dividedInterface) Type() string { return d.parts.Config.kinds[d.Name()] }

func (d *dividedInterface) Find(from core.Path, name string) (core.Path, error) {
	return d.parts.interfaceAt(from).(action.Resolver).Find(from, name)
}

func (d *dividedInterface) Actions() []core.Action {
	all := d.Interface.Actions()
	byPart := make(map[core.Interface][]core.Action)
	for _, i := range d.parts.interfacesNamed(d.Name()) {
		byPart[i] = i.Actions()
	}
	for n := range all {
		of := func(call *core.Call) *core.Action {
			if actions, ok := byPart[d.parts.interfaceAt(call.Path)]; ok {
				return &actions[n]
			}
			return &byPart[d.Interface][n] // a place of another interface
		}
		a := &all[n]
		if a.Check != nil {
			a.Check = func(ctx context.Context, call core.Call) error { return of(&call).Check(ctx, call) }
		}
		if a.Undo != nil {
			a.Undo = func(ctx context.Context, call core.Call, done core.Result) error {
				return of(&call).Undo(ctx, call, done)
			}
		}
		a.Do = func(ctx context.Context, call core.Call) (core.Result, error) { return of(&call).Do(ctx, call) }
	}
	return all
}
