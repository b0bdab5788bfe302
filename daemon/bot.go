package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"synthbot/admin"
	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/command"
	"synthbot/core/document"
	"synthbot/core/engine"
	"synthbot/core/recon"
	"synthbot/core/turn"
	"synthbot/daemon/settings"
	"synthbot/memory"
)

// Bot is a store, the turns on it, and what is exchanged when the configuration
// changes: persona, engines, plugins, catalogue, interfaces.
type Bot struct {
	env     *Env
	log     *slog.Logger
	Store   core.Store
	Db      *memory.DB      // the store, where it is one of ours; else nil
	changes *placeChanges   // the settings that users changed by command
	runtime *action.Runtime // rate limits and what is busy outlive a reload
	metrics *admin.Metrics
	traces  *admin.Traces
	stages  admin.Running          // the turns that run, while the page is served
	page    atomic.Pointer[served] // the admin's page; nil: it is not served
	began   time.Time
	ledger  engine.Ledger // nil: nothing is remembered of what was spent
	Turns   *turn.Turns

	changed    chan struct{} // a token when a plugin's actions are others
	again      chan struct{} // a token when the configuration is to be read again; nil: it cannot be
	reloaded   chan struct{} // a token when it was read again
	exchange   sync.Mutex    // held while parts are exchanged
	told       told
	claims     claims
	others     sync.WaitGroup // what goes on beside: telling admins, putting plugins away
	full       atomic.Bool    // the disk is
	conditions conditions
	pdfs       chan struct{} // a token for each process that may read a PDF now

	mu      sync.Mutex
	parts   *parts
	running []*worker // in the order in which they were started
	life    *lives    // while it runs
}

// parts are what one configuration describes.
type parts struct {
	Config     *Config
	cast       *cast
	settings   *resolver
	Engines    *engine.Chain
	plugins    []loaded
	Commands   *command.Registry
	Snapshot   *action.Snapshot
	Interfaces []core.Interface
	small      *recon.Small // nil: no small model is asked
}

// Maker is what interfaces are made with.
type Maker struct {
	*Env
	config *Config
	log    *slog.Logger
	specs  []command.Spec
	admins []core.Path
	tell   func(text string)  // tells the admins
	broken func(key any) bool // whether a running interface has failed
}

// making makes the interfaces of a bot.
type making func(Maker) ([]core.Interface, error)

// describe puts together what a configuration describes; before are the parts in
// force, of which is kept what did not change.
func (b *Bot) describe(c *Config, before *parts, interfaces making, further ...core.Plugin) (*parts, error) {
	p := &parts{Config: c, cast: c.Cast}
	p.settings = c.resolver(b.changes, p.scopes)
	var kept []loaded
	if before != nil {
		kept = before.plugins
	}
	var err error
	if p.Engines, err = c.engines(b.engineOptions(p)); err != nil {
		return nil, err
	}
	b.metrics.Engines(p.Engines.Names()...)
	if p.plugins, err = b.load(c, kept); err != nil {
		return nil, err
	}
	if p.Commands, err = b.commands(c, p.plugins); err != nil {
		return nil, err
	}
	d := &desk{b: b, log: b.log}
	m := Maker{Env: b.env, config: c, log: b.log, specs: p.Commands.Specs(core.Bot), admins: b.admins(c), tell: d.Admins, broken: b.broken}
	if p.Interfaces, err = interfaces(m); err != nil {
		return nil, err
	}
	if p.small, err = b.small(p); err != nil {
		return nil, err
	}
	return p, p.catalogue(p.policy(), further...)
}

