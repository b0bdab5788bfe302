package moderation

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// A text is looked at as words: runs of letters, digits and their marks, folded;
// of scripts that write no spaces between words each letter by itself, and each
// emoji. What cannot be seen is left out, and everything else parts words.
//
// Letters with accents are as Unicode writes them composed; a letter with an
// accent behind it is another one.

// words is a text cut into words, to be used again and again.
type words struct {
	text []byte
	ends []int // of each word, in text
}

// cut makes the words of a text.
func (w *words) cut(text string) {
	w.text, w.ends = w.text[:0], w.ends[:0]
	inside := false
	for _, r := range text {
		switch sort(r) {
		case parting:
			inside = w.end(inside)
		case letter:
			w.text, inside = utf8.AppendRune(w.text, fold(r)), true
		case alone:
			w.end(inside)
			w.text = utf8.AppendRune(w.text, fold(r))
			inside = w.end(true)
		}
	}
	w.end(inside)
}

// end ends the word that one is inside of.
func (w *words) end(inside bool) (stillInside bool) {
	if inside {
		w.ends = append(w.ends, len(w.text))
	}
	return false
}

// at is the i-th word.
func (w *words) at(i int) []byte {
	start := 0
	if i > 0 {
		start = w.ends[i-1]
	}
	return w.text[start:w.ends[i]]
}

// follow reports whether these words stand from the i-th one on.
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

// list are the words as texts.
func (w *words) list() []string {
	list := make([]string, len(w.ends))
	for i := range w.ends {
		list[i] = string(w.at(i))
	}
	return list
}

// part is what a letter is to words.
type part int

const (
	parting part = iota
	letter
	alone  // a word by itself
	unseen // not there
)

func sort(r rune) part {
	switch {
	case r < utf8.RuneSelf:
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return letter
		}
		return parting
	case r == utf8.RuneError:
		return parting
	case unicode.Is(unicode.Cf, r), unicode.Is(unicode.Variation_Selector, r), unicode.Is(unicode.Sk, r):
		return unseen
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.So):
		return alone
	case unicode.IsLetter(r), unicode.IsNumber(r), unicode.IsMark(r):
		return letter
	}
	return parting
}

// fold makes one letter of those that differ in case alone.
func fold(r rune) rune {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

// checkWord says what is wrong with a word of a rule.
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

// dictionary finds the words of rules, each rule being a bit.
type dictionary struct {
	first map[string][]phrase // by the first word
	rules uint64              // that have words
}

type phrase struct {
	rest []string
	rule uint64
}

// add puts a word, or several in a row, in.
func (d *dictionary) add(rule uint64, text string) {
	list := wordsOf(text)
	if d.first == nil {
		d.first = make(map[string][]phrase)
	}
	d.first[list[0]] = append(d.first[list[0]], phrase{list[1:], rule})
	d.rules |= rule
}

// find returns those of the wanted rules whose words stand in the text.
func (d *dictionary) find(w *words, wanted uint64) (found uint64) {
	for i := range w.ends {
		for _, p := range d.first[string(w.at(i))] {
			if p.rule&wanted&^found != 0 && w.follow(i+1, p.rest) {
				if found |= p.rule; found == wanted&d.rules {
					return found
				}
			}
		}
	}
	return found
}
