package console

import (
	"os"

	"golang.org/x/term"
)

// IsTerminal reports whether the stream is one that a person sits at.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
