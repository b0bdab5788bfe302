package txt

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// escapes holds the escapes of ASCII characters in a JSON string; "" means no escape.
var escapes = func() (all [utf8.RuneSelf]string) {
	for c := range ' ' {
		all[c] = fmt.Sprintf(`\u%04x`, c)
	}
	all['"'], all['\\'], all['\n'], all['\r'], all['\t'] = `\"`, `\\`, `\n`, `\r`, `\t`
	return all
}()

// WriteJSON writes s as a JSON string without its quotes. It escapes only what JSON requires, and
// replaces invalid UTF-8 by U+FFFD.
func WriteJSON(w io.StringWriter, s string) {
	from := 0 // start of the unwritten part
	for i, r := range s {
		escaped := ""
		switch {
		case r < utf8.RuneSelf:
			escaped = escapes[r]
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			escaped = "\uFFFD"
		}
		if escaped != "" {
			_, _ = w.WriteString(s[from:i])
			_, _ = w.WriteString(escaped)
			from = i + 1
		}
	}
	_, _ = w.WriteString(s[from:])
}

// WidthJSON returns how many characters WriteJSON writes for a rune.
func WidthJSON(r rune) int {
	if r < utf8.RuneSelf {
		return max(1, len(escapes[r]))
	}
	return 1
}

// StringEnd returns the length of the JSON string at the start of a text, with its quotes, or the length of the text
// if the string does not end.
func StringEnd(text []byte) int {
	end := 1
	for end < len(text) && text[end] != '"' {
		if text[end] == '\\' {
			end++
		}
		end++
	}
	return min(end+1, len(text))
}
