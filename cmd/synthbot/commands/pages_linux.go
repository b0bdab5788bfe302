package commands

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// releasePages gives back the pages of the program itself that are in memory, 5 of 25 MiB of which only a start
// reads. Those that are still needed come back as they are read, as a rule from the kernel's cache.
func releasePages() {
	self, err := os.Executable()
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/smaps")
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
		case f[0] == "Anonymous:" && f[1] == "0" && from < to: // else the file lacks what was written, as by a loader
			// It fails without harm.
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, from, to-from, syscall.MADV_DONTNEED)
		}
	}
}
