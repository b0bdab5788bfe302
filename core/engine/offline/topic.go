package offline

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// telling returns the words of a text that say what it is about.
func telling(text string, books []*book) []word {
	text = text[:min(len(text), maxRead)]
	var kept []word
	for _, w := range split(text) {
		if utf8.RuneCountInString(w.fold) < 3 || w.fold[0] <= '9' {
			continue
		}
		if !slices.ContainsFunc(books, func(b *book) bool { return b.stop[w.fold] }) {
			kept = append(kept, w)
		}
	}
	return kept
}

// same reports whether two folded words are forms of one: equal but for a short
// ending.
func same(a, b string) bool {
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
func mentioned(text string, items []string, books []*book) string {
	text = text[:min(len(text), maxRead)]
	words := split(text)
	for _, item := range items {
		for _, key := range keysOf(item, books) {
			if slices.ContainsFunc(words, func(w word) bool { return same(w.fold, key) }) {
				return item
			}
		}
	}
	return ""
}

// keysOf are the words by which an item is known: its telling ones, or else its
// last.
func keysOf(item string, books []*book) []string {
	var keys []string
	for _, w := range telling(item, books) {
		keys = append(keys, w.fold)
	}
	if words := split(item); len(keys) == 0 && len(words) > 0 {
		keys = append(keys, words[len(words)-1].fold)
	}
	return keys
}

// topicOf is the longest telling word, as it was written.
func topicOf(text string, books []*book) string {
	longest := ""
	for _, w := range telling(text, books) {
		plain := text[w.start:w.end]
		if n := utf8.RuneCountInString(plain); n > utf8.RuneCountInString(longest) && n >= 5 && n <= 30 {
			longest = plain
		}
	}
	return longest
}

// remembered finds a line of the person's own that shares telling words with
// the text, best first, newest of equals; "" where none does.
func (s *speaker) remembered(text string) string {
	keys := telling(text, s.books)
	best, score := "", 0
	for _, l := range slices.Backward(s.theirs()) {
		if strings.Contains(l.Text, "?") || l.Text == text {
			continue
		}
		words := split(l.Text[:min(len(l.Text), maxRead)])
		hits := 0
		for _, k := range keys {
			if slices.ContainsFunc(words, func(w word) bool { return same(w.fold, k.fold) }) {
				hits++
			}
		}
		if hits > score {
			best, score = l.Text, hits
		}
	}
	return quoted(best)
}
