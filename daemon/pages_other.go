//go:build !linux

package daemon

// ReleasePages does nothing on this system.
func ReleasePages() {}
