package txt

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
	"golang.org/x/text/width"
)

// Columns returns how many terminal columns a grapheme takes: 0, 1 or 2.
func Columns(grapheme string) int {
	if len(grapheme) == 1 {
		if grapheme[0] < ' ' || grapheme[0] == 0x7f {
			return 0
		}
		return 1
	}
	first, size := utf8.DecodeRuneInString(grapheme)
	kind := width.LookupRune(first).Kind()
	isFlag := first >= '\U0001f1e6' && first <= '\U0001f1ff'
	switch {
	case isFlag, kind == width.EastAsianWide, kind == width.EastAsianFullwidth,
		strings.ContainsRune(grapheme[size:], '\ufe0f'): // the variation selector for emoji
		return 2
	case unicode.In(first, unicode.Mn, unicode.Me, unicode.Cf, unicode.Cc):
		return 0
	}
	return 1
}

// Width returns how many columns a text takes on a line of a terminal, or in a monospaced font.
func Width(s string) int {
	n := 0
	for g := range Graphemes(s) {
		n += Columns(g)
	}
	return n
}

// Graphemes yields what readers see as single characters, in order: letters with their accents, emoji sequences.
func Graphemes(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for g := graphemes.FromString(s); g.Next(); {
			if !yield(g.Value()) {
				return
			}
		}
	}
}
