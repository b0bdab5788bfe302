package recon

import (
	_ "embed"
	"math/bits"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What the detector reads of one message, and the weights of the evidence.
const (
	textMax    = 2000 // bytes
	wordsMax   = 200
	letterPart = 0.6 // a letter that few languages have; a listed word weighs 1
	endingPart = 0.5 // the ending of an unlisted word
	scriptPart = 2.0 // a word in the script of one language
	runePart   = 1.0 // a character of a script without spaces
	endingMin  = 2   // letters
	endingMax  = 5
)

// languageList has a line for each language that shares its script with others: its tag, letters
// that few others have, and words that are frequent in chats; "-ung" is an ending. The weight of
// a word is divided among the languages that have it.
//
//go:embed languages.txt
var languageList string

// script is a script that only one language uses in chats.
type script struct {
	tag    string
	table  *unicode.RangeTable
	parted bool // whether spaces separate words
}

// detector detects languages by their scripts and frequent words. It is immutable.
type detector struct {
	tags    []string
	words   map[string]uint64 // the languages that have the word, as bits
	endings map[string]uint64
	letters map[rune]uint64
	scripts []script
}

func newDetector() *detector {
	d := &detector{
		words: make(map[string]uint64, 8192), endings: make(map[string]uint64, 512),
		letters: make(map[rune]uint64, 128),
	}
	d.scripts = []script{
		{"zh", unicode.Han, false}, {"ja", unicode.Hiragana, false}, {"ja", unicode.Katakana, false},
		{"th", unicode.Thai, false}, {"lo", unicode.Lao, false}, {"km", unicode.Khmer, false},
		{"my", unicode.Myanmar, false}, {"ko", unicode.Hangul, true}, {"el", unicode.Greek, true},
		{"he", unicode.Hebrew, true}, {"ka", unicode.Georgian, true}, {"hy", unicode.Armenian, true},
		{"bn", unicode.Bengali, true}, {"ta", unicode.Tamil, true}, {"te", unicode.Telugu, true},
		{"kn", unicode.Kannada, true}, {"ml", unicode.Malayalam, true}, {"gu", unicode.Gujarati, true},
		{"pa", unicode.Gurmukhi, true}, {"si", unicode.Sinhala, true}, {"am", unicode.Ethiopic, true},
	}
	for line := range strings.Lines(languageList) {
		bit := uint64(1) << len(d.tags)
		fields := strings.Split(line, "|")
		for _, r := range fields[1] {
			d.letters[r] |= bit
		}
		for word := range strings.FieldsSeq(fields[2]) {
			ending, ok := strings.CutPrefix(word, "-")
			if ok {
				d.endings[ending] |= bit
			} else {
				d.words[word] |= bit
			}
		}
		d.tags = append(d.tags, fields[0])
	}
	for _, s := range d.scripts {
		if d.at(s.tag) < 0 {
			d.tags = append(d.tags, s.tag)
		}
	}
	return d
}

// evidence is the weight of the evidence for each language, by the index of its tag.
type evidence []float64

func (e evidence) sum() (sum float64) {
	for _, v := range e {
		sum += v
	}
	return sum
}

// best returns the index of the strongest language and the evidence for the second.
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

// at returns the index of a tag, or -1 if it is unknown.
func (d *detector) at(tag string) int { return slices.Index(d.tags, tag) }

// share divides an amount of evidence among the languages of a set.
func (d *detector) share(e evidence, set uint64, amount float64) {
	part := amount / float64(bits.OnesCount64(set))
	for s := set; s != 0; s &= s - 1 {
		e[bits.TrailingZeros64(s)] += part
	}
}

// reading is the evidence in a text. It is immutable.
type reading struct {
	evidence evidence
	words    int
}

func (d *detector) read(text string) reading {
	e, words := make(evidence, len(d.tags)), 0
	for field := range strings.FieldsSeq(text[:min(len(text), textMax)]) {
		if foreign(field) {
			continue
		}
		for field != "" && words < wordsMax {
			var word string
			word, field = cutWord(field)
			if word != "" {
				d.word(e, word)
				words++
			}
		}
	}
	zh, ja := d.at("zh"), d.at("ja")
	if e[ja] > 0 { // Kana: then the Chinese characters are Japanese
		e[zh], e[ja] = 0, e[zh]+e[ja]
	}
	return reading{e, words}
}

// cutWord cuts a field after its first word, which it returns in lower case.
func cutWord(field string) (word, rest string) {
	word = field
	at := strings.IndexFunc(field, parts)
	if at >= 0 {
		_, size := utf8.DecodeRuneInString(field[at:])
		word, rest = field[:at], field[at+size:]
	}
	return strings.Trim(strings.ReplaceAll(strings.ToLower(word), "’", "'"), "'-"), rest
}

// foreign reports whether a field is not a word of a language: an address, a name, a command, code.
func foreign(field string) bool {
	return strings.Contains(field, "://") || strings.HasPrefix(field, "www.") ||
		strings.ContainsAny(field[:1], "@#/<`$") || strings.ContainsAny(field, "_={}0123456789")
}

// parts reports whether the rune separates words.
func parts(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsMark(r) && r != '\'' && r != '-' && r != '’' && r != '\u200c'
}

// word adds the evidence of a word: its script, or itself or else its ending, and its letters.
func (d *detector) word(e evidence, word string) {
	first, _ := utf8.DecodeRuneInString(word)
	if first >= 0x370 {
		for _, s := range d.scripts {
			switch {
			case !unicode.Is(s.table, first):
			case s.parted:
				e[d.at(s.tag)] += scriptPart
				return
			default:
				d.characters(e, word)
				return
			}
		}
	}
	set, amount := d.words[word], 1.0
	if set == 0 {
		set, amount = d.ending(word), endingPart
	}
	d.share(e, set, amount)
	seen := uint64(0)
	for _, r := range word {
		set := d.letters[r]
		if set != 0 && set&^seen != 0 {
			d.share(e, set, letterPart)
			seen |= set
		}
	}
}

// characters adds the evidence of each character of a text without spaces.
func (d *detector) characters(e evidence, text string) {
	for _, r := range text {
		for _, s := range d.scripts {
			if unicode.Is(s.table, r) {
				e[d.at(s.tag)] += runePart
			}
		}
	}
}

// ending returns the languages that have the longest known ending of a word.
func (d *detector) ending(word string) (set uint64) {
	at := len(word)
	for n := range min(endingMax, utf8.RuneCountInString(word)-endingMin) {
		_, size := utf8.DecodeLastRuneInString(word[:at])
		at -= size
		known := d.endings[word[at:]]
		if n+1 >= endingMin && known != 0 {
			set = known
		}
	}
	return set
}
