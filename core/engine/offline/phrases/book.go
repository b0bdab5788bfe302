package phrases

import (
	"embed"
	"slices"
	"strings"

	"synthbot/core/engine/offline/slips"
)

//go:embed words/*.txt
var files embed.FS

// Book is the content of one language's file. words/en.txt describes the format.
type Book struct {
	Language string
	phrases  map[string][]phrase          // by first word; "": those that may begin with a slot
	Says     map[string][]string          // by topic
	Lists    map[string]map[string]string // by topic: words, and what they mean
	known    map[string]bool              // all words of phrases and lists
}

// ReadBooks reads all books.
func ReadBooks() (books []*Book) {
	for _, language := range []string{"en", "de", "it", "es", "fr"} {
		text, _ := files.ReadFile("words/" + language + ".txt") // a test ensures that each language has a file
		books = append(books, readBook(language, string(text)))
	}
	return books
}

func readBook(language, text string) *Book {
	b := &Book{
		Language: language, phrases: make(map[string][]phrase), Says: make(map[string][]string),
		Lists: make(map[string]map[string]string), known: make(map[string]bool),
	}
	topic := ""
	for line := range strings.Lines(text) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case strings.HasPrefix(kind, "["):
			topic = strings.Trim(kind, "[]")
		case kind == "?" && topic == "foreign": // understood, but no sign of this language
			known := b.known
			b.known = make(map[string]bool)
			b.addPhrase(Filler, rest)
			b.known = known
		case kind == "?":
			b.addPhrase(topic, rest)
		case kind == "!":
			b.Says[topic] = append(b.Says[topic], rest)
		case kind == "=":
			b.addWords(topic, rest)
		}
	}
	return b
}

func (b *Book) addPhrase(topic, line string) {
	topic, form, _ := strings.Cut(topic, ":")
	p := phrase{topic, strings.ReplaceAll(form, "_", " "), b.readPattern(&line)}
	firsts, open := first(p.parts)
	if open {
		firsts[""] = true
	}
	for word := range firsts {
		b.phrases[word] = append(b.phrases[word], p)
		if topic == Filler && len(p.parts) == 1 {
			b.addWords(Filler, word+"=")
		}
	}
}

// addWords adds a line of a list: "word=meaning …", with _ for a space in either.
func (b *Book) addWords(topic, line string) {
	if b.Lists[topic] == nil {
		b.Lists[topic] = make(map[string]string)
	}
	for field := range strings.FieldsSeq(line) {
		word, meaning, _ := strings.Cut(strings.ReplaceAll(field, "_", " "), "=")
		word = Fold(word)
		b.Lists[topic][word] = meaning
		for _, w := range Split(word) {
			b.known[w.Fold] = true
		}
	}
}

// Knows reports whether a folded word is in a phrase or on a list.
func (b *Book) Knows(word string) bool { return b.known[word] || b.Is("short", word) }

// Is reports whether a folded word is on a list.
func (b *Book) Is(list, word string) bool {
	_, ok := b.Lists[list][word]
	return ok
}

// Has reports whether a text has a phrase of a list.
func (b *Book) Has(list, text string) bool { return b.Read(text).Has(list) }

// Split splits a text into words, with short forms written out: "what's" and "whats" become "what is".
func (b *Book) Split(text string) []Word {
	var words []Word
	short := b.Lists["short"]
	all := Split(text)
	for i := 0; i < len(all); i++ {
		w := all[i]
		long, ok := short[w.Fold]
		if i+1 < len(all) && IsApostrophe(text[w.End:all[i+1].Start]) {
			whole, isShort := short[w.Fold+"'"+all[i+1].Fold]
			if isShort {
				i++
				long, ok, w.End = whole, true, all[i].End
			}
		}
		if !ok {
			words = append(words, w)
			continue
		}
		for _, part := range Split(long) {
			words = append(words, Word{part.Fold, w.Start, w.End})
		}
	}
	return words
}

// IsApostrophe reports whether a text is one of the characters that people type for an apostrophe.
func IsApostrophe(s string) bool { return s == "'" || s == "’" || s == "`" || s == "´" }

// Corrected replaces unknown words by the known ones that were probably meant.
func (b *Book) Corrected(words []Word) []Word {
	words = slices.Clone(words)
	for i, w := range words {
		words[i].Fold = slips.Correct(w.Fold, b.known)
	}
	return words
}
