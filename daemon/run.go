package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"

	"synthbot/admin"
	"synthbot/core"
	"synthbot/core/txt"
	"synthbot/interfaces/console"
)

// Run runs a bot of the configuration until ctx ends: a signal lets it read the
// configuration again, and carry carries out what other processes ask of it.
func (p *Env) Run(ctx context.Context, grace time.Duration, hup <-chan os.Signal, carry carrying) error {
	cfg, err := p.MustLoad()
	if err != nil {
		return err
	}
	log := p.Logger(cfg, slog.LevelDebug)
	if len(cfg.Enabled) == 0 {
		return cfg.nobody()
	}
	b, err := p.Assemble(cfg, log,
		func() (core.Store, error) { return p.OpenStore(cfg, log) },
		func(m Maker) ([]core.Interface, error) { return cfg.staffed(m, nil) })
	if err != nil {
		return err
	}
	b.again, b.reloaded = make(chan struct{}, 1), make(chan struct{}, 1)
	return errors.Join(b.live(ctx, grace, func(life *lives) { b.serve(life, hup, carry) }), b.Close())
}

// serve is the daemon's life once everything is up.
func (b *Bot) serve(life *lives, hup <-chan os.Signal, carry carrying) {
	var others sync.WaitGroup
	others.Go(func() { b.watchdog(life.intake) })
	address := b.parts.Config.Metrics.Listen
	others.Go(func() { b.serveMetrics(life.intake, address) })
	pageAt := b.parts.Config.Admin.Listen
	others.Go(func() { b.servePage(life.intake, pageAt) })
	others.Go(b.openControl(life.intake, carry))
	others.Go(b.openWatch(life.intake))
	b.notify(daemon.SdNotifyReady)
	b.tellAside()
	b.log.Info("running", "version", b.env.Version, "interfaces", len(b.parts.Interfaces),
		"actions", len(b.parts.Snapshot.All()), "engines", b.parts.Engines.Names())
	for {
		select {
		case <-hup:
			b.reread()
			continue
		case <-b.again:
			b.reread()
			continue
		case <-life.intake.Done():
		}
		break
	}
	b.notify(daemon.SdNotifyStopping)
	b.log.Info("stopping")
	others.Wait()
}

// reread reads the configuration again; admins are told of a refusal, and which one
// stays in force.
func (b *Bot) reread() {
	if err := b.Reload(); err != nil {
		c := b.InForce().Config
		since := c.read.Format(time.DateTime)
		b.log.Error("configuration refused, the old one stays in force", "file", c.File, "since", since, "err", err)
		b.tell("The configuration was refused, the one of " + since + " stays in force: " + txt.Line(err.Error()))
	}
}

// serveMetrics lets this machine look at metrics and health until life ends.
func (b *Bot) serveMetrics(life context.Context, address string) {
	if address == "" {
		return
	}
	b.serveAt(life, "metrics", address, func(net.Addr) http.Handler { return b.metrics.Handler(b.alive, b.ready) })
}

// serveAt serves what make makes until life ends; the bot lives without it.
func (b *Bot) serveAt(life context.Context, what, address string, make func(net.Addr) http.Handler) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		b.log.Error(what+" not served", "err", err)
		return
	}
	b.log.Info(what, "address", listener.Addr().String())
	server := admin.Server(make(listener.Addr()))
	stop := context.AfterFunc(life, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		b.log.Error(what+" no longer served", "err", err)
	}
}

// Reload reads and checks the whole configuration, and then changes what
// differs. Whatever is wrong with it leaves the old one in force.
func (b *Bot) Reload() error {
	b.exchange.Lock()
	defer b.exchange.Unlock()
	b.notify(reloading())
	defer b.notify(daemon.SdNotifyReady)
	p, old := b.env, b.parts
	cfg, err := p.MustLoad()
	if err != nil {
		return err
	}
	was, err1 := old.Config.DataDir(p.Getenv)
	is, err2 := cfg.DataDir(p.Getenv)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if was != is {
		return Usagef("%s: bot.data_dir: changes with a restart only", cfg.File)
	}
	if len(cfg.Enabled) == 0 {
		return cfg.nobody()
	}
	if err := unmoved(old.Config, cfg); err != nil {
		return err
	}
	next, err := b.describe(cfg, old, func(m Maker) ([]core.Interface, error) { return cfg.staffed(m, old) })
	if err != nil {
		return err
	}
	p.logs.set(cfg.Log.Level, cfg.roomLevels(), slog.LevelDebug)
	b.log.Info("reloaded", "file", cfg.File)
	err = b.replace(b.life, next)
	ring(b.reloaded)
	return err
}

