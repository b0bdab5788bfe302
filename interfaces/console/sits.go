package console

import "golang.org/x/term"

// IsTerminal reports whether the stream is one that a person sits at.
func IsTerminal(stream any) bool {
	sits := false
	_, _ = onFile(stream, func(fd int) error {
		sits = term.IsTerminal(fd)
		return nil
	})
	return sits
}
