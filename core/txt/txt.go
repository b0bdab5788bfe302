// Package txt has helpers for texts: it puts them on one line, shortens, folds, escapes and
// measures them, and writes times.
package txt

import (
	"cmp"
	"iter"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

const ellipsis = "…"

// Line returns s on one line. It replaces each run of white space and control characters by one space, trims spaces,
// replaces invalid UTF-8 by U+FFFD, and removes characters that change the direction of writing.
func Line(s string) string {
	s = strings.TrimSpace(s)
	if isPlainLine(s) {
		return s
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r):
			return ' '
		case changesDirection(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return strings.Join(strings.Fields(s), " ")
}

// Lines returns s without control characters, except line breaks and tabs. It replaces line breaks by \n and invalid
// UTF-8 by U+FFFD, and removes characters that change the direction of writing.
func Lines(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r' || r == '\u2028' || r == '\u2029':
			return '\n'
		case unicode.IsControl(r) || changesDirection(r):
			return -1
		}
		return r
	}, s)
}

// Blanks are letters and symbols that nobody sees.
const Blanks = "\u115f\u1160\u2800\u3164\uffa0"

// HasVisible reports whether a text has a character that readers see.
func HasVisible(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsSpace(r) && !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r) &&
			!strings.ContainsRune(Blanks, r)
	})
}

// isPlainLine reports whether s certainly needs no change by Line.
func isPlainLine(s string) bool {
	space := true // the start counts as a space
	for _, r := range s {
		switch {
		case r == ' ' && space, r < ' ', r == 0x7f, r == utf8.RuneError:
			return false
		case r > 0x7f && (unicode.IsControl(r) || unicode.IsSpace(r) || changesDirection(r)):
			return false
		}
		space = r == ' '
	}
	return !space || s == ""
}

// changesDirection reports whether an invisible character changes the direction of the text after it.
func changesDirection(r rune) bool {
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' || r == '\ufeff'
}

// Clip returns at most n characters of s. If it cuts s, the last one is "…". It replaces invalid UTF-8 by U+FFFD.
func Clip(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s
	}
	end := 0
	for range n - 1 {
		_, size := utf8.DecodeRuneInString(s[end:])
		end += size
	}
	return strings.TrimRightFunc(s[:end], unicode.IsSpace) + ellipsis
}

// ClipBytes returns at most n bytes of s, in whole characters. n must be at least 3. If it
// cuts s, the result ends with "…". It replaces invalid UTF-8 by U+FFFD.
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

// ClipLine returns at most n characters of a text, on one line.
func ClipLine(text string, n int) string { return Clip(Line(text), n) }

// JoinFunc joins the texts of the elements of a list.
func JoinFunc[T any](list []T, between string, text func(T) string) string {
	texts := make([]string, len(list))
	for i, element := range list {
		texts[i] = text(element)
	}
	return strings.Join(texts, between)
}

// Labels returns texts on one line, with at most n characters and in lower case. It drops empty ones and duplicates.
func Labels(texts []string, n int) (labels []string) {
	for _, text := range texts {
		text = strings.ToLower(ClipLine(text, n))
		if text != "" && !slices.Contains(labels, text) {
			labels = append(labels, text)
		}
	}
	return labels
}

var (
	markup = Pattern("[\\\\`*_~\\[\\]<>&|#=^$]")
	// bullet matches what would begin a list.
	bullet = Pattern(`(?m)^(\s*(?:\d+)?)([-+.)])`)
)

// Literal escapes a text so that Markdown shows it unchanged.
func Literal(text string) string {
	text = markup().ReplaceAllString(text, `\$0`)
	return bullet().ReplaceAllStringFunc(text, func(s string) string {
		return strings.TrimRight(s, "-+.)") + `\` + s[len(s)-1:]
	})
}

// Pattern returns a function that compiles a regular expression on its first call, which keeps
// the start fast. That call panics if the expression is invalid.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// IsName reports whether a text has 1 to most bytes, all of them a-z, 0-9, _ or one of others.
func IsName(s string, most int, others string) bool {
	return s != "" && len(s) <= most && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_"+others) == ""
}

// Distance returns the edit distance of a and b: how many letters must be changed, added, removed
// or swapped with their neighbour.
func Distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, row := make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		older := before
		before, row = row, make([]int, len(y)+1)
		row[0] = i + 1
		for j := range y {
			change := before[j]
			if x[i] != y[j] {
				change++
			}
			row[j+1] = min(change, before[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], older[j-1]+1)
			}
		}
	}
	return row[len(y)]
}

// Words yields the offsets at which words, which must not be empty, occur in a text as whole words. In scripts
// without spaces between words, every occurrence counts.
func Words(text, words string) iter.Seq[int] {
	return func(yield func(int) bool) {
		first, size := utf8.DecodeRuneInString(words)
		last, _ := utf8.DecodeLastRuneInString(words)
		for at := 0; ; at += size {
			i := strings.Index(text[at:], words)
			if i < 0 {
				return
			}
			at += i
			before, _ := utf8.DecodeLastRuneInString(text[:at])
			after, _ := utf8.DecodeRuneInString(text[at+len(words):])
			if !inOneWord(before, first) && !inOneWord(last, after) && !yield(at) {
				return
			}
		}
	}
}

// Fields yields the start and the end of each word of a text: letters and digits with their accents. One of the marks,
// which must be ASCII, between digits is part of a word ("18:30").
func Fields(text, marks string) iter.Seq2[int, int] {
	return func(yield func(start, end int) bool) {
		start := -1
		for i, r := range text {
			inside := unicode.IsLetter(r) || unicode.IsDigit(r) ||
				start >= 0 && (unicode.Is(unicode.Mn, r) || strings.ContainsRune(marks, r) && betweenDigits(text, i))
			switch {
			case inside && start < 0:
				start = i
			case !inside && start >= 0:
				if !yield(start, i) {
					return
				}
				start = -1
			}
		}
		if start >= 0 {
			yield(start, len(text))
		}
	}
}

func betweenDigits(text string, i int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:i])
	after, _ := utf8.DecodeRuneInString(text[i+1:])
	return unicode.IsDigit(before) && unicode.IsDigit(after)
}

// inOneWord reports whether two adjacent characters belong to one word. For scripts without spaces it returns false.
func inOneWord(a, b rune) bool { return isWord(a) && isWord(b) && !isUnspaced(a) && !isUnspaced(b) }

func isUnspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

func isWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}

// FileName makes a file name, without extension, from a name in any script. It returns otherwise if no letter is left.
func FileName(name, otherwise string) string {
	const longest = 100 // bytes; with an extension, every system can store them
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.M, unicode.N)
	})
	joined := strings.Join(words, "-")
	return cmp.Or(strings.ToValidUTF8(joined[:min(len(joined), longest)], ""), otherwise)
}
