package offline

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"synthbot/core/txt"
)

// word is one word of a text: folded for comparison, and its place.
type word struct {
	fold       string
	start, end int
}

// maxRead is how much of a message is looked at, in bytes.
const maxRead = 4000

// split cuts a text, up to maxRead, into words. Digits hold together over a colon, a
// dot or a comma between them ("18:30").
func split(text string) []word {
	text = text[:min(len(text), maxRead)]
	var words []word
	start := -1
	for i, r := range text {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r) || start >= 0 && joins(text, i, r) {
			if start < 0 {
				start = i
			}
			continue
		}
		if start >= 0 {
			words = append(words, word{txt.Fold(text[start:i]), start, i})
			start = -1
		}
	}
	if start >= 0 {
		words = append(words, word{txt.Fold(text[start:]), start, len(text)})
	}
	return words
}

func joins(text string, i int, r rune) bool {
	if r != ':' && r != '.' && r != ',' {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(text[:i])
	after, _ := utf8.DecodeRuneInString(text[i+1:])
	return unicode.IsDigit(before) && unicode.IsDigit(after)
}

// understood is what a message was understood as.
type understood struct {
	topic string
	rest  string // what the ask took
	book  *phrasebook
	size  int
}

// ranks lists the topics, the most telling first: "hello, what time is it?" is
// a question about the time.
func ranks() []string {
	return strings.Fields("remind recall remember myname isaid yousaid dislikes likes interests doyoulike introduce" +
		" time date bot yourname who age where abilities joke how sad happy compliment insult" +
		" bye thanks sorry laugh greeting yes no ok")
}

// understand finds the best match of a message, and whether it greets besides.
// books are in the order of preference.
func understand(text string, names []string, books []*phrasebook) (best understood, greets bool) {
	words := withoutNames(split(text), names)
	order := ranks()
	rank := len(order)
	for _, b := range books {
		for _, a := range b.asks {
			rest, ok := a.match(text, words)
			if !ok {
				continue
			}
			if a.topic == "greeting" {
				greets = true
			}
			r := slices.Index(order, a.topic)
			if r < rank || r == rank && b == best.book && len(a.words) > best.size {
				rank, best = r, understood{a.topic, rest, b, len(a.words)}
			}
		}
	}
	return best, greets && best.topic != "greeting"
}

// withoutNames leaves out the bot's own names at the start, also after a first
// word ("hey Aria, …"), and at the end.
func withoutNames(words []word, names []string) []word {
	isName := func(w word) bool { return slices.Contains(names, w.fold) }
	switch {
	case len(words) > 1 && isName(words[0]):
		words = words[1:]
	case len(words) > 2 && isName(words[1]):
		words = slices.Concat(words[:1], words[2:])
	}
	last := len(words) - 1
	if last > 0 && isName(words[last]) {
		words = words[:last]
	}
	return words
}

// match finds the ask in a message.
func (a phrase) match(text string, words []word) (rest string, ok bool) {
	n := len(a.words)
	for i := 0; i+n <= len(words); i++ {
		if a.start && i > 0 {
			break
		}
		same := slices.EqualFunc(words[i:i+n], a.words, func(w word, to string) bool { return w.fold == to })
		if !same || a.end && i+n < len(words) {
			continue
		}
		if !a.rest {
			return "", true
		}
		if i+n < len(words) {
			return strings.TrimSpace(text[words[i+n].start:]), true
		}
		if i > 0 || a.topic == "remind" {
			return "", a.topic == "remind"
		}
	}
	return "", false
}

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
