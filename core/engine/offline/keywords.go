package offline

import (
	"slices"
	"synthbot/core/engine/offline/phrases"
	"synthbot/core/engine/offline/slips"
	"unicode/utf8"
)

// keywords are the words of a text that carry meaning.
type keywords []phrases.Word

func keywordsOf(text string, books []*phrases.Book) keywords {
	return slices.DeleteFunc(phrases.Split(text), func(w phrases.Word) bool {
		isStop := func(b *phrases.Book) bool { return b.Is("stop", w.Fold) }
		return utf8.RuneCountInString(w.Fold) < 3 || w.Fold[0] <= '9' || slices.ContainsFunc(books, isStop)
	})
}

// in counts the keywords of which the text has some form.
func (k keywords) in(text string) (hits int) {
	words := phrases.Split(text)
	for _, key := range k {
		if slices.ContainsFunc(words, func(w phrases.Word) bool { return slips.SameWord(w.Fold, key.Fold) }) {
			hits++
		}
	}
	return hits
}

// areIn reports whether there are keywords, and the text has all of them.
func (k keywords) areIn(text string) bool { return len(k) > 0 && k.in(text) == len(k) }

// mentioned returns the first item that the text mentions, or "".
func mentioned(text string, items []string, books []*phrases.Book) string {
	for _, item := range items {
		keys := keywordsOf(item, books)
		words := phrases.Split(item)
		if len(keys) == 0 && len(words) > 0 {
			keys = words[len(words)-1:] // no keyword: the last word has to do
		}
		if keys.in(text) > 0 {
			return item
		}
	}
	return ""
}
