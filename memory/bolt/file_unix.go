//go:build unix

package bolt

import (
	"os"
	"syscall"
)

// unlock releases bbolt's lock on a file. Closing a file does not while it is mapped.
func unlock(f *os.File) { syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// isLocked locks a directory, and reports whether another process has. Some file systems cannot lock directories.
func isLocked(dir *os.File) bool {
	return syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == syscall.EWOULDBLOCK
}

// giveToOwner gives a file the owner of another one, if the process runs as root.
func giveToOwner(file string, of os.FileInfo) error {
	owner, ok := of.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return os.Chown(file, int(owner.Uid), int(owner.Gid))
}
