package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"synthbot/admin"
	"synthbot/core"
)

// Run runs a bot of the configuration until ctx ends. A signal makes it read the
// configuration again, and carry carries out the commands that come by the control
// socket. Turns that run when ctx ends have the grace to finish.
func (e *Env) Run(ctx context.Context, grace time.Duration, hup <-chan os.Signal, carry Carry) error {
	c, err := e.MustLoad()
	if err != nil {
		return err
	}
	if len(c.Enabled) == 0 {
		return c.noInterface()
	}
	log := e.Logger(c, slog.LevelDebug)
	b, err := e.Assemble(c, log, func() (core.Store, error) { return e.OpenStore(c, log) }, daemonInterfaces)
	if err != nil {
		return err
	}
	b.reloads.requested, b.reloads.done = make(chan struct{}, 1), make(chan struct{}, 1)
	err = b.live(ctx, grace, func(intake context.Context) { b.serve(intake, hup, carry) })
	return errors.Join(err, b.Close())
}

// serve does what only a daemon does, until intake ends.
func (b *Bot) serve(intake context.Context, hup <-chan os.Signal, carry Carry) {
	c := b.InForce().Config
	var services sync.WaitGroup
	services.Go(func() { watchdog(intake, b.log, b.monitor.alive) })
	metrics := func(net.Addr) http.Handler { return b.monitor.handler() }
	services.Go(func() { serveHTTP(intake, b.log, "metrics", c.Metrics.Listen, metrics) })
	services.Go(func() { b.page.serve(intake, c.Admin.Listen) })
	services.Go(b.openControl(intake, carry))
	services.Go(b.reloads.openWatch(intake))
	notifySystemd(b.log, daemon.SdNotifyReady)
	b.reportSetAside()
	b.log.Info("running", "version", b.env.Version, "interfaces", len(b.InForce().Interfaces),
		"actions", len(b.InForce().Snapshot.All()), "engines", b.InForce().Engines.Names())
	for intake.Err() == nil {
		select {
		case <-hup:
			b.reloads.reload()
		case <-b.reloads.requested:
			b.reloads.reload()
		case <-intake.Done():
		}
	}
	notifySystemd(b.log, daemon.SdNotifyStopping)
	b.log.Info("stopping")
	services.Wait()
}

// serveHTTP serves what handler makes until ctx ends. The bot lives without it.
func serveHTTP(
	ctx context.Context, log *slog.Logger, what, address string, handler func(net.Addr) http.Handler,
) {
	if address == "" {
		return
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		log.Error(what+" not served", "err", err)
		return
	}
	log.Info(what, "address", listener.Addr().String())
	server := admin.Server(handler(listener.Addr()))
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		log.Error(what+" no longer served", "err", err)
	}
}

// live runs the bot: plugins and turns first, then interfaces. It lasts as long as
// control does, which may reload meanwhile. When it returns, everything that it started
// is over: interfaces stop first, then turns finish within the grace, and plugins stop
// last. Turns that are cut short continue when the bot starts again.
func (b *Bot) live(ctx context.Context, grace time.Duration, control func(intake context.Context)) error {
	intake, stopIntake := context.WithCancel(ctx)
	defer stopIntake()
	turns, stopTurns := context.WithCancel(context.WithoutCancel(ctx))
	defer stopTurns()
	work, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	tools, stopTools := context.WithCancel(context.WithoutCancel(ctx))
	defer stopTools()
	b.workers.intake, b.workers.tools = intake, tools

	for _, p := range b.InForce().runners() {
		b.workers.startPlugin(p)
	}
	finished := make(chan error, 1)
	go func() {
		err := b.Turns.Run(turns, work)
		if err != nil {
			stopIntake() // nobody would answer
		}
		finished <- err
	}()
	var rebuilding sync.WaitGroup
	rebuilding.Go(func() { b.reloads.rebuildActions(intake) })
	for _, i := range b.InForce().Interfaces {
		b.listen(i)
	}
	if b.env.Stopping != nil {
		context.AfterFunc(intake, func() { b.env.Stopping(grace) })
	}
	control(intake)

	err := b.workers.stopAll(func(w *worker) bool { _, ok := w.key.(core.Interface); return ok })
	stopIntake()
	rebuilding.Wait()
	stopTurns()
	late := time.AfterFunc(grace, abort)
	defer late.Stop()
	err = errors.Join(<-finished, err)
	stopTools()
	return errors.Join(err, b.workers.stopAll(func(*worker) bool { return true }))
}

// ServeOne runs the bot until ctx or the interface ends.
func (b *Bot) ServeOne(ctx context.Context, grace time.Duration, i core.Interface) error {
	return b.live(ctx, grace, func(intake context.Context) {
		select {
		case <-b.workers.find(i).done:
		case <-intake.Done():
		}
	})
}

// listen starts an interface.
func (b *Bot) listen(i core.Interface) {
	in := announcing{b.Turns, b.alerts}
	b.workers.start(b.workers.intake, "interface "+i.Name(), i, listening{i, in})
}

// listening is an interface's Listen as a core.Runner.
type listening struct {
	core.Interface
	inbox core.Inbox
}

// Run implements core.Runner.
func (l listening) Run(ctx context.Context) error { return l.Listen(ctx, l.inbox) }

// Close ends what Assemble began.
func (b *Bot) Close() error {
	b.alerts.close()
	b.runtime.Wait()
	b.reloads.retiring.Wait()
	b.outbox.sending.Wait()
	return errors.Join(b.Data.close(), b.InForce().Engines.Close())
}
