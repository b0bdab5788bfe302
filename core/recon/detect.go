package recon

import (
	_ "embed"
	"math/bits"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What the detector reads of one message, and how much of it counts.
const (
	textMax    = 2000 // bytes
	wordsMax   = 200
	letterPart = 0.6 // a telling letter, measured in telling words
	scriptPart = 0.5 // a word, or a character where words are not parted
)

// languageList has a line for each language of the Latin and Cyrillic scripts: its tag,
// letters that few others have, and little words that are frequent in chats. Words that
// several languages share count a part for each.
//
//go:embed languages.txt
var languageList string

// detector knows languages by their little words. It never changes.
type detector struct {
	tags    []string
	words   map[string]uint64 // the languages that have the word, as bits
	letters map[rune]uint64
}

func newDetector() *detector {
	d := &detector{words: make(map[string]uint64, 2048), letters: make(map[rune]uint64, 64)}
	for line := range strings.Lines(languageList) {
		bit := uint64(1) << len(d.tags)
		fields := strings.Split(line, "|")
		for _, r := range fields[1] {
			d.letters[r] |= bit
		}
		for word := range strings.FieldsSeq(fields[2]) {
			d.words[word] |= bit
		}
		d.tags = append(d.tags, fields[0])
	}
	d.tags = append(d.tags, "el", "he", "ar", "fa", "hi", "th", "ko", "ja", "zh") // by script
	return d
}

// evidence is how much speaks for each language, by the index of its tag.
type evidence []float64

// best returns the strongest language, and how strong the next one is.
func (e evidence) best() (at int, next float64) {
	for i, v := range e {
		switch {
		case v > e[at]:
			at, next = i, e[at]
		case i != at:
			next = max(next, v)
		}
	}
	return at, next
}

// at returns the index of a tag; -1 if the detector does not know it.
func (d *detector) at(tag string) int { return slices.Index(d.tags, tag) }

// share gives a part to each language of the set.
func (d *detector) share(e evidence, set uint64, amount float64) {
	part := amount / float64(bits.OnesCount64(set))
	for s := set; s != 0; s &= s - 1 {
		e[bits.TrailingZeros64(s)] += part
	}
}

// weigh reads a text.
func (d *detector) weigh(text string) evidence {
	e := make(evidence, len(d.tags))
	if len(text) > textMax {
		text = text[:textMax]
	}
	left := wordsMax
	for field := range strings.FieldsSeq(text) {
		if foreign(field) {
			continue
		}
		for word := range strings.FieldsFuncSeq(field, parts) {
			if left--; left < 0 {
				return e
			}
			d.word(e, strings.ToLower(strings.Trim(word, "'-")))
		}
	}
	return e
}

// foreign reports whether a field is not a word of a language: an address, a name, a command,
// code.
func foreign(field string) bool {
	return strings.Contains(field, "://") || strings.HasPrefix(field, "www.") ||
		strings.ContainsAny(field[:1], "@#/<`$") || strings.ContainsAny(field, "_=;{}0123456789")
}

// parts reports whether the rune separates words.
func parts(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsMark(r) && r != '\'' && r != '-' && r != '’' && r != '¿' && r != '¡'
}

func (d *detector) word(e evidence, word string) {
	word = strings.ReplaceAll(word, "’", "'")
	first, _ := utf8.DecodeRuneInString(word)
	tag, amount := script(word, first)
	if tag != "" {
		e[d.at(tag)] += amount
		return
	}
	if set, ok := d.words[strings.Trim(word, "¿¡")]; ok {
		d.share(e, set, 1)
	}
	seen := uint64(0)
	for _, r := range word {
		set := d.letters[r]
		if set != 0 && set&^seen != 0 {
			d.share(e, set, letterPart)
			seen |= set
		}
	}
}

// script returns the language of a script that only one language uses in chats.
func script(word string, r rune) (tag string, amount float64) {
	switch {
	case r < 0x370:
		return "", 0
	case unicode.Is(unicode.Greek, r):
		return "el", 2 * scriptPart
	case unicode.Is(unicode.Hebrew, r):
		return "he", 2 * scriptPart
	case unicode.Is(unicode.Arabic, r):
		if strings.ContainsAny(word, "پچژگ") {
			return "fa", 4 * scriptPart
		}
		return "ar", 2 * scriptPart
	case unicode.Is(unicode.Devanagari, r):
		return "hi", 2 * scriptPart
	case unicode.Is(unicode.Thai, r):
		return "th", scriptPart * float64(utf8.RuneCountInString(word)) / 3
	case unicode.Is(unicode.Hangul, r):
		return "ko", 2 * scriptPart
	case unicode.Is(unicode.Han, r), unicode.In(r, unicode.Hiragana, unicode.Katakana):
		return chineseOrJapanese(word), scriptPart * float64(utf8.RuneCountInString(word))
	}
	return "", 0
}

// chineseOrJapanese tells the two apart: Japanese has letters of its own.
func chineseOrJapanese(word string) string {
	if strings.ContainsFunc(word, func(r rune) bool { return unicode.In(r, unicode.Hiragana, unicode.Katakana) }) {
		return "ja"
	}
	return "zh"
}
