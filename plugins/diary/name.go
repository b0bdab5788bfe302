package diary

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// replaceWord replaces a name, in any case, where it is a word of its own.
func replaceWord(text, name, with string) string {
	var b strings.Builder
	for rest, before := text, ' '; rest != ""; {
		n := prefixFold(rest, name)
		if n > 0 && !inWord(before, rest) {
			after, _ := utf8.DecodeRuneInString(rest[n:])
			if n == len(rest) || !wordRune(after) || !wordRune(lastRune(name)) {
				b.WriteString(with)
				rest, before = rest[n:], 'x'
				continue
			}
		}
		r, size := utf8.DecodeRuneInString(rest)
		b.WriteString(rest[:size])
		rest, before = rest[size:], r
	}
	return b.String()
}

// inWord reports whether what comes next goes on with a word.
func inWord(before rune, rest string) bool {
	first, _ := utf8.DecodeRuneInString(rest)
	return wordRune(before) && wordRune(first)
}

// prefixFold is how many bytes of the text are the name, in any case; 0: it does
// not begin with it.
func prefixFold(text, name string) int {
	n := 0
	for _, want := range name {
		r, size := utf8.DecodeRuneInString(text[n:])
		if size == 0 || r != want && unicode.ToLower(r) != unicode.ToLower(want) {
			return 0
		}
		n += size
	}
	return n
}

func wordRune(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}

func lastRune(s string) rune {
	r, _ := utf8.DecodeLastRuneInString(s)
	return r
}
