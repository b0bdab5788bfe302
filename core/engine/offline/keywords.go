package offline

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// keywords returns the words of a text that say what it is about.
func keywords(text string, books []*phrasebook) []word {
	var kept []word
	for _, w := range split(text) {
		if utf8.RuneCountInString(w.fold) < 3 || w.fold[0] <= '9' {
			continue
		}
		if !slices.ContainsFunc(books, func(b *phrasebook) bool { return b.stop[w.fold] }) {
			kept = append(kept, w)
		}
	}
	return kept
}

// sameWord reports whether two folded words are forms of one: equal but for a short
// ending.
func sameWord(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	switch {
	case a == b:
		return true
	case len(a) < 4 || len(b)-len(a) > 2:
		return false
	}
	return strings.HasPrefix(b, a)
}

// mentioned returns the item that the text speaks of; "" where there is none.
func mentioned(text string, items []string, books []*phrasebook) string {
	for _, item := range items {
		keys := keywords(item, books)
		words := split(item)
		if len(keys) == 0 && len(words) > 0 {
			keys = words[len(words)-1:] // its last word, where none is telling
		}
		if matching(text, keys) > 0 {
			return item
		}
	}
	return ""
}

// topicOf is the longest telling word, as it was written.
func topicOf(text string, books []*phrasebook) string {
	longest := ""
	for _, w := range keywords(text, books) {
		plain := text[w.start:w.end]
		n := utf8.RuneCountInString(plain)
		if n > utf8.RuneCountInString(longest) && n >= 5 && n <= 30 {
			longest = plain
		}
	}
	return longest
}

// remembered finds a line of the user's own that shares telling words with
// the text, best first, newest of equals; "" where none does.
func (s *speaker) remembered(text string) string {
	keys := keywords(text, s.books)
	best, score := "", 0
	for _, said := range s.theirs() {
		hits := matching(said, keys)
		if hits > score && said != text && !strings.Contains(said, "?") {
			best, score = said, hits
		}
	}
	return quoted(best)
}

// matching counts the keys that a text has a form of.
func matching(text string, keys []word) (hits int) {
	words := split(text)
	for _, k := range keys {
		if slices.ContainsFunc(words, func(w word) bool { return sameWord(w.fold, k.fold) }) {
			hits++
		}
	}
	return hits
}
