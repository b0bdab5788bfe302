//go:build !unix

package console

import "os"

// resizes never tells: the size is asked whenever something is drawn.
func resizes() (<-chan os.Signal, func()) { return nil, func() {} }
