package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"

	"synthbot/admin"
	"synthbot/core"
	"synthbot/core/loop"
	"synthbot/core/txt"
	"synthbot/daemon/logs"
	"synthbot/memory"
)

// serve starts the services that only a daemon has: the watchdog, metrics, the admin page, the tool server,
// the control socket, and the watch on the configuration's files. They end with intake. wait waits until they have.
func (b *Bot) serve(intake context.Context, l RunOptions) (wait func()) {
	if l.RunCommand == nil {
		return func() {}
	}
	var services sync.WaitGroup
	services.Go(func() { watchdog(intake, b.log, b.monitor.alive) })
	metrics := func(net.Addr) http.Handler { return b.monitor.metrics.Handler(b.monitor.alive, b.monitor.ready) }
	services.Go(func() { serveHTTP(intake, b.log, "metrics", l.Config.Metrics.Listen, metrics) })
	services.Go(func() { b.page.serve(intake, l.Config.Admin.Listen) })
	tools := &toolServer{b, make(chan struct{}, maxToolCalls)}
	services.Go(func() { tools.serve(intake, l.Config.toolAccess().Listen) })
	services.Go(b.openControl(intake, l.RunCommand))
	services.Go(func() { b.reloads.watch(intake) })
	notifySystemd(b.log, daemon.SdNotifyReady)
	services.Go(func() { b.monitor.watch(intake) })
	services.Go(func() { b.monitor.watchDatabase(intake) })
	for _, job := range b.Data.DB.RefusedJobs() {
		b.alerts.report("This job is suspended for a day: it blocked the database three times: " + txt.Line(job))
	}
	former := memory.FormerCopy(b.Data.DB)
	if former != "" {
		b.alerts.report("I have converted the database to a new format. A copy of the old one is kept as " + former +
			" until somebody is forgotten: delete it when everything works.")
	}
	b.log.Info("running", "version", b.env.Version, "interfaces", len(b.InForce().Interfaces),
		"actions", len(b.InForce().Snapshot.All()), "engines", b.InForce().Engines.Names())
	if l.Ready != nil {
		l.Ready()
	}
	return func() {
		notifySystemd(b.log, daemon.SdNotifyStopping)
		b.log.Info("stopping")
		services.Wait()
	}
}

