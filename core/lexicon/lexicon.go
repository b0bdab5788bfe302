// Package lexicon finds the words of a text that carry meaning, in the supported languages, and
// reports which words may be forms of one.
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

// Limits of a text and of the endings of words.
const (
	ReadMax        = 4000 // bytes
	maxTelling     = 12   // words of a search
	minLetters     = 3    // of the shortest word that carries meaning
	maxEnding      = 3    // letters of a form after those that it shares with another
	maxEndings     = 5    // the same, of both forms together
	minStem        = 4    // letters that two forms must share, unless one begins with the other
	maxShortEnding = 2    // letters by which a form may be longer if it begins with the other
)

// stopWords are words without a meaning of their own, such as pronouns and greetings.
//
//go:embed stop_words.txt
var stopWords string

// Lexicon contains the words that carry no meaning.
type Lexicon map[string]bool

func New() Lexicon {
	l := make(Lexicon, 900)
	for word := range strings.FieldsSeq(stopWords) {
		l[word] = true
	}
	return l
}

// Content returns the words of a text that carry meaning, in lower case, each once.
func (l Lexicon) Content(text string) []string {
	var all []string
	for word := range strings.FieldsFuncSeq(text[:min(len(text), ReadMax)], func(r rune) bool {
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

// isTooShort reports whether a word is too short to carry meaning. Short words in capitals do, such as TV and UK.
func isTooShort(word string) bool {
	return utf8.RuneCountInString(word) < minLetters && !isUnspaced(word) &&
		(strings.ToUpper(word) != word || strings.ToLower(word) == word || len(word) < 2)
}

// isUnspaced reports whether a word is in a script without spaces.
func isUnspaced(word string) bool {
	first, _ := utf8.DecodeRuneInString(word)
	return unicode.In(first, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai)
}

// split returns a word, or its pairs of letters if its script has no spaces.
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

// Telling returns the words to search for: the longest ones, which are the rarest.
func Telling(words []string) []string {
	if len(words) <= maxTelling {
		return words
	}
	sorted := slices.Clone(words)
	sorting.SortStable(sorted,
		func(a, b string) int { return cmp.Compare(utf8.RuneCountInString(b), utf8.RuneCountInString(a)) })
	return sorted[:maxTelling]
}

// Shared counts the words that occur in a text, in any form.
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

// Enough returns how many of so many query words a text must contain to be a good match.
func Enough(words int) int { return min(1+(words-1)/4, 3) }
