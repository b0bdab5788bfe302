package txt

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// escapes are what ASCII characters become in a JSON string; "" for those that stand for themselves.
var escapes = func() (all [utf8.RuneSelf]string) {
	for c := range ' ' {
		all[c] = fmt.Sprintf(`\u%04x`, c)
	}
	all['"'], all['\\'], all['\n'], all['\r'], all['\t'] = `\"`, `\\`, `\n`, `\r`, `\t`
	return all
}()

// WriteJSON writes s as a JSON string without its quotes. Characters stand for themselves where JSON
// allows it; bytes that are not UTF-8 become U+FFFD.
func WriteJSON(w io.StringWriter, s string) {
	from := 0 // of what is not written yet
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

// WidthJSON is how many characters WriteJSON spends on one rune.
func WidthJSON(r rune) int {
	if r < utf8.RuneSelf {
		return max(1, len(escapes[r]))
	}
	return 1
}

// StringEnd returns the length of the JSON string that a text begins with, quotes included; of one that does not end,
// that of the text.
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
