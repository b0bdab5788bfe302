//go:build unix

package bolt

import (
	"os"
	"syscall"
)

// giveToOwner gives a file the owner of another one, if root asks.
func giveToOwner(file string, of os.FileInfo) error {
	owner, ok := of.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return os.Chown(file, int(owner.Uid), int(owner.Gid))
}
