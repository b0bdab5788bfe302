//go:build unix

package program

import (
	"os/exec"
	"syscall"
)

// Group puts a program and all that it starts into a group of its own. When the context of
// the program ends, the group gets the signal.
func Group(c *exec.Cmd, signal syscall.Signal) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, signal) }
}

// KillGroup kills what a program left behind, if anything.
func KillGroup(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }

// yieldTime gives a group the lowest priority. What it started before that keeps its own.
func yieldTime(c *exec.Cmd) { _ = syscall.Setpriority(syscall.PRIO_PGRP, c.Process.Pid, 19) }
