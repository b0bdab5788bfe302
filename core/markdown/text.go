package markdown

import "unicode/utf8"

// boundary is the last beginning of a character at or before at.
func boundary(s string, at int) int {
	for at < len(s) && at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	return at
}
