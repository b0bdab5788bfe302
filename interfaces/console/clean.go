package console

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean makes a text fit to be stored or shown: bytes that are no UTF-8 become
// U+FFFD, control characters and those that turn the direction of text go. Line
// breaks stay where several lines are wanted, tabs always.
func clean(s string, several bool) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if several {
		s = strings.ReplaceAll(s, "\r\n", "\n")
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' && several:
			return r
		case unicode.IsControl(r) || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' || r == '\ufeff':
			return -1
		}
		return r
	}, s)
	return strings.TrimRightFunc(s, unicode.IsSpace)
}

// trim cuts s to max bytes, between characters, and takes the white space off
// its ends.
func trim(s string, max int) string {
	if len(s) > max {
		for max > 0 && !utf8.RuneStart(s[max]) {
			max--
		}
		s = s[:max]
	}
	return strings.TrimSpace(s)
}
