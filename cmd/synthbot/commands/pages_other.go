//go:build !linux

package commands

func releasePages() {}
