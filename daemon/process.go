package daemon

import (
	"runtime/debug"
	"syscall"
)

// PrepareProcess changes how the process of a daemon ends. A crash ends it by SIGABRT, because Go's usual exit status
// is that of a wrong configuration, after which systemd does not restart the bot. No core dump is written: it would
// contain secrets.
func PrepareProcess() {
	debug.SetTraceback("crash")
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}) // systemd may forbid it, and sets it in the unit
}
