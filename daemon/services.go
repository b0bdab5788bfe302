package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/coreos/go-systemd/v22/daemon"

	"synthbot/admin"
	"synthbot/core/txt"
)

// serve starts what only a daemon does, until intake ends: the watchdog, metrics, the
// admin's page, the control socket, and the watch over the files of the configuration.
// wait returns when all of it is over.
func (b *Bot) serve(intake context.Context, l Life) (wait func()) {
	if l.Carry == nil {
		return func() {}
	}
	var services sync.WaitGroup
	services.Go(func() { watchdog(intake, b.log, b.monitor.alive) })
	metrics := func(net.Addr) http.Handler { return b.monitor.metrics.Handler(b.monitor.alive, b.monitor.ready) }
	services.Go(func() { serveHTTP(intake, b.log, "metrics", l.Config.Metrics.Listen, metrics) })
	services.Go(func() { b.page.serve(intake, l.Config.Admin.Listen) })
	tools := &toolServer{b, make(chan struct{}, maxToolCalls)}
	services.Go(func() { tools.serve(intake, l.Config.served().Listen) })
	services.Go(b.openControl(intake, l.Carry))
	services.Go(b.reloads.openWatch(intake))
	notifySystemd(b.log, daemon.SdNotifyReady)
	for _, job := range b.Data.DB.RefusedJobs() {
		b.alerts.report("This is set aside for a day, because it blocked the database three times: " + txt.Line(job))
	}
	b.log.Info("running", "version", b.env.Version, "interfaces", len(b.InForce().Interfaces),
		"actions", len(b.InForce().Snapshot.All()), "engines", b.InForce().Engines.Names())
	return func() {
		notifySystemd(b.log, daemon.SdNotifyStopping)
		b.log.Info("stopping")
		services.Wait()
	}
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
