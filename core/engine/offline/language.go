package offline

import (
	"cmp"
	"slices"
	"unicode"

	"synthbot/core/engine/offline/phrases"
	"synthbot/core/engine/offline/who"
	"synthbot/core/sorting"
)

// orderBooks puts the book of the message's language first. It decides by the words of the message, then by what the
// user said before, then by recon or the instructions. Unlike recon, it follows a change of language at once.
func (s *speaker) orderBooks(books []*phrases.Book) {
	usual := cmp.Or(who.LanguageCode(s.language), who.Language(s.rules))
	weights := make(map[*phrases.Book]float64)
	for _, b := range books {
		if b.Language == usual {
			weights[b] = 0.1
		}
	}
	n := 0.0
	for _, said := range s.userLines() {
		if n < 3 && weigh(weights, books, said, 0.2/(n+1)) {
			n++
		}
	}
	weigh(weights, books, s.message(), 1)
	s.books = slices.Clone(books)
	sorting.SortStable(s.books, func(a, b *phrases.Book) int { return cmp.Compare(weights[b], weights[a]) })
	s.book = s.books[0]
}

// weigh adds factor to a book's weight for each word of a text that only it knows, and half of it if two books know
// the word. It reports whether it added anything.
func weigh(weights map[*phrases.Book]float64, books []*phrases.Book, text string, factor float64) (any bool) {
	words := phrases.Split(text)
	for _, w := range words[:min(len(words), 60)] {
		if unicode.IsDigit(rune(w.Fold[0])) {
			continue
		}
		var having []*phrases.Book
		for _, b := range books {
			if b.Is("own", w.Fold) { // typical of this language, such as "ciao"
				weights[b] += factor / 2
			}
			if b.Knows(w.Fold) {
				having = append(having, b)
			}
		}
		for _, b := range having {
			if len(having) > 2 {
				break
			}
			weights[b] += factor / float64(len(having))
			any = true
		}
	}
	return any
}
