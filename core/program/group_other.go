//go:build !unix

package program

import "os/exec"

// group does nothing where there are no groups: the program alone is killed.
func group(*exec.Cmd) {}

func end(*exec.Cmd) {}
