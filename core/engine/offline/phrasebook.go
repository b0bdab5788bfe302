package offline

import (
	"embed"
	"regexp"
	"strconv"
	"strings"

	"synthbot/core/txt"
)

//go:embed words/*.txt
var files embed.FS

// vocabulary is all that is read but once.
type vocabulary struct {
	books  []*phrasebook
	labels *regexp.Regexp
	asked  []*regexp.Regexp // ways in which instructions name a language
}

func readLexicon() *vocabulary {
	return &vocabulary{
		books:  readBooks(),
		labels: regexp.MustCompile(`(?:^| )(` + strings.Join(labels(), "|") + `): `),
		asked: []*regexp.Regexp{
			regexp.MustCompile(`\blanguage:? ?["']?(en|de|it|es|fr)(?:-[a-z]+)?["'.;, ]`),
			regexp.MustCompile(`\b(?:answer|reply|respond|write|speak|language)[^.]{0,20}? ` +
				`(english|german|deutsch|italian|italiano|spanish|espanol|french|francais)[^a-z]`),
		},
	}
}

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
		if err != nil {
			continue // a test holds the files and the list together
		}
		books = append(books, readBook(language, string(text)))
	}
	return books
}

func readBook(language, text string) *phrasebook {
	b := &phrasebook{language: language, says: map[string][]string{}}
	topic := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "["):
			topic = strings.Trim(line, "[]")
		case strings.HasPrefix(line, "? "):
			b.asks = append(b.asks, readRequest(topic, line[2:]))
		case strings.HasPrefix(line, "! "):
			b.says[topic] = append(b.says[topic], line[2:])
		}
	}
	b.stop, b.self = readWords(b.says["stop"]), readWords(b.says["self"])
	b.units, b.numbers = readNumbers(b.says["units"]), readNumbers(b.says["numbers"])
	b.clock = readPairs(b.says["timewords"])
	return b
}

func readRequest(topic, line string) phrase {
	a := phrase{topic: topic}
	line, a.start = strings.CutPrefix(line, "^")
	line, a.end = strings.CutSuffix(line, "$")
	line, a.rest = strings.CutSuffix(line, " …")
	for _, word := range split(line) {
		a.words = append(a.words, word.fold)
	}
	return a
}

func readWords(lines []string) map[string]bool {
	words := make(map[string]bool)
	for _, line := range lines {
		for _, word := range split(line) {
			words[word.fold] = true
		}
	}
	return words
}

func readPairs(lines []string) map[string]string {
	pairs := make(map[string]string)
	for _, line := range lines {
		for field := range strings.FieldsSeq(line) {
			if key, value, ok := strings.Cut(field, "="); ok {
				pairs[txt.Fold(strings.Trim(key, "'"))] = value
			}
		}
	}
	return pairs
}

func readNumbers(lines []string) map[string]float64 {
	numbers := make(map[string]float64)
	for key, value := range readPairs(lines) {
		numbers[key], _ = strconv.ParseFloat(value, 64)
	}
	return numbers
}
