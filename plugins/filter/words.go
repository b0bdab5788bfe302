package filter

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// words is a text split into words. It can be reused for another text.
type words struct {
	text []byte
	ends []int // of each word, in text
}

func (w *words) cut(text string) {
	w.text, w.ends = w.text[:0], w.ends[:0]
	for _, r := range text {
		switch classOf(r) {
		case separator:
			w.end()
		case letter:
			w.text = utf8.AppendRune(w.text, fold(r))
		case single:
			w.end()
			w.text = utf8.AppendRune(w.text, fold(r))
			w.end()
		}
	}
	w.end()
}

func (w *words) end() {
	n := len(w.ends)
	if n == 0 && len(w.text) > 0 || n > 0 && len(w.text) > w.ends[n-1] {
		w.ends = append(w.ends, len(w.text))
	}
}

func (w *words) at(i int) []byte {
	start := 0
	if i > 0 {
		start = w.ends[i-1]
	}
	return w.text[start:w.ends[i]]
}

// follow reports whether list occurs at word i.
func (w *words) follow(i int, list []string) bool {
	if i+len(list) > len(w.ends) {
		return false
	}
	for n, word := range list {
		if string(w.at(i+n)) != word {
			return false
		}
	}
	return true
}

func (w *words) list() []string {
	list := make([]string, len(w.ends))
	for i := range w.ends {
		list[i] = string(w.at(i))
	}
	return list
}

type class int

const (
	separator class = iota
	letter
	single    // a word by itself
	invisible // left out
)

func classOf(r rune) class {
	switch {
	case r < utf8.RuneSelf:
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return letter
		}
		return separator
	case r == utf8.RuneError:
		return separator
	case unicode.Is(unicode.Cf, r), unicode.Is(unicode.Variation_Selector, r), unicode.Is(unicode.Sk, r):
		return invisible
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer,
		unicode.Myanmar, unicode.So):
		return single
	case unicode.IsLetter(r), unicode.IsNumber(r), unicode.IsMark(r):
		return letter
	}
	return separator
}

// fold returns the same letter for all that differ only in case.
func fold(r rune) rune {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

func checkWord(text string) error {
	if len(text) > maxWord {
		return fmt.Errorf("has %d bytes; a word has at most %d", len(text), maxWord)
	}
	if len(wordsOf(text)) == 0 {
		return fmt.Errorf("%q holds no letter or digit", text)
	}
	return nil
}

func wordsOf(text string) []string {
	var w words
	w.cut(text)
	return w.list()
}

// dictionary finds the words of rules. Each rule is a bit.
type dictionary struct {
	first map[string][]phrase // by the first word
	rules uint64              // that have words
}

type phrase struct {
	rest []string
	rule uint64
}

// add adds a word, or several in a row.
func (d *dictionary) add(rule uint64, text string) {
	list := wordsOf(text)
	if d.first == nil {
		d.first = make(map[string][]phrase)
	}
	d.first[list[0]] = append(d.first[list[0]], phrase{list[1:], rule})
	d.rules |= rule
}

func (d *dictionary) find(w *words, wanted uint64) (found uint64) {
	for i := range w.ends {
		for _, p := range d.first[string(w.at(i))] {
			if p.rule&wanted&^found != 0 && w.follow(i+1, p.rest) {
				found |= p.rule
			}
		}
	}
	return found
}
