package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"synthbot/admin"
	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/engine"
	"synthbot/core/recon"
	"synthbot/core/turn"
	"synthbot/memory"
)

// grace is how long turns may take to finish after the bot was told to end.
const grace = 20 * time.Second

// bot is a store, the turns on it, and what is exchanged when the configuration
// changes: persona, engines, catalogue, interfaces.
type bot struct {
	program *program
	log     *slog.Logger
	store   core.Store
	runtime *action.Runtime // rate limits and what is busy outlive a reload
	metrics *admin.Metrics
	ledger  engine.Ledger // nil: nothing is remembered of what was spent
	turns   *turn.Turns

	mu      sync.Mutex
	parts   *parts
	running []*listener // in the order in which they were started
}

// parts are what one configuration describes.
type parts struct {
	config     *Config
	cast       *cast
	engines    *engine.Chain
	snapshot   *action.Snapshot
	interfaces []core.Interface
}

// describe puts together what a configuration describes.
func (p *program) describe(c *Config, log *slog.Logger, interfaces []core.Interface, further ...core.Plugin) (*parts, error) {
	b := &parts{config: c, interfaces: interfaces, cast: c.cast}
	var err error
	if b.engines, err = c.engines(p, log); err != nil {
		return nil, err
	}
	plugins := make([]core.Plugin, len(interfaces))
	for i, driver := range interfaces {
		plugins[i] = driver
	}
	if b.snapshot, err = action.Build(append(plugins, further...)...); err != nil {
		return nil, usage{fmt.Errorf("actions: %w", err)}
	}
	b.snapshot = b.snapshot.With(c.policy())
	return b, nil
}

// assemble puts a bot together: open gives it its store, and then make its
// interfaces, which may keep things there. Whoever assembled it closes it.
func (p *program) assemble(c *Config, log *slog.Logger, open func() (core.Store, error), make func() ([]core.Interface, error), further ...core.Plugin) (*bot, error) {
	store, err := open()
	if err != nil {
		return nil, err
	}
	interfaces, err := make()
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	parts, err := p.describe(c, log, interfaces, further...)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	b := &bot{
		program: p, log: log, store: store, parts: parts, metrics: admin.NewMetrics(),
		runtime: action.NewRuntime(action.Options{Clock: p.clock, Log: log}),
	}
	if db, ok := store.(*memory.DB); ok {
		b.ledger = &ledger{db: db, cost: b.cost, log: log}
	}
	b.turns = turn.New(b.options(parts))
	return b, nil
}

// options is what turns with these parts run on.
func (b *bot) options(p *parts) turn.Options {
	var catalogue action.Catalogue
	catalogue.Swap(p.snapshot)
	c := p.config
	clock := c.clock(b.program.clock)
	o := turn.Options{
		Store: b.store, Catalogue: &catalogue, Clock: clock, Log: b.log,
		Runtime:  b.runtime,
		Asker:    turn.Thinking(p.showing(b.budgeted(p, clock)), p.thinker),
		Persona:  func(place core.Path, user string) core.Persona { return p.cast.at(place).For(user) },
		Settings: c.settings, Access: c.Access, Admins: paths(c.Bot.Admins), Names: p.cast.names(), Config: c.turnConfig(),
		Language: c.Bot.Language, Scope: c.Prompt.Scope, Lite: c.Prompt.Lite, Shares: c.Shares,
		Chooser:   p.chooser,
		Recons:    []core.Recon{recon.New()},
		Injectors: make(map[string]core.Injector),
	}
	o.Observers = append(o.Observers, b.metrics)
	for _, i := range p.interfaces {
		if x, ok := i.(core.Injector); ok {
			o.Injectors[i.Name()] = x
		}
		if x, ok := i.(core.Recon); ok {
			o.Recons = append(o.Recons, x)
		}
		if x, ok := i.(core.Observer); ok {
			o.Observers = append(o.Observers, x)
		}
	}
	return o
}

// budgeted asks the engines of p while there is something left to spend.
func (b *bot) budgeted(p *parts, clock func() time.Time) core.Asker {
	return engine.Budgeted(p.engines, p.config.Budget, engine.BudgetOptions{
		Ledger: b.ledger, Cost: p.config.cost, Clock: clock, Zone: clock().Location(), Log: b.log,
	})
}

// cost is what a use of an engine costs now.
func (b *bot) cost(name string, u core.Usage) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.parts.config.cost(name, u)
}

