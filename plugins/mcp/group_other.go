//go:build !unix

package mcp

import "os/exec"

// Ways to end a process: here is only one.
const (
	terminate = 1
	kill      = 2
)

// group does nothing: there are no groups here.
func group(*exec.Cmd) {}

// stopGroup ends the process itself.
func stopGroup(cmd *exec.Cmd, how int) {
	if how == kill {
		_ = cmd.Process.Kill() // it may be gone already
	}
}