// serveHTTP serves HTTP at an address, unless it is "", until ctx ends. It only logs errors: the bot runs without.
func serveHTTP(ctx context.Context, log *slog.Logger, what, address string, handler func(net.Addr) http.Handler) {
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

const notifyTime = time.Second // how long a message to systemd may take

// notifySystemd sends systemd a state, if systemd started this process.
func notifySystemd(log *slog.Logger, state string) {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return
	}
	if err := notifyAt(name, state); err != nil {
		log.Warn("systemd was not notified", "state", state, "err", err)
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

func watchdog(ctx context.Context, log *slog.Logger, alive func(context.Context) error) {
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil || every == 0 {
		return
	}
	loop.Repeat(ctx, nil, func() time.Duration {
		if err := alive(ctx); err != nil {
			log.Error("the bot is not alive; the watchdog may restart it", "err", err)
		} else {
			notifySystemd(log, daemon.SdNotifyWatchdog)
		}
		return every / 3
	})
}

// monitor watches how the bot is doing, for alerts, metrics and health checks.
type monitor struct {
	*Bot
	metrics  *admin.Metrics
	traces   *admin.Traces
	failures sync.Map // the last failure of each engine by its name, an adminpage.Part
	began    time.Time
	end      context.CancelCauseFunc // stops the bot
	full     atomic.Bool             // the disk is full
	away     atomic.Bool             // the database's server cannot be reached
}

// outageHandler returns a function that the store calls with true when an outage begins, and with false when it ends.
// During an outage no messages are accepted. None get lost, because platforms keep what was not acknowledged.
// Afterwards failed turns are retried, and so is a reload that failed.
func (m *monitor) outageHandler(what string, state *atomic.Bool, begins, ends string) func(bool) {
	return func(on bool) {
		if m.InForce().Engines == nil {
			return // the bot is not built yet
		}
		state.Store(on)
		if on {
			m.alerts.set(what, false, begins)
			return
		}
		m.alerts.set(what, true, ends)
		m.Turns.Retry()
		if m.reloads.postponed.Load() {
			loop.Notify(m.reloads.requested)
		}
	}
}

// alive returns nil if turns can run and the store can commit. It also returns nil if the disk is full or the
// database server cannot be reached, because restarting the bot would not help.
func (m *monitor) alive(ctx context.Context) error {
	if m.away.Load() {
		return nil
	}
	if err := m.Turns.Pulse(ctx); !errors.Is(err, core.ErrFull) {
		return err
	}
	return nil
}

// ready returns nil if every interface receives messages, here or elsewhere, and the store can commit in its place.
func (m *monitor) ready(ctx context.Context) error {
	if m.full.Load() {
		return core.ErrFull
	}
	if memory.Displaced(m.Data.DB) {
		return errors.New("the database file was moved, deleted or replaced")
	}
	for _, i := range m.InForce().Interfaces {
		text := m.trouble(i)
		if text != "" && text != elsewhere {
			return fmt.Errorf("interface %s: %s", label(i), text)
		}
	}
	return m.Turns.Pulse(ctx)
}

// trouble returns why an interface receives no messages; "" if it does.
func (m *monitor) trouble(i core.Interface) string {
	w := m.workers.find(i)
	switch {
	case !m.workers.sharing.serves(i):
		return elsewhere
	case w == nil || w.ended():
		return "it has stopped"
	}
	r, ok := i.(core.Readier)
	if !ok {
		return ""
	}
	if err := r.Ready(); err != nil {
		return "it receives no messages: " + txt.Line(err.Error())
	}
	return ""
}

const stateInterval = 5 * time.Second // how often watch checks the bot and its interfaces

// watch alerts the admins about interfaces that run but receive no messages. It also sends systemd the state that
// `systemctl status` shows, whenever that changes. It returns when ctx ends.
func (m *monitor) watch(ctx context.Context) {
	sent := ""
	loop.Repeat(ctx, nil, func() time.Duration {
		m.checkPlatforms()
		state := m.state()
		if state != sent {
			notifySystemd(m.log, "STATUS="+state)
			sent = state
		}
		return stateInterval
	})
}

// watchDatabase alerts the admins while the database file is displaced. It returns when ctx ends. It is not a part of
// watch, because a look at the file can take as long as its file system hangs.
func (m *monitor) watchDatabase(ctx context.Context) {
	loop.Repeat(ctx, nil, func() time.Duration {
		displaced, text := memory.Displaced(m.Data.DB), "My database file is in its place again."
		if displaced {
			text = "Somebody has moved, deleted or replaced my database file, " + memory.FileName +
				". I still write to the former one: move it back, or run `synthbot backup FILE` before you stop me."
		}
		m.alerts.set("database file", !displaced, text)
		return stateInterval
	})
}

func (m *monitor) checkPlatforms() {
	for _, i := range m.InForce().Interfaces {
		r, ok := i.(core.Readier)
		if !ok {
			continue
		}
		name, w, err := interfaceCondition+label(i), m.workers.find(i), r.Ready()
		switch {
		case !m.workers.sharing.serves(i):
			m.alerts.set(name+receiving, true, name+": "+elsewhere+".")
		case w == nil || w.ended() || m.env.Clock().Sub(w.began) < recoveryTime:
		case err != nil:
			m.alerts.set(name+receiving, false, name+" receives no messages: "+txt.Line(err.Error()))
		default:
			m.alerts.set(name+receiving, true, name+receiving+" again.")
		}
	}
}

// state describes on one line what fails or, if nothing does, what runs.
func (b *Bot) state() string {
	var words []string
	for _, c := range b.alerts.failing() {
		words = append(words, c.text)
	}
	if len(words) > 0 {
		return txt.Line(strings.Join(words, " "))
	}
	p := b.InForce()
	for _, i := range p.Interfaces {
		if b.workers.sharing.serves(i) {
			words = append(words, label(i))
		}
	}
	served := cmp.Or(strings.Join(words, ", "), "nothing (waiting to take over from another worker)")
	return "running on " + served + " with " + strings.Join(p.Engines.Names(), ", ")
}

// RunCommand executes a command line in a running bot, with the files of its sender. It returns the exit status.
type RunCommand func(ctx context.Context, b *Bot, e *Env, args []string) int

// openControl opens the control socket. serve executes command lines until ctx ends, or logs why it cannot.
func (b *Bot) openControl(ctx context.Context, runCommand RunCommand) (serve func()) {
	dir, err := b.InForce().Config.DataDir(b.env.Getenv)
	var s *admin.Socket
	if err == nil {
		s, err = admin.ListenControl(dir)
	}
	run := func(ctx context.Context, a admin.Request, in, out, errs *os.File) int {
		e := &Env{Clock: b.env.Clock, Getenv: func(name string) string { return a.Env[name] }}
		e.In, e.Out, e.Err = &foreignFile{in, ctx}, &foreignFile{out, ctx}, &foreignFile{errs, ctx}
		return runCommand(ctx, b, e, a.Args)
	}
	return func() {
		if err != nil {
			b.log.Error("the control socket is not served", "err", err)
			return
		}
		s.Serve(ctx, logs.Room(b.log, "admin"), run)
	}
}

// foreignFile is another process's file. Reads and writes end with ctx: another program may use the terminal then.
type foreignFile struct {
	file *os.File
	ctx  context.Context
}

// SyscallConn implements syscall.Conn: the file may be a terminal.
func (r *foreignFile) SyscallConn() (syscall.RawConn, error) { return r.file.SyscallConn() }

// pollTime is how long a read or write may continue after its context has ended.
const pollTime = 100 // milliseconds

func (r *foreignFile) Read(p []byte) (n int, err error) {
	if err := r.await(unix.POLLIN); err != nil {
		if r.ctx.Err() != nil {
			err = io.EOF
		}
		return 0, err
	}
	return r.file.Read(p)
}

const pipeBuffer = 4096 // bytes that a pipe takes without blocking when it is ready (PIPE_BUF)

func (r *foreignFile) Write(p []byte) (n int, err error) {
	for n < len(p) {
		if err := r.await(unix.POLLOUT); err != nil {
			return n, err
		}
		m, err := r.file.Write(p[n:min(len(p), n+pipeBuffer)])
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// await waits until the file is ready for the events. If the context ends first, it returns the context's error.
func (r *foreignFile) await(events int16) error {
	conn, err := r.SyscallConn()
	if err != nil {
		return err
	}
	for {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		ready := false
		err := conn.Control(func(fd uintptr) {
			polled, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: events}}, pollTime)
			ready = polled > 0 || err != nil && err != syscall.EINTR
		})
		if err != nil || ready {
			return err
		}
	}
}
