package phrases

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"synthbot/core/sorting"
)

type phrase struct {
	topic string
	form  string // how the slots are combined: "{1}/{2}"; "": they are joined
	parts []part
}

// part is a word of a pattern, a slot, or a choice between sequences. A sequence may be empty.
type part struct {
	word    string
	slot    bool
	choices [][]part
}

// readPattern reads a pattern such as "(a|b) [c] … d" up to its end, or a choice up to its end.
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

// first returns the words that a sequence may begin with. open reports whether it may be empty or begin with any word.
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

// Found is a phrase that was found in a sentence.
type Found struct {
	Topic string
	Form  string   // how the slots are combined; "": they are joined
	End   int      // index of the next word
	Slots [][2]int // index of the first word of each, and of the next word after it
	words int      // number of words that are not in slots
}

// match calls next for each way in which the parts match the words after f.End.
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
				end = ends - n // the longest slot first
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

// At lists the phrases that begin at the i-th word. Those with the most words outside of slots come first, then
// those with more slots.
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

// late sorts fillers after other phrases, and phrases that begin with a slot after these.
func (f Found) late(i int) int {
	switch {
	case len(f.Slots) > 0 && f.Slots[0][0] == i:
		return 2
	case f.Topic == Filler:
		return 1
	}
	return 0
}
