package spoken

import (
	"embed"
	"strconv"
	"strings"
)

//go:embed words/*.txt
var files embed.FS

// languages lists the files, in the order in which they are tried.
func languages() []string { return []string{"en", "it", "de", "fr", "es", "pt"} }

// kind is what a word means.
type kind string

// Kinds of word; those that a file names, and below them what digits make.
const (
	in, later, at, on, the, next kind = "in", "later", "at", "on", "the", "next"
	every, and, half, quarter    kind = "every", "and", "half", "quarter"
	past, to, halfTo, oclock     kind = "past", "to", "half-to", "clock"
	am, pm, workday, glue        kind = "am", "pm", "workday", "glue"
	number, unit, day, part      kind = "number", "unit", "day", "part"
	hour, weekday, month         kind = "hour", "weekday", "month"

	digits kind = "digits" // a number that is written in digits
	nth    kind = "nth"    // 21st, 1er
	clock  kind = "time"   // 18:30; minutes of the day
	hours  kind = "9h30"   // minutes, of the day or from now
	dotted kind = "9.30"   // a time or a date: hundreds and ones
	date   kind = "date"   // a whole one; days, as pack made them
)

// Units of time; then parts of the day, by the hour that they mean.
const (
	aSecond = iota
	aMinute
	anHour
	aDay
	aWeek
	aMonth
	aYear
)

const morning, afternoon, evening = 9, 15, 20

// sense is one meaning of a word.
type sense struct {
	kind  kind
	value float64
}

// lexicon is one language.
type lexicon struct {
	phrases map[string][]phrase // by the folded phrase
	longest int                 // words of the longest phrase
}

// phrase is one way to read some words: mostly one meaning.
type phrase []sense

func readLexicon(language string) *lexicon {
	l := &lexicon{phrases: make(map[string][]phrase)}
	text, err := files.ReadFile("words/" + language + ".txt")
	if err != nil {
		return l // a test holds the files and the list together
	}
	for line := range strings.Lines(string(text)) {
		means, says, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			continue
		}
		p := readPhrase(means)
		for each := range strings.SplitSeq(says, ", ") {
			key, n := foldPhrase(each)
			l.longest = max(l.longest, n)
			l.phrases[key] = append(l.phrases[key], p)
		}
	}
	return l
}

// values are those that a file writes as words.
var values = map[string]float64{
	"second": aSecond, "minute": aMinute, "hour": anHour, "day": aDay, "week": aWeek, "month": aMonth, "year": aYear,
	"morning": morning, "afternoon": afternoon, "evening": evening,
}

func readPhrase(means string) (p phrase) {
	for field := range strings.FieldsSeq(means) {
		name, text, _ := strings.Cut(field, "=")
		value, ok := values[text]
		if !ok {
			value, _ = strconv.ParseFloat(text, 64) // "" is 0
		}
		p = append(p, sense{kind(name), value})
	}
	return p
}

// foldPhrase is the key of a phrase, and how many words it has.
func foldPhrase(s string) (key string, n int) {
	var folded []string
	for _, w := range split(s) {
		folded = append(folded, w.fold)
	}
	return strings.Join(folded, " "), len(folded)
}
