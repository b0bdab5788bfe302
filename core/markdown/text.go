package markdown

import (
	"iter"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

// Graphemes yields what a reader takes for single characters, in order: letters
// with their accents, families of emoji.
func Graphemes(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for g := graphemes.FromString(s); g.Next(); {
			if !yield(g.Value()) {
				return
			}
		}
	}
}

// boundary is the last beginning of a character at or before at.
func boundary(s string, at int) int {
	for at < len(s) && at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	return at
}
