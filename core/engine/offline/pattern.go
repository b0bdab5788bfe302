package offline

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"synthbot/core/sorting"
)

// phrase is one thing that people say.
type phrase struct {
	topic string
	parts []part
}

// part is a word of a pattern, a slot, or a choice between sequences, one of which may be empty.
type part struct {
	word    string
	slot    bool
	choices [][]part
}

// readPattern reads a pattern up to its end, or to the end of one choice: "(a|b) [c] … d".
func (b *phrasebook) readPattern(text *string) (parts []part) {
	for *text != "" {
		switch r, size := utf8.DecodeRuneInString(*text); r {
		case '|', ')', ']':
			return parts
		case '(', '[':
			choice := part{}
			if r == '[' {
				choice.choices = append(choice.choices, nil)
			}
			for more := true; more && *text != ""; more = strings.HasPrefix(*text, "|") {
				*text = (*text)[1:]
				choice.choices = append(choice.choices, b.readPattern(text))
			}
			*text = (*text)[min(1, len(*text)):] // the closing bracket
			parts = append(parts, choice)
		case '…':
			parts = append(parts, part{slot: true})
			*text = (*text)[size:]
		default:
			end := strings.IndexAny(*text, "|()[]…")
			if end < 0 {
				end = len(*text)
			}
			for _, w := range b.split((*text)[:end]) {
				b.known[w.fold] = true
				parts = append(parts, part{word: w.fold})
			}
			*text = (*text)[end:]
		}
	}
	return parts
}

// first returns the words that a sequence may begin with; open is set if it may begin with any, or be empty.
func first(parts []part) (words map[string]bool, open bool) {
	words = make(map[string]bool)
	for _, p := range parts {
		switch {
		case p.slot:
			return words, true
		case p.choices == nil:
			words[p.word] = true
			return words, false
		}
		empty := false
		for _, choice := range p.choices {
			more, any := first(choice)
			maps.Copy(words, more)
			empty = empty || any
		}
		if !empty {
			return words, false
		}
	}
	return words, true
}

// found is one way in which a sentence has a phrase.
type found struct {
	phrase *phrase
	end    int // the word behind it
	words  int // of the pattern's own
	slots  [][2]int
}

// match calls next for each way in which the parts are found in the words behind what was found so far.
func match(parts []part, words []word, f found, next func(found)) {
	if len(parts) == 0 {
		next(f)
		return
	}
	p, rest := parts[0], parts[1:]
	switch {
	case p.slot:
		ends := len(words)
		for n := range ends - f.end {
			end := f.end + 1 + n
			if len(rest) == 0 {
				end = ends - n // as much as there is, unless fillers follow
			}
			g := f
			g.end, g.slots = end, append(slices.Clip(f.slots), [2]int{f.end, end})
			match(rest, words, g, next)
		}
	case p.choices == nil:
		if f.end < len(words) && words[f.end].fold == p.word {
			f.end, f.words = f.end+1, f.words+1
			match(rest, words, f, next)
		}
	default:
		for _, choice := range p.choices {
			match(choice, words, f, func(g found) { match(rest, words, g, next) })
		}
	}
}

// at lists the ways in which phrases begin at the i-th word, those with the most words of their own first,
// and of these the ones that take more.
func (b *phrasebook) at(words []word, i int) (all []found) {
	for _, word := range []string{words[i].fold, ""} {
		for j := range b.phrases[word] {
			p := &b.phrases[word][j]
			match(p.parts, words, found{phrase: p, end: i}, func(f found) {
				if f.end > i && len(all) < 1000 {
					all = append(all, f)
				}
			})
		}
	}
	sorting.SortStable(all, func(f, g found) int {
		return cmp.Or(cmp.Compare(f.late(i), g.late(i)), cmp.Compare(g.words, f.words),
			cmp.Compare(len(g.slots), len(f.slots)))
	})
	return all
}

// late is when a way is tried: those that begin with a slot, and fillers, come after others.
func (f found) late(i int) int {
	switch {
	case len(f.slots) > 0 && f.slots[0][0] == i:
		return 2
	case f.phrase.topic == filler:
		return 1
	}
	return 0
}
