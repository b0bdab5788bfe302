package txt

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Distance returns how many letters to change, add, remove or swap with their neighbour
// to turn a into b.
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

// Words yields where words, which are not empty, occur in a text as whole words. Scripts
// that put no space between words have no other way to tell than the letters themselves.
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
			if !joined(before, first) && !joined(last, after) && !yield(at) {
				return
			}
		}
	}
}

// joined reports whether two neighbours belong to one word, as far as their scripts tell.
func joined(a, b rune) bool {
	return isWord(a) && isWord(b) && !isUnspaced(a) && !isUnspaced(b)
}

func isUnspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

func isWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}
