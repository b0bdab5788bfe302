package spoken

import (
	"embed"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"synthbot/core/txt"
)

type word struct {
	fold       string
	start, end int
	dot        bool // a full stop follows, and text after it
}

// split splits a text into words. Dates and times, such as 18:30, are one word, also with an offset, which Find does
// not read.
func split(text string) []word {
	var words []word
	for start, end := range txt.Fields(text, ":.,/-+") {
		if isNegative(text, start) {
			start-- // a negative number is not a time
		}
		after, dot := strings.CutPrefix(text[end:], ".")
		words = append(words, word{txt.Fold(text[start:end]), start, end, dot && strings.TrimSpace(after) != ""})
	}
	return words
}

func isNegative(text string, i int) bool {
	if i == 0 || text[i-1] != '-' || text[i] < '0' || text[i] > '9' {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(text[:i-1])
	return i == 1 || unicode.IsSpace(before)
}

// token is one or more words with their possible meanings.
type token struct {
	from, to int // indexes of the words
	senses   []sense
}

func (t token) isEvery() bool {
	return slices.ContainsFunc(t.senses, func(s sense) bool { return s.kind == every })
}

// tokens finds the meanings of words in one language. Words without a meaning become tokens, too.
func (l *lexicon) tokens(words []word) []token {
	var list []token
	for i := 0; i < len(words); {
		n, meanings := l.lookup(words[i:])
		if n == 0 {
			n, meanings = 1, l.numeric(&words[i])
			if meanings == nil && likeTime().MatchString(words[i].fold) {
				meanings = [][]sense{{{wrong, 0}}}
			}
		}
		if len(meanings) == 0 {
			list = append(list, token{from: i, to: i + n})
		}
		for _, senses := range meanings {
			list = append(list, token{i, i + n, senses})
		}
		i += n
	}
	return list
}

// lookup finds the longest phrase at the start of the words. n is its number of words, or 0.
func (l *lexicon) lookup(words []word) (n int, meanings [][]sense) {
	key := ""
	for i, w := range words[:min(len(words), l.longest)] {
		key = strings.TrimPrefix(key+" "+w.fold, " ")
		if p, ok := l.phrases[key]; ok {
			n, meanings = i+1, p
		}
	}
	return n, meanings
}

// numeric returns the meanings of a word with digits. "10min" and "9am" have those of two words.
func (l *lexicon) numeric(w *word) [][]sense {
	s := w.fold
	if s == "" || s[0] < '0' || s[0] > '9' {
		return nil
	}
	if n, err := strconv.Atoi(s); err == nil {
		return integerSenses(n, len(s))
	}
	day, clock, _ := strings.Cut(s, "t") // 2027-01-31t09:00
	date, match := dateOf(day), numbers().FindStringSubmatch(clock)
	if date != nil && match != nil {
		time := readNumbers(match, w.dot)
		if time == nil {
			return nil
		}
		return append(date, time...)
	}
	if strings.ContainsAny(s, "/-") || strings.Count(s, ".") == 2 {
		return dateOf(s)
	}
	match = numbers().FindStringSubmatch(s)
	if match != nil {
		return readNumbers(match, w.dot)
	}
	tail := strings.TrimLeft(s, "0123456789")
	end := len(s) - len(tail)
	n, err := strconv.Atoi(s[:end])
	if err != nil {
		return nil // too long for an int
	}
	switch tail {
	case "st", "nd", "rd", "th", "er", "o", "a", "re":
		return [][]sense{{{nth, float64(n)}}}
	default:
		p := l.phrases[tail]
		if len(p) == 1 && (p[0][0].kind == unit || p[0][0].kind == am || p[0][0].kind == pm) {
			return append(integerSenses(n, end), p[0][:1])
		}
		if d, ok := txt.ParseSpan(s); ok {
			return [][]sense{{{length, d.Seconds()}}}
		}
	}
	return nil
}

func integerSenses(n, length int) [][]sense {
	if length > 5 {
		return nil
	}
	senses := []sense{{number, float64(n)}, {digits, float64(n)}}
	if length == 2 && n < 10 {
		senses = append(senses, sense{zeroed, 0})
	}
	return [][]sense{senses}
}

// numbers matches 18:30, 9.30, 9h30, 1h30m, 1.5 and 9:30pm.
var numbers = txt.Pattern(`^(\d{1,3})([:.,]|h)(\d{1,2})(am|pm|m)?$`)

// likeTime matches the start of what looks like a time or a date with a year, also of none that exists.
var likeTime = txt.Pattern(`^(\d+:\d\d|\d{4}[/.-]\d+[/.-]\d|\d+[/.-]\d+[/.-]\d{4})`)

func readNumbers(match []string, dot bool) [][]sense {
	mark, tail := match[2], match[4]
	if tail == "m" && mark != "h" {
		return nil
	}
	a, _ := strconv.Atoi(match[1])
	b, _ := strconv.Atoi(match[3])
	long := len(match[3]) == 2 // two digits, like minutes
	var senses []sense
	switch {
	case mark == ":" && long && (a < 24 && b < 60 || a == 24 && b == 0):
		senses = append(senses, sense{clock, float64(a*60 + b)})
	case mark == "h" && long && b < 60:
		senses = append(senses, sense{hours, float64(a*60 + b)})
	case mark == "." && a < 100 && dot: // certainly a date
		senses = append(senses, sense{dotted, -float64(a*100 + b)})
	case mark == "." && a < 100:
		senses = append(senses, sense{dotted, float64(a*100 + b)})
	}
	if mark == "." || mark == "," {
		v, _ := strconv.ParseFloat(match[1]+"."+match[3], 64)
		senses = append(senses, sense{number, v})
	}
	if len(senses) == 0 {
		return nil
	}
	if match[1][0] == '0' {
		senses = append(senses, sense{zeroed, 0})
	}
	if tail == "am" || tail == "pm" {
		return [][]sense{senses, {{kind(tail), 0}}}
	}
	return [][]sense{senses}
}

// dateOf reads 2026-11-21, 21/11, 21/11/2026 and 21.11.2026.
func dateOf(s string) [][]sense {
	fields := strings.FieldsFunc(s, func(r rune) bool { return r == '/' || r == '-' || r == '.' })
	if len(fields) < 2 || len(fields) > 3 {
		return nil
	}
	var n [3]int
	for i, f := range fields {
		v, err := strconv.Atoi(f)
		if err != nil || v > 9999 {
			return nil
		}
		n[i] = v
	}
	y, m, d := n[2], n[1], n[0]
	switch {
	case len(fields[0]) == 4:
		y, m, d = n[0], n[1], n[2]
	case m > 12 && d <= 12:
		m, d = d, m
	}
	if len(fields) == 3 && y < 100 {
		y += 2000
	}
	if m < 1 || m > 12 || d < 1 || d > 31 || strings.Contains(s, "-") && len(fields) < 3 {
		return nil
	}
	return [][]sense{{{date, float64(y*10000 + m*100 + d)}}}
}

//go:embed words/*.txt
var files embed.FS

// languages lists the languages with a file, in the order in which they are tried.
func languages() []string { return []string{"en", "it", "de", "fr", "es", "pt"} }

type kind string

// Kinds of meanings: those of the files, then those of words with digits.
const (
	in, later, at, on, the, next kind = "in", "later", "at", "on", "the", "next"
	every, and, half, quarter    kind = "every", "and", "half", "quarter"
	past, to, before, halfTo     kind = "past", "to", "before", "half-to"
	oclock, am, pm               kind = "clock", "am", "pm"
	workday, glue, lasting       kind = "workday", "glue", "lasting"
	until                        kind = "until"
	number, unit, day, part      kind = "number", "unit", "day", "part"
	hour, weekday, month         kind = "hour", "weekday", "month"

	digits kind = "digits" // a number that is written in digits
	nth    kind = "nth"    // 21st, 1er
	clock  kind = "time"   // 18:30; value: minutes of the day
	hours  kind = "9h30"   // value: minutes, of the day or from now
	zeroed kind = "09"     // an hour below 10 in two digits
	dotted kind = "9.30"   // a time or a date; value: 930, or -930 if it is certainly a date
	date   kind = "date"   // 2026-11-21; value: 20261121
	length kind = "1w2d"   // value: seconds
	wrong  kind = "25:61"  // looks like a time or a date, and is none
)

// Units of time.
const (
	aSecond = iota
	aMinute
	anHour
	aDay
	aWeek
	aMonth
	aYear
)

// Parts of the day, by the hour that they mean.
const morning, afternoon, evening = 9, 15, 20

type sense struct {
	kind  kind
	value float64
}

type lexicon struct {
	phrases map[string][][]sense // by folded phrase: the senses of each word that it means
	longest int                  // number of words in the longest phrase
}

func readLexicon(language string) *lexicon {
	l := &lexicon{phrases: make(map[string][][]sense)}
	text, _ := files.ReadFile("words/" + language + ".txt") // a test ensures that each language has a file
	for line := range strings.Lines(string(text)) {
		means, says, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			continue
		}
		meaning := readMeaning(means)
		for each := range strings.SplitSeq(says, ", ") {
			var folded []string
			for _, w := range split(each) {
				folded = append(folded, w.fold)
			}
			key := strings.Join(folded, " ")
			l.longest = max(l.longest, len(folded))
			switch known := l.phrases[key]; {
			case known == nil, len(known) > 1 && len(meaning) == 1: // a meaning of one word wins
				l.phrases[key] = meaning
			case len(known) == 1 && len(meaning) == 1:
				l.phrases[key] = [][]sense{slices.Concat(known[0], meaning[0])}
			}
		}
	}
	return l
}

// values are the values that files write as words.
var values = map[string]float64{
	"second": aSecond, "minute": aMinute, "hour": anHour, "day": aDay, "week": aWeek, "month": aMonth, "year": aYear,
	"morning": morning, "afternoon": afternoon, "evening": evening,
}

func readMeaning(means string) (meaning [][]sense) {
	for field := range strings.FieldsSeq(means) {
		name, text, _ := strings.Cut(field, "=")
		value, ok := values[text]
		if !ok {
			value, _ = strconv.ParseFloat(text, 64) // "" is 0
		}
		meaning = append(meaning, []sense{{kind(name), value}})
	}
	return meaning
}
