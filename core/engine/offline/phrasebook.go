package offline

import (
	"embed"
	"slices"
	"strconv"
	"strings"

	"synthbot/core/txt"
)

//go:embed words/*.txt
var files embed.FS

// phrasebook is what one language's file holds.
type phrasebook struct {
	language string
	asks     []phrase
	says     map[string][]string // by topic
	stop     map[string]bool     // words that make no topic
	self     map[string]bool     // words by which people speak of themselves
	units    map[string]float64  // seconds
	numbers  map[string]float64
	clock    map[string]string // words of time: in, at, tomorrow, …
}

// phrase is one thing that people say.
type phrase struct {
	topic      string
	words      []string
	start, end bool // bound to the start or the end of the message
	rest       bool // takes what follows
}

// languages lists the files, in the order in which they are searched.
func languages() []string { return []string{"en", "de", "it", "es", "fr"} }

func readBooks() []*phrasebook {
	var books []*phrasebook
	for _, language := range languages() {
		text, err := files.ReadFile("words/" + language + ".txt")
		if err == nil { // a test holds the files and the list together
			books = append(books, readBook(language, string(text)))
		}
	}
	return books
}

func readBook(language, text string) *phrasebook {
	b := &phrasebook{
		language: language, says: make(map[string][]string), stop: make(map[string]bool), self: make(map[string]bool),
		units: make(map[string]float64), numbers: make(map[string]float64), clock: make(map[string]string),
	}
	topic := ""
	for line := range strings.Lines(text) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case strings.HasPrefix(kind, "["):
			topic = strings.Trim(kind, "[]")
		case kind == "?":
			b.asks = append(b.asks, readPhrase(topic, rest))
		case kind == "!":
			b.says[topic] = append(b.says[topic], rest)
			if slices.Contains(lists, topic) {
				b.learn(topic, rest)
			}
		}
	}
	return b
}

// lists are the topics whose lines are lists of words, or of words and their meanings.
var lists = []string{"stop", "self", "units", "numbers", "timewords"}

func readPhrase(topic, line string) phrase {
	a := phrase{topic: topic}
	line, a.start = strings.CutPrefix(line, "^")
	line, a.end = strings.CutSuffix(line, "$")
	line, a.rest = strings.CutSuffix(line, " …")
	for _, word := range split(line) {
		a.words = append(a.words, word.fold)
	}
	return a
}

// learn takes in a list.
func (b *phrasebook) learn(topic, line string) {
	for field := range strings.FieldsSeq(line) {
		word, meaning, _ := strings.Cut(field, "=")
		number, _ := strconv.ParseFloat(meaning, 64)
		word = txt.Fold(strings.Trim(word, "'"))
		switch topic {
		case "stop":
			b.stop[word] = true
		case "self":
			b.self[word] = true
		case "units":
			b.units[word] = number
		case "numbers":
			b.numbers[word] = number
		case "timewords":
			b.clock[word] = meaning
		}
	}
}
