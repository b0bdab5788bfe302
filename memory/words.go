package memory

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"golang.org/x/text/unicode/norm"
)

// Limits of what is read of one text.
const (
	maxWords = 512
	maxWord  = 64 // bytes
)

// stemmer finds the stemmer of a language (BCP 47); nil where there is none.
func stemmer(language string) func(*snowballstem.Env) bool {
	base, _, _ := strings.Cut(strings.ToLower(language), "-")
	for _, s := range stemmers {
		if s.language == base {
			return s.stem
		}
	}
	return nil
}

var stemmers = [...]struct {
	language string
	stem     func(*snowballstem.Env) bool
}{
	{"da", danish.Stem}, {"de", german.Stem}, {"en", english.Stem}, {"es", spanish.Stem}, {"fi", finnish.Stem},
	{"fr", french.Stem}, {"it", italian.Stem}, {"nb", norwegian.Stem}, {"nl", dutch.Stem}, {"nn", norwegian.Stem},
	{"no", norwegian.Stem}, {"pt", portuguese.Stem}, {"ru", russian.Stem}, {"sv", swedish.Stem},
}

// terms returns the distinct words of a text, in lower case, stemmed if the language is known. Scripts without
// spaces give pairs of letters, and single Han characters, too.
func terms(text, language string) []string {
	stem := stemmer(language)
	seen := make(map[string]bool)
	var all []string
	words(text, func(word string) bool {
		word = stemmed(word, stem)
		if !seen[word] {
			seen[word] = true
			all = append(all, word)
		}
		return len(all) < maxWords
	})
	return all
}

func stemmed(word string, stem func(*snowballstem.Env) bool) string {
	if stem == nil {
		return word
	}
	env := snowballstem.NewEnv(word)
	stem(env)
	return env.Current()
}

// words calls use for each word, and then for each Han character, which may be a word, until it returns false.
func words(text string, use func(string) bool) {
	notInWord := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) }
	text = lower(text)
	hasHan := false
	for run := range strings.FieldsFuncSeq(text, notInWord) {
		for run != "" {
			var piece string
			piece, run = cutPiece(run)
			if !splitWord(piece, use) {
				return
			}
			hasHan = hasHan || strings.ContainsFunc(piece, isHan)
		}
	}
	if !hasHan {
		return
	}
	for _, r := range text {
		if isHan(r) && !use(string(r)) {
			return
		}
	}
}

// lower returns a text in the form in which texts are compared: in lower case and normal form C.
func lower(text string) string { return strings.ToLower(norm.NFC.String(text)) }

func isHan(r rune) bool { return unicode.Is(unicode.Han, r) }

// cutPiece splits a run of letters where a script with spaces meets one without.
func cutPiece(run string) (piece, rest string) {
	first, _ := utf8.DecodeRuneInString(run)
	for i, r := range run {
		if isUnspaced(r) != isUnspaced(first) && !unicode.IsMark(r) && r != longVowelMark {
			return run[:i], run[i:]
		}
	}
	return run, ""
}

// longVowelMark is the mark of long vowels, which Hiragana and Katakana share.
const longVowelMark = 'ー'

func isUnspaced(r rune) bool {
	const thai = 0x0E00 // the first of these scripts
	return r >= thai && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// splitWord calls use for a word, or for its pairs of letters if its script has no spaces.
func splitWord(word string, use func(string) bool) bool {
	first, _ := utf8.DecodeRuneInString(word)
	if !isUnspaced(first) {
		return use(strings.ToValidUTF8(word[:min(len(word), maxWord)], ""))
	}
	runes := []rune(word)
	if len(runes) == 1 {
		return use(word)
	}
	for i := range len(runes) - 1 {
		if !use(string(runes[i : i+2])) {
			return false
		}
	}
	return true
}
