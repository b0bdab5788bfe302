// Package daemon runs a bot: it builds the bot from a configuration, starts, reloads and stops it. Env.Run is
// the whole program from top to bottom: read it first.
//
// It also holds what needs all other packages: the configuration as a whole (Config), the lists of interfaces
// and plugins (interface_list.go, plugin_list.go), the bot's own chat commands, the alerts to admins, the
// control socket, and the data and buttons of the admin's page. These depend on each other, so the package is
// larger than others. The command line is in cmd/synthbot/commands.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/speech"
	"synthbot/core/turn"
	"synthbot/core/txt"
)

// RunOptions configures one Run.
type RunOptions struct {
	Config     *Config
	Log        *slog.Logger
	Open       func() (Store, error) // opens the store; nil: the database, which is created if it is missing
	Interfaces interfaceMaker
	Inspect    func(*Bot) error // is called with the built bot instead of running it; nil: the bot runs
	Grace      time.Duration    // how long turns may take to finish when the bot stops
	Attended   bool             // the bot stops when its first interface does
	RunCommand RunCommand       // executes commands from the control socket; nil: the bot is not a daemon
	Ready      func()           // called once the bot runs, if RunCommand is set; may be nil
	Reload     <-chan os.Signal // each signal reloads the configuration; may be nil
}

// Run is the program from top to bottom: it builds a bot, runs it until ctx ends, and closes it. It blocks
// until everything has stopped. Each part is built from the parts before it.
func (e *Env) Run(ctx context.Context, l RunOptions) (err error) {
	b := e.newBot(l)
	ctx, b.monitor.end = context.WithCancelCause(ctx)
	defer b.monitor.end(nil)

	// The store: conversations, the journal of turns, memories, and what plugins keep.
	if err := b.openStore(l); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()

	// Engines, plugins and interfaces, as the configuration describes them. A reload keeps the plugins and
	// interfaces whose configuration did not change.
	b.reloads.build = func(c *Config) (p *parts, err error) {
		if err := c.followMoves(ctx, b.Data.Store, b.log); err != nil {
			return nil, err
		}
		p = &parts{Config: c, personas: e.withImported(c, b.log), listener: speech.NewListener(&c.Speech)}
		p.speaker = speech.NewSpeaker(&c.Speech)
		p.settings = c.resolver(b.changes, p.scopes)
		p.budget = b.newBudget(p)
		if p.Engines, err = b.newChain(p); err != nil {
			return nil, err
		}
		if p.plugins, err = b.plugins(c); err != nil {
			return nil, err
		}
		if p.Commands, err = b.commands(p); err != nil {
			return nil, err
		}
		if p.Interfaces, err = l.Interfaces(b.maker(p)); err != nil {
			return nil, err
		}
		if p.smallRecon, err = b.smallRecon(p); err != nil {
			return nil, err
		}
		return p, p.collectActions()
	}
	p, err := b.reloads.build(l.Config)
	if err != nil {
		return err
	}

	// Turns: they receive messages, ask the engines and execute the answered plans.
	b.Turns = turn.New(b.turnOptions(p))
	b.putInForce(p)
	if l.Inspect != nil {
		return l.Inspect(b)
	}

	// Start: plugins and turns first, then interfaces, which bring messages.
	intake, stop := b.start(ctx, p, l.Grace)
	stopServices := b.serve(intake, l)

	// Reload: build again, and replace what differs. Running turns keep the former parts.
	b.reloads.run(intake, l)

	// Stop: interfaces first, then turns, within the grace period, and plugins last. Interrupted turns continue
	// when the bot starts again. If another process has taken over the store, no turn can finish.
	stopServices()
	cause := context.Cause(ctx)
	if errors.Is(cause, core.ErrFenced) {
		return errors.Join(cause, stop(0))
	}
	return stop(b.workers.sharing.grace(l.Grace))
}

