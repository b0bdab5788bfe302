package daemon

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// ReleasePages drops the pages of the program's file from memory. Only the start reads 5 of its 25 MiB. The kernel
// loads pages that are still needed again when they are read, usually from its cache.
func ReleasePages() {
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
		case f[0] == "Anonymous:" && f[1] == "0" && from < to: // all pages are those of the file
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, from, to-from, syscall.MADV_DONTNEED)
		}
	}
}
