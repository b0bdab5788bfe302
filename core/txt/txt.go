// Package txt has the few helpers for texts that several rooms need: on one line,
// at most so long, folded for comparison, how wide it is, and how a time is written.
package txt

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// ellipsis ends what was cut.
const ellipsis = "…"

// Line returns s on one line: each run of white space and control characters is one
// space, there is none at either end, what is not UTF-8 is U+FFFD, and characters that
// change the direction of writing are left out.
func Line(s string) string {
	if simple(s) {
		return s
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r):
			return ' '
		case directs(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return strings.Join(strings.Fields(s), " ")
}

// Lines returns s without control characters, except line breaks and tabs. Line breaks are
// \n, what is not UTF-8 is U+FFFD, and characters that change the direction of writing are
// left out.
func Lines(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r' || r == '\u2028' || r == '\u2029':
			return '\n'
		case unicode.IsControl(r) || directs(r):
			return -1
		}
		return r
	}, s)
}

// simple reports whether s is surely on one line as it is.
func simple(s string) bool {
	space := true // before s
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f || space && s[i] == ' ' {
			return false
		}
		space = s[i] == ' '
	}
	return !space || s == ""
}

// directs reports whether a character, itself invisible, changes the direction of
// what follows it.
func directs(r rune) bool {
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' || r == '\ufeff'
}

// Clip returns s with at most n characters; what was cut ends with "…", one of them.
// What is not UTF-8 is U+FFFD.
func Clip(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s
	}
	end, count := 0, 0
	for i := range s {
		if count == n-1 {
			end = i
			break
		}
		count++
	}
	return strings.TrimRightFunc(s[:end], unicode.IsSpace) + ellipsis
}

// ClipBytes returns s with at most n bytes, at least 3, in whole characters; what was
// cut ends with "…". What is not UTF-8 is U+FFFD.
func ClipBytes(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	end := max(n-len(ellipsis), 0)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + ellipsis
}

// Fold returns s in lower case and without accents, so that words can be compared.
func Fold(s string) string {
	return strings.Map(foldRune, strings.ReplaceAll(strings.ToLower(s), "ß", "ss"))
}

func foldRune(r rune) rune {
	const from, to = "àáâãäåāçèéêëēìíîïīñòóôõöøōùúûüūýÿº", "aaaaaaaceeeeeiiiiinooooooouuuuuyyo"
	if r < utf8.RuneSelf {
		return r
	}
	if unicode.Is(unicode.Mn, r) {
		return -1
	}
	i := strings.IndexRune(from, r)
	if i >= 0 {
		return rune(to[utf8.RuneCountInString(from[:i])])
	}
	return r
}

// ClipLine returns a text on one line, of at most n characters.
func ClipLine(text string, n int) string { return Clip(Line(text), n) }
