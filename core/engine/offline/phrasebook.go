package offline

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"io/fs"
	"slices"
	"strings"

	"synthbot/core/engine/offline/slips"
)

// archive has the files of the folder words, packed.
//
//go:generate go run ../../../scripts/pack words.zip words
//go:embed words.zip
var archive []byte

// phrasebook is what one language's file holds. See words/en.txt for its form.
type phrasebook struct {
	language string
	phrases  map[string][]phrase          // by the words that they begin with; "": those that begin with a slot
	says     map[string][]string          // by topic
	lists    map[string]map[string]string // by topic: words, and what they mean
	known    map[string]bool              // all words of phrases and lists
}

// languages lists the files, in the order in which they are searched.
func languages() []string { return []string{"en", "de", "it", "es", "fr"} }

func readBooks() []*phrasebook {
	files, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		panic(err) // it is our own
	}
	var books []*phrasebook
	for _, language := range languages() {
		text, err := fs.ReadFile(files, language+".txt")
		if err == nil { // a test holds the files and the list together
			books = append(books, readBook(language, string(text)))
		}
	}
	return books
}

func readBook(language, text string) *phrasebook {
	b := &phrasebook{
		language: language, phrases: make(map[string][]phrase), says: make(map[string][]string),
		lists: make(map[string]map[string]string), known: make(map[string]bool),
	}
	topic := ""
	for line := range strings.Lines(text) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case strings.HasPrefix(kind, "["):
			topic = strings.Trim(kind, "[]")
		case kind == "?":
			b.addPhrase(topic, rest)
		case kind == "!":
			b.says[topic] = append(b.says[topic], rest)
		case kind == "=":
			b.addWords(topic, rest)
		}
	}
	return b
}

func (b *phrasebook) addPhrase(topic, line string) {
	p := phrase{topic, b.readPattern(&line)}
	firsts, open := first(p.parts)
	if open {
		firsts[""] = true
	}
	for word := range firsts {
		b.phrases[word] = append(b.phrases[word], p)
		if topic == filler && len(p.parts) == 1 {
			b.addWords(filler, word+"=")
		}
	}
}

// addWords takes in a line of a list: "word=meaning", with _ for a space in either.
func (b *phrasebook) addWords(topic, line string) {
	if b.lists[topic] == nil {
		b.lists[topic] = make(map[string]string)
	}
	for field := range strings.FieldsSeq(line) {
		word, meaning, _ := strings.Cut(strings.ReplaceAll(field, "_", " "), "=")
		word = fold(word)
		b.lists[topic][word] = meaning
		for _, w := range split(word) {
			b.known[w.fold] = true
		}
	}
}

// is reports whether a folded word is on a list.
func (b *phrasebook) is(list, word string) bool {
	_, ok := b.lists[list][word]
	return ok
}

// phrase is how many words at the front of a text are an entry of a list.
func (b *phrasebook) phrase(list string, words []word) int {
	for n := min(len(words), 4); n > 0; n-- {
		folds := make([]string, n)
		for i, w := range words[:n] {
			folds[i] = w.fold
		}
		if b.is(list, strings.Join(folds, " ")) {
			return n
		}
	}
	return 0
}

// split is the words of a text as this language writes them: short forms are written out ("what's" is
// "what is"), however they were typed.
func (b *phrasebook) split(text string) []word {
	var words []word
	short := b.lists["short"]
	all := split(text)
	for i := 0; i < len(all); i++ {
		w := all[i]
		if i+1 < len(all) && isApostrophe(text[w.end:all[i+1].start]) {
			if long, ok := short[w.fold+"'"+all[i+1].fold]; ok {
				words = appendLong(words, long, w.start, all[i+1].end)
				i++
				continue
			}
		}
		if long, ok := short[w.fold]; ok {
			words = appendLong(words, long, w.start, w.end)
			continue
		}
		words = append(words, w)
	}
	return words
}

func isApostrophe(s string) bool { return s == "'" || s == "’" || s == "`" || s == "´" }

func appendLong(words []word, long string, start, end int) []word {
	for _, w := range split(long) {
		words = append(words, word{w.fold, start, end})
	}
	return words
}

// corrected replaces words that the book does not know by those that were probably meant.
func (b *phrasebook) corrected(words []word) []word {
	words = slices.Clone(words)
	for i, w := range words {
		words[i].fold = slips.Correct(w.fold, b.known)
	}
	return words
}
