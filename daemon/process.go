package daemon

import (
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
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

// ReleasePages drops the pages of the program's file from memory, if Linux lists them. Only the start reads 5 of its
// 25 MiB. The kernel loads pages that are still needed again when they are read, usually from its cache.
func ReleasePages() {
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	self, err := os.Executable()
	if err != nil {
		return
	}
	var from, to uintptr
	for line := range strings.Lines(string(maps)) { // see proc_pid_smaps(5)
		f := strings.Fields(line)
		switch {
		case !strings.HasSuffix(f[0], ":"): // the next mapping
			from, to = 0, 0
			if len(f) == 6 && f[5] == self && !strings.Contains(f[1], "w") {
				_, _ = fmt.Sscanf(f[0], "%x-%x", &from, &to)
			}
		case f[0] == "Anonymous:" && f[1] == "0" && from < to: // all pages are those of the file
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, from, to-from, syscall.MADV_DONTNEED)
		}
	}
}
