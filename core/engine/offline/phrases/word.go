// Package phrases has what people say in each language, and what is answered, and finds the phrases in a text.
package phrases

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"synthbot/core/txt"
)

// Word is one word of a text: folded for comparison, and its place.
type Word struct {
	Fold       string
	Start, End int
}

// MaxRead is how much of a message is looked at, in bytes.
const MaxRead = 4000

// Split cuts a text, up to MaxRead, into words. Digits hold together over a mark between them ("18:30").
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

// FoldName returns the folded words of a name, without the signs between them.
func FoldName(name string) string {
	var folds []string
	for _, w := range Split(name) {
		folds = append(folds, w.Fold)
	}
	return strings.Join(folds, " ")
}

// Capital returns a text that begins with a capital.
func Capital(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	if first == utf8.RuneError {
		return s
	}
	return string(unicode.ToUpper(first)) + s[size:]
}

// Filler is the topic of phrases that add nothing.
const Filler = "filler"
