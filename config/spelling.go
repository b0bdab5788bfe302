package config

import (
	"fmt"
	"strings"
	"unicode"

	"synthbot/core/txt"
)

// QuoteKey returns one part of a key as a file would hold it.
func QuoteKey(name string) string {
	bare := name != "" && strings.IndexFunc(name, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-'
	}) < 0
	if bare {
		return name
	}
	return Quote(name)
}

const zeroWidthJoiner = '\u200d'

// Quote returns a text as a file would hold it, on one line. What is not UTF-8 is U+FFFD.
func Quote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsControl(r) || !unicode.IsPrint(r) && r != zeroWidthJoiner:
			fmt.Fprintf(&b, `\U%08X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// Nearest returns the known name that a mistyped one most likely means; "" for none.
func Nearest(name string, known []string) string {
	const longest = 64
	if len(name) > longest {
		return ""
	}
	best, least := "", 0
	for _, k := range known {
		d := txt.Distance(fold(name), fold(k))
		if d <= 1+len(k)/5 && d < len(k) && (best == "" || d < least) {
			best, least = k, d
		}
	}
	return best
}

func fold(name string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(name))
}
