//go:build unix

package program

import (
	"os/exec"
	"syscall"
)

// group puts the program and all that it starts into a group of its own, which
// is killed as a whole.
func group(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
}

// end kills what the program left behind. That there is nothing is no error.
func end(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
