package config

import (
	"fmt"
	"strings"
	"unicode"
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

// zeroWidthJoiner joins emoji.
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

// nearest returns the known name that a mistyped one most likely means; "" for none.
func nearest(name string, known []string) string {
	const longest = 64
	if len(name) > longest {
		return ""
	}
	best, least := "", 0
	for _, k := range known {
		d := distance(fold(name), fold(k))
		if d <= 1+len(k)/5 && d < len(k) && (best == "" || d < least) {
			best, least = k, d
		}
	}
	return best
}

func fold(name string) []rune {
	return []rune(strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(name)))
}

// distance counts the letters to change, add, remove or swap with their neighbour
// to turn a into b.
func distance(a, b []rune) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		older := before
		before, row = row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range b {
			change := before[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, before[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], older[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