// catalogue gathers the actions of all plugins and interfaces, under a policy.
func (p *parts) catalogue(policy action.Policy, further ...core.Plugin) error {
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

// admins are the people who may do everything: those of the configuration, and
// those who were made admins since.
func (b *Bot) admins(c *Config) []core.Path {
	return append(paths(c.Bot.Admins), b.claimedAdmins()...)
}

// Assemble puts a bot together: open gives it its store, and interfaces makes its
// interfaces, which may keep things there. Whoever assembled it closes it.
func (p *Env) Assemble(c *Config, log *slog.Logger, open func() (core.Store, error), interfaces making, further ...core.Plugin) (*Bot, error) {
	store, err := open()
	if err != nil {
		return nil, err
	}
	b := &Bot{
		env: p, log: log, Store: store, metrics: admin.NewMetrics(), traces: new(admin.Traces), began: p.Clock(), changed: make(chan struct{}, 1),
		pdfs:    make(chan struct{}, pdfCrowd),
		runtime: action.NewRuntime(action.Options{Clock: p.Clock, Log: inRoom(log, "core/action")}),
	}
	b.conditions.clock, b.conditions.tell, b.conditions.again = p.Clock, (&desk{b: b, log: log}).announce, b.tell
	if b.Db, _ = store.(*memory.DB); b.Db != nil {
		b.ledger = &ledger{db: b.Db, cost: b.cost, log: log}
	}
	if b.changes, err = settings.Open[settings.Settings](context.Background(), b.Items("bot")); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	if b.parts, err = b.describe(c, nil, interfaces, further...); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	b.embed(b.parts)
	b.Turns = turn.New(b.options(b.parts))
	p.bot.Store(b)
	return b, nil
}

// options is what turns with these parts run on.
func (b *Bot) options(p *parts) turn.Options {
	var catalogue action.Catalogue
	catalogue.Swap(p.Snapshot)
	c := p.Config
	clock := c.Clock(b.env.Clock)
	o := turn.Options{
		Store: b.Store, Catalogue: &catalogue, Clock: clock, Log: inRoom(b.log, "core/turn"),
		Runtime:  b.runtime,
		Asker:    turn.Thinking(p.showing(b.budgeted(p, clock)), p.thinker, inRoom(b.log, "core/turn")),
		Persona:  func(place core.Path, user string) core.Persona { return p.personaAt(place).For(user) },
		Settings: p.turnSettings,
		Access:   c.Access, Admins: b.admins(c), Names: p.cast.names(), Config: c.turnConfig(),
		Language: string(c.Bot.Language), Scope: c.Prompt.Scope, Lite: c.Prompt.Lite, Shares: c.Shares,
		Chooser:   p.chooser,
		Reaches:   func(place core.Path) bool { return b.reaches(p.at(place), place) },
		Carrier:   p.carrier,
		Recons:    []core.Recon{recon.New()},
		Injectors: make(map[string]core.Injector),
		Observers: []core.Observer{b.metrics, b.traces, &b.conditions},
		Watchers:  b.watchers(c),
		Commands:  p.Commands,
		Asleep:    p.isAsleep,
		Epoch:     b.Facts().Epoch,
		Open:      b.open(p),
	}
	if p.small != nil {
		o.Recons = append(o.Recons, p.small)
	}
	for _, i := range p.Interfaces {
		equip(&o, i)
	}
	for _, l := range p.plugins {
		equip(&o, l.Plugin)
		if l.name == PairingName {
			last := len(o.Gates) - 1
			o.Gates[last] = exempt{o.Gates[last], &c.Access}
		}
	}
	return o
}

// equip adds what a plugin is able to do.
func equip(o *turn.Options, p core.Plugin) {
	if x, ok := p.(core.Injector); ok {
		o.Injectors[p.Name()] = x
	}
	if x, ok := p.(core.Recon); ok {
		o.Recons = append(o.Recons, x)
	}
	if x, ok := p.(core.Observer); ok {
		o.Observers = append(o.Observers, x)
	}
	if x, ok := p.(core.Biographer); ok {
		o.Bios = append(o.Bios, x)
	}
	if x, ok := p.(core.Gate); ok {
		o.Gates = append(o.Gates, x)
	}
}

// open reads what people attach, as far as an engine can make use of it.
func (b *Bot) open(p *parts) func(context.Context, core.Path, []core.Attachment) turn.Opened {
	d := &desk{b: b, log: b.log}
	o := document.Options{Fetch: d.Fetch, PDF: b.pdfText, Log: inRoom(b.log, "core/document")}
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
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.parts.Config.Cost(name, u)
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
	if i == nil || b.broken(i) {
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
