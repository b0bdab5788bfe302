//go:build !unix

package program

import (
	"os/exec"
	"syscall"
)

// Group does nothing where there are no groups: the program alone is killed.
func Group(*exec.Cmd, syscall.Signal) {}

// KillGroup does nothing.
func KillGroup(*exec.Cmd) {}

func yieldTime(*exec.Cmd) {}
