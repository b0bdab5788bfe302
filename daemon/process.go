package daemon

import (
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// PrepareProcess changes how the process of a daemon ends. A crash ends it by SIGABRT, because Go's usual exit status
// is that of a wrong configuration, after which systemd does not restart the bot. No core dump is written: it would
// contain secrets. A write to a pipe that nobody reads any more, as to the log, fails instead of ending the process.
func PrepareProcess() {
	debug.SetTraceback("crash")
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}) // systemd may forbid it, and sets it in the unit
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)       // not Ignore, which started programs would inherit
}
