// Package daemon is one running bot: it builds the bot from a configuration, starts,
// reloads and stops it. Env.Run is the whole program from top to bottom: read it first.
//
// It also holds what all rooms meet in: the configuration as a whole (Config), the lists of
// interfaces and plugins (interface_list.go, plugin_list.go), the bot's own chat commands,
// the alerts to admins and the control socket. These know each other, so that the package
// is larger than others. Command lines are in cmd/synthbot.
package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"synthbot/core"
	"synthbot/core/speech"
	"synthbot/core/turn"
)

// Life is what Run makes a bot of, and what for.
type Life struct {
	Config     *Config
	Log        *slog.Logger
	Open       func() (Store, error) // nil: the database, which is made if it is missing
	Interfaces makeInterfaces
	Look       func(*Bot) error // is called instead of running the bot; nil: it runs
	Grace      time.Duration    // for turns to finish when the bot stops
	Attended   bool             // the bot stops when its first interface does
	Carry      Carry            // carries out the commands of the control socket; nil: not a daemon
	Reload     <-chan os.Signal // requests that the configuration is read again
}

// Run is the program from top to bottom: it puts a bot together, runs it until ctx ends,
// and closes it. Each part is made with the help of those before it.
func (e *Env) Run(ctx context.Context, l Life) (err error) {
	b := e.newBot(l)

	// The store: conversations, the journal of turns, memories, and what plugins keep.
	if err := b.openStore(l); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()

	// Engines, plugins and interfaces: what the configuration describes. Those of a former
	// configuration that did not change are kept.
	b.reloads.build = func(c *Config) (p *parts, err error) {
		p = &parts{Config: c, personas: c.Personas, listener: speech.NewListener(&c.Speech)}
		p.speaker = speech.NewSpeaker(&c.Speech)
		p.settings = c.resolver(b.changes, p.scopes)
		if p.Engines, err = b.engines(p); err != nil {
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
		if p.small, err = b.small(p); err != nil {
			return nil, err
		}
		return p, p.collectActions()
	}
	p, err := b.reloads.build(l.Config)
	if err != nil {
		return err
	}

	// Turns: they receive messages, ask the engines and execute what these answer.
	b.Turns = turn.New(b.options(p))
	b.putInForce(p)
	if l.Look != nil {
		return l.Look(b)
	}

	// Start: plugins and turns first, then interfaces, which bring messages.
	r := b.start(ctx, p, l.Grace)
	stopServices := b.serve(r.intake, l)

	// Reload: build again, and replace what differs. Running turns keep the former parts.
	b.reloads.until(r.intake, l)

	// Stop: interfaces first, then turns, within the grace, and plugins last. Turns that are
	// cut short continue when the bot starts again.
	stopServices()
	return r.stop(l.Grace)
}

// running is a bot that runs.
type running struct {
	bot        *Bot
	intake     context.Context // ends when the bot begins to stop
	stopIntake context.CancelFunc
	stopTurns  context.CancelFunc // no further turn begins
	abort      context.CancelFunc // running turns are cut short
	stopTools  context.CancelFunc // plugins stop
	finished   chan error         // holds the result of the turns when all of them are over
}

// start starts the parts and the turns. stop ends them.
func (b *Bot) start(ctx context.Context, p *parts, grace time.Duration) *running {
	r := &running{bot: b, finished: make(chan error, 1)}
	lasting := context.WithoutCancel(ctx)
	r.intake, r.stopIntake = context.WithCancel(ctx)
	turns, stopTurns := context.WithCancel(lasting)
	work, abort := context.WithCancel(lasting)
	tools, stopTools := context.WithCancel(lasting)
	r.stopTurns, r.abort, r.stopTools = stopTurns, abort, stopTools
	b.workers.intake, b.workers.tools = r.intake, tools
	b.startPlugins(new(parts), p)
	go func() {
		err := b.Turns.Run(turns, work)
		if err != nil {
			r.stopIntake() // nobody would answer
		}
		r.finished <- err
	}()
	b.startInterfaces(new(parts), p)
	if b.env.Stopping != nil {
		context.AfterFunc(r.intake, func() { b.env.Stopping(grace) })
	}
	return r
}

// stop returns when everything that start began is over.
func (r *running) stop(grace time.Duration) error {
	err := r.bot.workers.stopAll(func(w *worker) bool { _, ok := w.key.(core.Interface); return ok })
	r.stopIntake()
	r.stopTurns()
	late := time.AfterFunc(grace, r.abort)
	defer late.Stop()
	defer r.abort()
	err = errors.Join(<-r.finished, err)
	r.stopTools()
	return errors.Join(err, r.bot.workers.stopAll(func(*worker) bool { return true }))
}
