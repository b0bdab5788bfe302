//go:build !unix

package program

import (
	"os/exec"
	"syscall"
)

// Group does nothing, because there are no process groups: only the program itself is killed.
func Group(*exec.Cmd, syscall.Signal) {}

// KillGroup does nothing.
func KillGroup(*exec.Cmd) {}

func yieldTime(*exec.Cmd) {}
