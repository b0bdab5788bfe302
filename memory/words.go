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

// Limits of what is looked at of one text.
const (
	maxWords = 512
	maxWord  = 64 // bytes
)

// stemmer finds the stemmer of a language (BCP 47); nil where there is none.
func stemmer(language string) func(*snowballstem.Env) bool {
	base, _, _ := strings.Cut(strings.ToLower(language), "-")
	switch base {
	case "da":
		return danish.Stem
	case "nl":
		return dutch.Stem
	case "en":
		return english.Stem
	case "fi":
		return finnish.Stem
	case "fr":
		return french.Stem
	case "de":
		return german.Stem
	case "it":
		return italian.Stem
	case "nb", "nn", "no":
		return norwegian.Stem
	case "pt":
		return portuguese.Stem
	case "ru":
		return russian.Stem
	case "es":
		return spanish.Stem
	case "sv":
		return swedish.Stem
	}
	return nil
}

// terms are the words of a text, lower-cased, stemmed where the language is
// known, each once. Scripts without spaces give pairs of letters, and Han signs
// themselves, too.
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

// stemmed is the stem of a word; without a stemmer, the word.
func stemmed(word string, stem func(*snowballstem.Env) bool) string {
	if stem == nil {
		return word
	}
	env := snowballstem.NewEnv(word)
	stem(env)
	return env.Current()
}

// words calls use for each word until it returns false: at last for the single
// signs of what has no spaces between words, of which each may be one.
func words(text string, use func(string) bool) {
	letter := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
	}
	text = lower(text)
	signs := false
	for run := range strings.FieldsFuncSeq(text, func(r rune) bool { return !letter(r) }) {
		for run != "" {
			var piece string
			piece, run = cutPiece(run)
			if !fold(piece, use) {
				return
			}
			signs = signs || strings.ContainsFunc(piece, isSign)
		}
	}
	if !signs {
		return
	}
	for _, r := range text {
		if isSign(r) && !use(string(r)) {
			return
		}
	}
}

// lower is a text in the form in which texts are compared: in small letters, and
// with each accent in one letter with its base, however it was typed.
func lower(text string) string { return strings.ToLower(norm.NFC.String(text)) }

func isSign(r rune) bool { return unicode.Is(unicode.Han, r) }

// cutPiece cuts a run of letters where a script that puts spaces between words
// meets one that does not.
func cutPiece(run string) (piece, rest string) {
	first, _ := utf8.DecodeRuneInString(run)
	for i, r := range run {
		if isUnspaced(r) != isUnspaced(first) && !unicode.IsMark(r) && r != prolonged {
			return run[:i], run[i:]
		}
	}
	return run, ""
}

// prolonged is the mark of long vowels, which belongs to two scripts.
const prolonged = 'ー'

func isUnspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// fold takes a word as it is, and splits what has no spaces into pairs.
func fold(word string, use func(string) bool) bool {
	first, _ := utf8.DecodeRuneInString(word)
	if !isUnspaced(first) {
		if len(word) > maxWord {
			word = strings.ToValidUTF8(word[:maxWord], "")
		}
		return use(word)
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
