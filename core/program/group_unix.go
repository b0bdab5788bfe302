//go:build unix

package program

import (
	"os/exec"
	"syscall"
)

// Group puts a program and all that it starts into a new process group. When the context of
// the program ends, the group gets the signal.
func Group(c *exec.Cmd, signal syscall.Signal) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, signal) }
}

// KillGroup kills what a program has left running, if anything.
func KillGroup(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }

// yieldTime gives a process group the lowest priority.
func yieldTime(c *exec.Cmd) { _ = syscall.Setpriority(syscall.PRIO_PGRP, c.Process.Pid, 19) }