// showing lets interfaces that can do so show answers while they are written:
// not where a reviewer may still strike something out.
func (p *parts) showing(a core.Asker) core.Asker {
	able := slices.ContainsFunc(p.interfaces, func(i core.Interface) bool { _, ok := i.(core.Drafter); return ok })
	if !able || p.snapshot.Reviewed() {
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
	for _, i := range p.interfaces {
		if i.Name() == place.Interface() {
			return i
		}
	}
	return nil
}

// thinker is the ability of a place's interface to show that the bot thinks.
func (p *parts) thinker(place core.Path) core.Thinker {
	t, _ := p.at(place).(core.Thinker)
	return t
}

// chooser is the ability of a place's interface to ask with buttons.
func (p *parts) chooser(place core.Path) core.Chooser {
	c, _ := p.at(place).(core.Chooser)
	return c
}

// exchange puts other parts in force: turns that run keep theirs to the end,
// interfaces that are new are started, and those that are gone stop.
func (b *bot) exchange(life context.Context, next *parts) error {
	b.mu.Lock()
	old := b.parts
	b.parts = next
	b.mu.Unlock()
	for _, i := range old.interfaces {
		if !slices.Contains(next.interfaces, i) {
			b.hangUp(i)
		}
	}
	b.turns.Reconfigure(b.options(next))
	for _, i := range next.interfaces {
		if !slices.Contains(old.interfaces, i) {
			b.listen(life, i)
		}
	}
	return old.engines.Close()
}

// live runs the bot: turns first, then interfaces. It lasts as long as control
// does, which may change things meanwhile; when it returns, everything that
// live started is over.
// Turns that still run then have that much time to finish; what is cut short
// goes on in the next life.
func (b *bot) live(ctx context.Context, patience time.Duration, control func(life context.Context)) error {
	life, end := context.WithCancel(ctx)
	defer end()
	turns, rest := context.WithCancel(context.WithoutCancel(ctx))
	defer rest()
	work, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	over := make(chan error, 1)
	go func() {
		err := b.turns.Run(turns, work)
		if err != nil {
			end() // nobody would answer
		}
		over <- err
	}()
	for _, i := range b.parts.interfaces {
		b.listen(life, i)
	}
	control(life)
	err := b.hangUpAll()
	rest()
	late := time.AfterFunc(patience, abort)
	defer late.Stop()
	return errors.Join(<-over, err)
}

// Close ends what assemble began.
func (b *bot) Close() error {
	b.runtime.Wait()
	if l, ok := b.ledger.(*ledger); ok {
		l.wait()
	}
	return errors.Join(b.store.Close(), b.parts.engines.Close())
}

// listener is an interface at work.
type listener struct {
	core.Interface
	stop context.CancelFunc
	over chan struct{}
	err  error // once it is over
}

// listen starts an interface.
func (b *bot) listen(life context.Context, i core.Interface) {
	ctx, stop := context.WithCancel(life)
	l := &listener{Interface: i, stop: stop, over: make(chan struct{})}
	b.mu.Lock()
	b.running = append(b.running, l)
	b.mu.Unlock()
	go func() {
		defer close(l.over)
		if err := i.Listen(ctx, b.turns); err != nil && ctx.Err() == nil {
			l.err = fmt.Errorf("interface %s: %w", i.Name(), err)
			b.log.Error("interface ended", "interface", i.Name(), "err", err)
		}
	}()
}

// find returns the interface's listener.
func (b *bot) find(i core.Interface) *listener {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.running {
		if l.Interface == i {
			return l
		}
	}
	return nil
}

// hangUp stops one interface and waits for it.
func (b *bot) hangUp(i core.Interface) {
	l := b.find(i)
	if l == nil {
		return
	}
	l.stop()
	<-l.over
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running = slices.DeleteFunc(b.running, func(other *listener) bool { return other == l })
}

// hangUpAll stops all interfaces, the last one first, and returns their errors.
func (b *bot) hangUpAll() error {
	b.mu.Lock()
	running := b.running
	b.mu.Unlock()
	var errs []error
	for i := len(running) - 1; i >= 0; i-- {
		running[i].stop()
		<-running[i].over
		errs = append(errs, running[i].err)
	}
	return errors.Join(errs...)
}

// openStore opens the configuration's database, making it where there is none.
func (c *Config) openStore(p *program, log *slog.Logger) (core.Store, error) {
	dir, err := c.dataDir(p.getenv)
	if err != nil {
		return nil, err
	}
	db, err := memory.Open(dir, memory.Options{Log: log})
	if err != nil {
		return nil, err
	}
	p.db.Store(db)
	return db, nil
}

// dataDir is where the database lives.
func (c *Config) dataDir(getenv func(string) string) (string, error) {
	switch {
	case c.Bot.DataDir != "":
		return c.beside(c.Bot.DataDir), nil
	case getenv("STATE_DIRECTORY") != "":
		return getenv("STATE_DIRECTORY"), nil
	case getenv("XDG_STATE_HOME") != "":
		return filepath.Join(getenv("XDG_STATE_HOME"), "synthbot"), nil
	case getenv("HOME") != "":
		return filepath.Join(getenv("HOME"), ".local", "state", "synthbot"), nil
	}
	return "", usagef("no place for the database: set data_dir in [bot], or $STATE_DIRECTORY or $HOME")
}

// beside resolves a path of the configuration file against its folder.
func (c *Config) beside(path string) string {
	if filepath.IsAbs(path) || c.file == "" {
		return path
	}
	return filepath.Join(filepath.Dir(c.file), path)
}
