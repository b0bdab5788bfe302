//go:build unix

package console

import (
	"os"
	"os/signal"
	"syscall"
)

// resizes tells when the terminal's size changes, until stop is called.
func resizes() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH)
	return c, func() { signal.Stop(c) }
}
