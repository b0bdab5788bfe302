//go:build !unix

package bolt

import "os"

func unlock(*os.File) {}

func isLocked(*os.File) bool { return false }

// giveToOwner does nothing: files have no owner that matters here.
func giveToOwner(string, os.FileInfo) error { return nil }
