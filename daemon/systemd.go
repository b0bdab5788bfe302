package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"
)

// notifyTime is how long a message to systemd may take.
const notifyTime = time.Second

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

// reloading is the message of sd_notify(3) that begins a reload.
func reloading() string {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return daemon.SdNotifyReloading
	}
	return fmt.Sprintf("%s\nMONOTONIC_USEC=%d", daemon.SdNotifyReloading, now.Nano()/1000)
}

// watchdog notifies systemd regularly, as long as the bot is alive, until ctx ends.
func watchdog(ctx context.Context, log *slog.Logger, alive func(context.Context) error) {
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
		if err := alive(ctx); err != nil {
			log.Error("no pulse", "err", err)
			continue
		}
		notifySystemd(log, daemon.SdNotifyWatchdog)
	}
}
