// Package phrases has what people say in each language, and what is answered, and finds the phrases in a text.
package phrases

import (
	"strings"

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

// Filler is the topic of phrases that add nothing.
const Filler = "filler"
