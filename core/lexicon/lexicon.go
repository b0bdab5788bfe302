// Package lexicon tells which words of a text carry meaning, in the languages of the house, and
// which of them may be forms of one.
package lexicon

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"synthbot/core/sorting"
)

// Limits of what is looked at of one text.
const (
	ReadMax        = 4000 // bytes
	maxTelling     = 12   // words that facts are looked for with
	minLetters     = 3    // of the shortest word that carries meaning
	maxEnding      = 3    // letters by which a form may be longer than what it shares with another
	maxEndings     = 5    // of both forms together
	minStem        = 4    // letters that they must share, unless one is the other's beginning
	maxShortEnding = 2    // letters that a short word may be longer by
)

// stopWords are words that bring nothing up: those that hold sentences together, and greetings.
//
//go:embed stop_words.txt
var stopWords string

// Lexicon knows the words that carry no meaning.
type Lexicon map[string]bool

func New() Lexicon {
	l := make(Lexicon, 900)
	for word := range strings.FieldsSeq(stopWords) {
		l[word] = true
	}
	return l
}

// Content are the words of a text that carry meaning, lower-cased, each once.
func (l Lexicon) Content(text string) []string {
	if len(text) > ReadMax {
		text = strings.ToValidUTF8(text[:ReadMax], "")
	}
	var all []string
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	}) {
		for _, w := range split(word) {
			lower := strings.ToLower(w)
			if !l[lower] && !isTooShort(w) && !slices.Contains(all, lower) {
				all = append(all, lower)
			}
		}
	}
	return all
}

// isTooShort reports whether a word is too short to carry meaning. Short words do where they are written large: TV, UK.
func isTooShort(word string) bool {
	return utf8.RuneCountInString(word) < minLetters && !isUnspaced(word) &&
		(strings.ToUpper(word) != word || strings.ToLower(word) == word || len(word) < 2)
}

// isUnspaced reports whether a word is of a script that parts no words.
func isUnspaced(word string) bool {
	first, _ := utf8.DecodeRuneInString(word)
	return unicode.In(first, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai)
}

// split are a word, or the pairs of letters of what parts no words.
func split(word string) []string {
	runes := []rune(word)
	if len(runes) < 3 || !isUnspaced(word) {
		return []string{word}
	}
	pairs := make([]string, len(runes)-1)
	for i := range pairs {
		pairs[i] = string(runes[i : i+2])
	}
	return pairs
}

// Telling are the words to look for: the longest ones, which are the rarest.
func Telling(words []string) []string {
	if len(words) <= maxTelling {
		return words
	}
	sorted := slices.Clone(words)
	sorting.SortStable(sorted,
		func(a, b string) int { return cmp.Compare(utf8.RuneCountInString(b), utf8.RuneCountInString(a)) })
	return sorted[:maxTelling]
}

// Shared counts the words that a text has, in whatever form.
func Shared(words, text []string) (n int) {
	for _, w := range words {
		if slices.ContainsFunc(text, func(t string) bool { return sameWord(w, t) }) {
			n++
		}
	}
	return n
}

// sameWord reports whether two words may be forms of one.
func sameWord(a, b string) bool {
	if a == b {
		return true
	}
	if isUnspaced(a) || isUnspaced(b) {
		return false
	}
	x, y := []rune(a), []rune(b)
	same := 0
	for same < min(len(x), len(y)) && x[same] == y[same] {
		same++
	}
	left, right := len(x)-same, len(y)-same
	if (left == 0 || right == 0) && same >= minLetters && max(left, right) <= maxShortEnding {
		return true
	}
	return same >= minStem && max(left, right) <= maxEnding && left+right <= maxEndings
}

// Enough is how many of the words that were said a text must have to answer well.
func Enough(words int) int {
	return min(1+(words-1)/4, 3)
}