// start starts the parts and the turns, and returns at once. intake ends when the bot begins to stop. stop stops
// everything that start has started, and waits for it. Turns have the grace period to finish.
func (b *Bot) start(
	ctx context.Context, p *parts, grace time.Duration,
) (intake context.Context, stop func(grace time.Duration) error) {
	lasting := context.WithoutCancel(ctx)
	intake, stopIntake := context.WithCancel(ctx)
	turns, stopTurns := context.WithCancel(lasting) // when it ends, no new turns start
	work, abort := context.WithCancel(lasting)      // when it ends, running turns are interrupted
	tools, stopTools := context.WithCancel(lasting)
	b.workers.intake, b.workers.tools = intake, tools
	b.startPlugins(new(parts), p)
	finished := make(chan error, 1)
	go func() {
		err := b.Turns.Run(turns, work)
		if err != nil {
			stopIntake() // messages would not be answered
		}
		finished <- err
	}()
	b.startInterfaces(new(parts), p)
	b.workers.start(tools, "sharing", b.workers.sharing, b.workers.sharing.poll)
	if b.env.OnStopping != nil {
		context.AfterFunc(intake, func() { b.env.OnStopping(grace) })
	}
	return intake, func(grace time.Duration) error {
		err := b.workers.stopAll(func(w *worker) bool { _, ok := w.key.(core.Interface); return ok })
		stopIntake()
		stopTurns()
		late := time.AfterFunc(grace, abort)
		defer late.Stop()
		defer abort()
		err = errors.Join(<-finished, err)
		stopTools()
		return errors.Join(err, b.workers.stopAll(func(*worker) bool { return true }))
	}
}

// workers are the goroutines of interfaces, plugins and other work, each with a key. Safe for concurrent use.
type workers struct {
	log     *slog.Logger
	alerts  *alerts
	sharing *sharing // with other processes

	mu      sync.Mutex
	running []*worker // in the order of their start

	intake, tools context.Context // contexts of interfaces and of plugins; set before any worker starts
}

type worker struct {
	key    any
	began  time.Time
	cancel context.CancelFunc
	done   chan struct{}
	err    error // valid when done is closed
}

// start calls run in a goroutine. Its context ends with ctx, or when stop is called with the key. If run fails,
// start alerts the admins, and again once a worker of the same name has run for recoveryTime.
func (w *workers) start(ctx context.Context, name string, key any, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(ctx)
	one := &worker{key: key, began: w.alerts.clock(), cancel: cancel, done: make(chan struct{})}
	w.mu.Lock()
	w.running = append(w.running, one)
	w.mu.Unlock()
	w.alerts.restarted(name)
	go func() {
		defer close(one.done)
		recovery := time.AfterFunc(recoveryTime, func() { w.alerts.set(name, true, name+" runs again.") })
		err := run(ctx)
		recovery.Stop()
		if err != nil && ctx.Err() == nil {
			one.err = fmt.Errorf("%s: %w", name, err)
			w.log.Error("failed", "worker", name, "err", err)
			w.alerts.set(name, false, name+" has stopped: "+txt.Line(err.Error()))
		}
	}()
}

func (w *worker) ended() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

func (w *workers) find(key any) *worker {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.running, func(one *worker) bool { return one.key == key })
	if i < 0 {
		return nil
	}
	return w.running[i]
}

// failed reports whether the worker with a key has ended with an error. A reload replaces such a worker.
func (w *workers) failed(key any) bool {
	one := w.find(key)
	return one != nil && one.ended() && one.err != nil
}

// stop stops the worker with a key, if there is one, and waits for it.
func (w *workers) stop(key any) {
	one := w.find(key)
	if one == nil {
		return
	}
	one.cancel()
	<-one.done
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = slices.DeleteFunc(w.running, func(other *worker) bool { return other == one })
}

// stopAll stops the workers that match, in reverse order of their start, and returns their errors.
func (w *workers) stopAll(match func(*worker) bool) error {
	w.mu.Lock()
	running := slices.Clone(w.running)
	w.mu.Unlock()
	var errs []error
	for _, one := range slices.Backward(running) {
		if match(one) {
			w.stop(one.key)
			errs = append(errs, one.err)
		}
	}
	return errors.Join(errs...)
}

type runner struct {
	name string
	core.Runner
}

func (p *parts) runners() (all []runner) {
	for name, r := range pluginsWith[core.Runner](p) {
		all = append(all, runner{"plugin " + name, r})
	}
	if p.smallRecon != nil {
		all = append(all, runner{"recon", p.smallRecon})
	}
	return all
}

func (b *Bot) startPlugins(old, next *parts) {
	for _, r := range next.runners() {
		if !slices.Contains(old.runners(), r) {
			run := func(ctx context.Context) error { return b.workers.sharing.run(ctx, r) }
			b.workers.start(b.workers.tools, r.name, r.Runner, run)
		}
	}
}

// startInterfaces starts new interfaces. It makes the others publish the chat commands again.
func (b *Bot) startInterfaces(old, next *parts) {
	for _, i := range next.Interfaces {
		o, offers := i.(commandOfferer)
		switch {
		case !slices.Contains(old.Interfaces, i):
			b.workers.sharing.start(i, func() {
				b.workers.start(b.workers.intake, interfaceCondition+label(i), i, func(ctx context.Context) error {
					return i.Listen(ctx, b.Turns.Inbox())
				})
			})
		case offers:
			o.CommandsChanged()
		}
	}
}
