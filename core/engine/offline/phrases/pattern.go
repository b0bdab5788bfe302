package phrases

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
	form  string // what the slots are put into: "{1}/{2}"; "": they are joined
	parts []part
}

// part is a word of a pattern, a slot, or a choice between sequences, one of which may be empty.
type part struct {
	word    string
	slot    bool
	choices [][]part
}

// readPattern reads a pattern up to its end, or to the end of one choice: "(a|b) [c] … d".
func (b *Book) readPattern(text *string) (parts []part) {
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
			for _, w := range b.Split((*text)[:end]) {
				b.known[w.Fold] = true
				parts = append(parts, part{word: w.Fold})
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

// Found is one way in which a sentence has a phrase.
type Found struct {
	Topic string
	Form  string   // what the slots are put into; "": they are joined
	End   int      // the word behind it
	Slots [][2]int // their first words, and the ones behind them
	words int      // of the pattern's own
}

// match calls next for each way in which the parts are found in the words behind what was found so far.
func match(parts []part, words []Word, f Found, next func(Found)) {
	if len(parts) == 0 {
		next(f)
		return
	}
	p, rest := parts[0], parts[1:]
	switch {
	case p.slot:
		ends := len(words)
		for n := range ends - f.End {
			end := f.End + 1 + n
			if len(rest) == 0 {
				end = ends - n // as much as there is, unless fillers follow
			}
			g := f
			g.End, g.Slots = end, append(slices.Clip(f.Slots), [2]int{f.End, end})
			match(rest, words, g, next)
		}
	case p.choices == nil:
		if f.End < len(words) && words[f.End].Fold == p.word {
			f.End, f.words = f.End+1, f.words+1
			match(rest, words, f, next)
		}
	default:
		for _, choice := range p.choices {
			match(choice, words, f, func(g Found) { match(rest, words, g, next) })
		}
	}
}

// At lists the ways in which phrases begin at the i-th word, those with the most words of their own first,
// and of these the ones that take more.
func (b *Book) At(words []Word, i int) (all []Found) {
	for _, word := range []string{words[i].Fold, ""} {
		for j := range b.phrases[word] {
			p := &b.phrases[word][j]
			match(p.parts, words, Found{Topic: p.topic, Form: p.form, End: i}, func(f Found) {
				if f.End > i && len(all) < 1000 {
					all = append(all, f)
				}
			})
		}
	}
	sorting.SortStable(all, func(f, g Found) int {
		return cmp.Or(cmp.Compare(f.late(i), g.late(i)), cmp.Compare(g.words, f.words),
			cmp.Compare(len(g.Slots), len(f.Slots)))
	})
	return all
}

// late is when a way is tried: those that begin with a slot, and fillers, come after others.
func (f Found) late(i int) int {
	switch {
	case len(f.Slots) > 0 && f.Slots[0][0] == i:
		return 2
	case f.Topic == Filler:
		return 1
	}
	return 0
}
