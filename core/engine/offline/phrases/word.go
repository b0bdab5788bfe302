// Package phrases holds the phrases of users and of answers in each language, and finds those of users in a text.
package phrases

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"synthbot/core/txt"
)

// Word is a word of a text, folded for comparison, with its offsets in the text.
type Word struct {
	Fold       string
	Start, End int
}

// MaxRead is how many bytes of a message are read.
const MaxRead = 4000

// Split splits the first MaxRead bytes of a text into words. "18:30" is one word.
func Split(text string) []Word {
	text = text[:min(len(text), MaxRead)]
	var words []Word
	for start, end := range txt.Fields(text, ":.,") {
		words = append(words, Word{Fold(text[start:end]), start, end})
	}
	return words
}

// Fold prepares a word for comparison.
func Fold(s string) string { return strings.ReplaceAll(txt.Fold(s), "œ", "oe") }

// FoldName returns the folded words of a name, with single spaces between them.
func FoldName(name string) string {
	var folds []string
	for _, w := range Split(name) {
		folds = append(folds, w.Fold)
	}
	return strings.Join(folds, " ")
}

// Capital returns s with a capital first letter.
func Capital(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	if first == utf8.RuneError {
		return s
	}
	return string(unicode.ToUpper(first)) + s[size:]
}

// Filler is the topic of phrases without meaning.
const Filler = "filler"
