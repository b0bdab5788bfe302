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

// Text is a text, or a part of one, as words of a book's language.
type Text struct {
	Words []Word
	whole string
	book  *Book
}

// Read returns a text as words, with short forms written out.
func (b *Book) Read(text string) Text { return Text{b.Split(text), text, b} }

// String returns the text from the first word to the last one.
func (t Text) String() string {
	if len(t.Words) == 0 {
		return ""
	}
	return t.whole[t.Words[0].Start:t.Words[len(t.Words)-1].End]
}

// First returns the first word, folded, or "".
func (t Text) First() string {
	if len(t.Words) == 0 {
		return ""
	}
	return t.Words[0].Fold
}

// From returns the text from the n-th word on.
func (t Text) From(n int) Text {
	t.Words = t.Words[n:]
	return t
}

// Before returns the text before the n-th word.
func (t Text) Before(n int) Text {
	t.Words = t.Words[:n]
	return t
}

// Begins returns how many of the first words are the longest entry of the lists. It returns 0 for none.
func (t Text) Begins(lists ...string) (most int) {
	key := ""
	for i, w := range t.Words[:min(len(t.Words), 4)] {
		key = strings.TrimPrefix(key+" "+w.Fold, " ")
		for _, list := range lists {
			if t.book.Is(list, key) {
				most = i + 1
			}
		}
	}
	return most
}

// Ends reports whether the last n words are one entry of the lists.
func (t Text) Ends(n int, lists ...string) bool {
	return n <= len(t.Words) && t.From(len(t.Words)-n).Begins(lists...) == n
}

// After returns the text without entries of the lists in front of it.
func (t Text) After(lists ...string) Text {
	for n := t.Begins(lists...); n > 0; n = t.Begins(lists...) {
		t = t.From(n)
	}
	return t
}

// WithoutEnd returns the text without words of the lists at its end.
func (t Text) WithoutEnd(lists ...string) Text {
	for t.Ends(1, lists...) {
		t = t.Before(len(t.Words) - 1)
	}
	return t
}

// Has reports whether the text has an entry of the lists.
func (t Text) Has(lists ...string) bool {
	_, _, _, ok := t.Cut(lists...)
	return ok
}

// Cut cuts the text around its first entry of the lists.
func (t Text) Cut(lists ...string) (before, entry, after Text, ok bool) {
	for i := range t.Words {
		n := t.From(i).Begins(lists...)
		if n > 0 {
			return t.Before(i), t.From(i).Before(n), t.From(i + n), true
		}
	}
	return t, Text{}, Text{}, false
}
