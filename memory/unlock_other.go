//go:build !unix

package memory

import "os"

func unlock(*os.File) {}