// MakeInterfaces makes the interfaces that are enabled; one whose table is the same
// as in the old configuration is taken over as it is.
func (c *Config) MakeInterfaces(m Maker, old *parts) ([]core.Interface, error) {
	var all []core.Interface
	faulty := false
	for _, e := range c.Enabled {
		if i := same(e, old, &m); i != nil && !m.broken(i) {
			all = append(all, i)
			continue
		}
		i, err := e.make(m, e.Name, e.own)
		if err != nil {
			faulty = true
			e.fault(err)
			continue
		}
		all = append(all, i)
	}
	if faulty {
		return nil, c.Document.Err()
	}
	return all, nil
}

// staffed are the daemon's interfaces: those of the configuration, and the hall
// for those who come in by the control socket.
func (c *Config) staffed(m Maker, old *parts) ([]core.Interface, error) {
	all, err := c.MakeInterfaces(m, old)
	if err != nil || slices.ContainsFunc(all, func(i core.Interface) bool { return i.Name() == hallName }) {
		return all, err
	}
	if old != nil {
		if h := old.hall(); h != nil {
			return append(all, h), nil
		}
	}
	return append(all, console.NewHall(hallName)), nil
}

// hallName is the interface of terminals that come and go.
const hallName = "console"

// hall is where guests sit; nil where the daemon has a console of its own.
func (p *parts) hall() *console.Hall {
	for _, i := range p.Interfaces {
		if h, ok := i.(*console.Hall); ok {
			return h
		}
	}
	return nil
}

func (c *Config) nobody() error {
	return Usagef("%s: interfaces: none is enabled, so nobody could talk to the bot; enable one, or try `synthbot chat`", c.File)
}

// unmoved refuses to change what holds on to this process's own input, output and
// addresses.
func unmoved(old, next *Config) error {
	held := func(c *Config) (list []any) {
		for _, e := range c.Enabled {
			if e.fixed {
				list = append(list, e.Name, e.own)
			}
		}
		return list
	}
	if !reflect.DeepEqual(held(old), held(next)) {
		return Usagef("%s: interfaces: a console changes with a restart only", next.File)
	}
	if old.Metrics != next.Metrics {
		return Usagef("%s: metrics.listen: changes with a restart only", next.File)
	}
	if old.Log.Format != next.Log.Format {
		return Usagef("%s: log.format: changes with a restart only", next.File)
	}
	if old.Admin != next.Admin {
		return Usagef("%s: admin.listen: changes with a restart only", next.File)
	}
	return nil
}

// same returns the interface that was made for an equal table, the same commands
// and the same admins.
func same(e enabled, old *parts, m *Maker) core.Interface {
	if old == nil || !reflect.DeepEqual(old.Commands.Specs(core.Bot), m.specs) || !slices.Equal(old.Config.Bot.Admins, m.config.Bot.Admins) {
		return nil
	}
	for k, was := range old.Config.Enabled {
		if was.Name == e.Name && was.kind == e.kind && reflect.DeepEqual(was.own, e.own) {
			return old.Interfaces[k]
		}
	}
	return nil
}

// reloading is the message of sd_notify(3) that begins a reload.
func reloading() string {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return daemon.SdNotifyReloading
	}
	return fmt.Sprintf("%s\nMONOTONIC_USEC=%d", daemon.SdNotifyReloading, now.Nano()/1000)
}

// notifyTime is how long systemd may take to hear something: nobody waits for it
// longer, least of all whoever exchanges parts.
const notifyTime = time.Second

// notify tells systemd, where it started us.
func (b *Bot) notify(state string) {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return
	}
	if err := notifyAt(name, state); err != nil {
		b.log.Warn("systemd was not told", "state", state, "err", err)
	}
}

func notifyAt(name, state string) error {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetWriteDeadline(time.Now().Add(notifyTime)); err != nil {
		return err
	}
	_, err = conn.Write([]byte(state))
	return err
}

// watchdog tells systemd that the bot is alive, as long as it is.
func (b *Bot) watchdog(ctx context.Context) {
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil || every == 0 {
		return
	}
	tick := time.NewTicker(every / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := b.alive(ctx); err != nil {
			b.log.Error("no pulse", "err", err)
			continue
		}
		b.notify(daemon.SdNotifyWatchdog)
	}
}
