//go:build unix

package bolt

import (
	"os"
	"syscall"
)

// unlock takes bbolt's lock off a file. Closing it does not while it is mapped.
func unlock(f *os.File) { syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
