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
// known, each once, in order. Scripts without spaces give pairs of letters.
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

// words calls use for each word until it returns false.
func words(text string, use func(string) bool) {
	letter := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
	}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !letter(r) }) {
		if !fold(word, use) {
			return
		}
	}
}

// fold lower-cases a word and splits what has no spaces.
func fold(word string, use func(string) bool) bool {
	word = strings.ToLower(word)
	first, _ := utf8.DecodeRuneInString(word)
	if !unicode.In(first, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai) {
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
