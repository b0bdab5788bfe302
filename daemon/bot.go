package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/command"
	"synthbot/core/document"
	"synthbot/core/engine"
	"synthbot/core/recon"
	"synthbot/core/turn"
)

// Bot is one running bot: the parts that its configuration describes, and what outlives
// a change of the configuration.
type Bot struct {
	env     *Env
	log     *slog.Logger
	Data    *Storage
	changes *placeChanges   // the settings that users changed by command
	runtime *action.Runtime // rate limits and running actions
	Turns   *turn.Turns
	parts   atomic.Pointer[parts] // in force

	alerts  *alerts
	outbox  *outbox
	workers *workers
	monitor *monitor
	reloads *reloads
	page    *pageServer
	claim   *adminClaim
	pdfs    pdfReader
}

// InForce returns the parts in force; nil before the bot is assembled.
func (b *Bot) InForce() *parts { return b.parts.Load() }

// Outbox sends messages outside of turns.
func (b *Bot) Outbox() core.Desk { return b.outbox }

// parts are what one configuration describes.
type parts struct {
	Config     *Config
	personas   *personas
	settings   *resolver
	Engines    *engine.Chain
	plugins    []loaded
	Commands   *command.Registry
	Snapshot   *action.Snapshot
	Interfaces []core.Interface
	small      *recon.Small // nil: no small model is asked
}

// runners are the parts that work in the background.
func (p *parts) runners() (all []runner) {
	for _, l := range p.plugins {
		if r, ok := l.Plugin.(core.Runner); ok {
			all = append(all, runner{"plugin " + l.Name(), l.Plugin, r})
		}
	}
	if p.small != nil {
		all = append(all, runner{"recon", p.small, p.small})
	}
	return all
}

// collectActions gathers the actions of all plugins and interfaces, under the policy of
// the configuration.
func (p *parts) collectActions(further ...core.Plugin) error {
	var all []core.Plugin
	for _, i := range p.Interfaces {
		all = append(all, i)
	}
	for _, l := range p.plugins {
		all = append(all, l.Plugin)
	}
	snapshot, err := action.Build(append(all, further...)...)
	if err != nil {
		return UsageError{fmt.Errorf("actions: %w", err)}
	}
	policy := p.policy()
	for i := range p.Config.Enabled {
		e := &p.Config.Enabled[i]
		root, err := core.MakePath(e.Name)
		if err != nil {
			return err
		}
		if names := e.withheld(snapshot.All()); len(names) > 0 {
			policy.Rules = slices.Insert(policy.Rules, 0, action.Rule{Path: root, Actions: names, Permission: action.Nobody})
		}
	}
	p.Snapshot = snapshot.With(policy)
	return nil
}

// options is what turns with these parts run on.
func (b *Bot) options(p *parts) turn.Options {
	var catalogue action.Catalogue
	catalogue.Swap(p.Snapshot)
	c := p.Config
	clock := c.Clock(b.env.Clock)
	o := turn.Options{
		Store: b.Data.Store, Catalogue: &catalogue, Clock: clock, Log: inRoom(b.log, "core/turn"),
		Runtime:  b.runtime,
		Asker:    turn.Thinking(p.showing(b.budgeted(p, clock)), p.thinker, inRoom(b.log, "core/turn")),
		Settings: p.turnSettings,
		Access:   c.Access, Admins: b.admins(c), Names: append([]string{c.Bot.Name}, p.personas.names()...), Config: c.turnConfig(),
		Epoch: b.Data.Facts().Epoch,
		Prompt: turn.Prompt{
			Persona:  func(place core.Path, user string) core.Persona { return p.personaAt(place).For(user) },
			Language: string(c.Bot.Language), Scope: c.Prompt.Scope, Lite: c.Prompt.Lite, Shares: c.Shares,
			Open: b.open(p),
		},
		Places: turn.Places{
			Chooser: p.chooser, Carrier: p.carrier, Asleep: p.isAsleep,
			Reaches: func(place core.Path) bool { return b.reaches(p.at(place), place) },
		},
		Plugins: turn.Plugins{
			Commands: p.Commands, Recons: []core.Recon{recon.New()}, Watchers: b.page.watchers(c),
			Observers: []core.Observer{b.monitor.metrics, b.monitor.traces, b.alerts},
		},
	}
	if p.small != nil {
		o.Plugins.Recons = append(o.Plugins.Recons, p.small)
	}
	for _, i := range p.Interfaces {
		o.Plugins.Add(i)
	}
	for _, l := range p.plugins {
		o.Plugins.Add(l.Plugin)
		if l.name == PairingName {
			last := len(o.Plugins.Gates) - 1
			o.Plugins.Gates[last] = exempt{o.Plugins.Gates[last], &c.Access}
		}
	}
	return o
}

