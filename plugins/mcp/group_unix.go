//go:build unix

package mcp

import (
	"os/exec"
	"syscall"
)

// Signals that end a process.
const (
	terminate = syscall.SIGTERM
	kill      = syscall.SIGKILL
)

// group puts a process, with all that it starts, into a group of its own.
func group(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// stopGroup sends a signal to the process's group.
func stopGroup(cmd *exec.Cmd, s syscall.Signal) {
	_ = syscall.Kill(-cmd.Process.Pid, s) // it may be gone already
}