// open reads what people attach, as far as an engine can make use of it.
func (b *Bot) open(p *parts) func(context.Context, core.Path, []core.Attachment) turn.Opened {
	o := document.Options{Fetch: b.outbox.Fetch, PDF: b.pdfs.text, Log: inRoom(b.log, "core/document")}
	for i := range p.Config.Engines {
		if e := &p.Config.Engines[i]; !e.Disabled {
			o.Vision, o.Hearing = o.Vision || e.Vision, o.Hearing || e.Hearing
		}
	}
	return func(ctx context.Context, place core.Path, files []core.Attachment) turn.Opened {
		return turn.Opened(document.Open(ctx, o, place, files))
	}
}

// cost is what a use of an engine costs now.
func (b *Bot) cost(name string, u core.Usage) float64 {
	return b.InForce().Config.Cost(name, u)
}

// showing lets interfaces that can do so show answers while they are written:
// not where a reviewer may still strike something out.
func (p *parts) showing(a core.Asker) core.Asker {
	able := slices.ContainsFunc(p.Interfaces, func(i core.Interface) bool { _, ok := i.(core.Drafter); return ok })
	if !able || p.Snapshot.Reviewed() {
		return a
	}
	return engine.Showing(a, func(place core.Path, text string) {
		if d, ok := p.at(place).(core.Drafter); ok {
			d.Draft(place, text)
		}
	})
}

// at is the interface that serves a place; nil where there is none.
func (p *parts) at(place core.Path) core.Interface {
	for _, i := range p.Interfaces {
		if i.Name() == place.Interface() {
			return i
		}
	}
	return nil
}

// reaches reports whether an interface can speak in a place now: there may be none,
// since it was taken out of the configuration or lives in another process; or it
// has failed.
func (b *Bot) reaches(i core.Interface, place core.Path) bool {
	if i == nil || b.workers.failed(i) {
		return false
	}
	r, limited := i.(core.Reacher)
	return !limited || r.Reaches(place)
}

// scopes are the further subtrees that a place belongs to, as its interface knows.
func (p *parts) scopes(place core.Path) []core.Path {
	s, ok := p.at(place).(core.Scoper)
	if !ok {
		return nil
	}
	return s.Scopes(place)
}

// thinker is the ability of a place's interface to show that the bot thinks.
func (p *parts) thinker(place core.Path) core.Thinker {
	t, _ := p.at(place).(core.Thinker)
	return t
}

// carrier is the ability of a place's interface to send files.
func (p *parts) carrier(place core.Path) core.Carrier {
	c, _ := p.at(place).(core.Carrier)
	return c
}

// chooser is the ability of a place's interface to ask with buttons.
func (p *parts) chooser(place core.Path) core.Chooser {
	c, _ := p.at(place).(core.Chooser)
	return c
}

// Where a service has its things.
const (
	ServiceConfig = "/etc/synthbot/config.toml"
	ServiceState  = "/var/lib/synthbot"
)

// DataDir is where the database lives.
func (c *Config) DataDir(getenv func(string) string) (string, error) {
	switch {
	case c.Bot.DataDir != "":
		return c.Beside(c.Bot.DataDir), nil
	case getenv("STATE_DIRECTORY") != "":
		return getenv("STATE_DIRECTORY"), nil
	case ofService(c.File, ServiceConfig, ServiceState):
		return ServiceState, nil
	case getenv("XDG_STATE_HOME") != "":
		return filepath.Join(getenv("XDG_STATE_HOME"), "synthbot"), nil
	case getenv("HOME") != "":
		return filepath.Join(getenv("HOME"), ".local", "state", "synthbot"), nil
	}
	return "", Usagef("no place for the database: set data_dir in [bot], or $STATE_DIRECTORY or $HOME")
}

// ofService reports whether a configuration is the service's, which has its state
// there already: systemd tells its daemon alone where that is.
func ofService(file, config, state string) bool {
	if full, err := filepath.Abs(file); err != nil || full != config {
		return false
	}
	_, err := os.Lstat(state) // what it leads to may be closed to us
	return err == nil
}

// Beside resolves a path of the configuration file against its folder.
func (c *Config) Beside(path string) string {
	if filepath.IsAbs(path) || c.File == "" {
		return path
	}
	return filepath.Join(filepath.Dir(c.File), path)
}
