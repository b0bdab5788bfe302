package offline

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// remind answers "remind me in … to …".
func (s *speaker) remind(m understood) plan {
	at, what, timed := parseWhen(m.rest, s.now, m.book)
	what = clipForeign(what)
	more := map[string]string{"text": what, "at": s.moment(at)}
	switch {
	case !s.has(actionRemind):
		return s.speak("", s.say("remindnone"))
	case what == "":
		return s.speak("clarification", s.say("remindwhat"))
	case !timed:
		return s.speak("clarification", s.fresh(s.wordings("remindwhen", more)))
	}
	remind := newStep(actionRemind, map[string]any{"text": what, "when": at.Format(time.RFC3339)})
	return s.speak("action", s.fresh(s.wordings("reminded", more)), remind)
}

// moment tells a time as shortly as today allows.
func (s *speaker) moment(at time.Time) string {
	clock := at.Format("15:04")
	if at.Sub(s.now) < 2*time.Minute {
		clock = at.Format("15:04:05")
	}
	if at.YearDay() == s.now.YearDay() && at.Year() == s.now.Year() {
		return clock
	}
	return s.date(at) + ", " + clock
}

// maxAhead is the farthest reminder that is understood.
const maxAhead = 5 * 366 * 24 * time.Hour

// parseWhen finds a time in the text ("in 10 minutes", "tomorrow at 9", "at
// 18:30") and returns it with the rest of the text.
func parseWhen(text string, now time.Time, b *phrasebook) (at time.Time, rest string, ok bool) {
	words := split(text)
	from, to := 0, 0
	for i := range words {
		d, n := span(words[i:], b)
		at = now.Add(d)
		if n == 0 || d <= 0 || d >= maxAhead {
			at, n = point(words[i:], now, b)
		}
		if n > 0 {
			from, to, ok = i, i+n, true
			break
		}
	}
	before, after := words[:from], words[to:]
	if !ok {
		before, after = words, nil
	}
	return at, join(trimTo(text, before, b), trimTo(text, after, b)), ok
}

// trimTo returns the text of the words, without joining words ("to", "that") in
// front.
func trimTo(text string, words []word, b *phrasebook) string {
	for b.means(words, 0, "to") {
		words = words[1:]
	}
	for b.means(words, len(words)-1, "to", "at", "in") {
		words = words[:len(words)-1]
	}
	if len(words) == 0 {
		return ""
	}
	return text[words[0].start:words[len(words)-1].end]
}

// means reports whether the i-th word, if there is one, is a word of time with one of the meanings.
func (b *phrasebook) means(words []word, i int, meanings ...string) bool {
	return i >= 0 && i < len(words) && slices.Contains(meanings, b.clock[words[i].fold])
}

// span reads "in 2 hours and 30 minutes"; n is how many words it took.
func span(words []word, b *phrasebook) (d time.Duration, n int) {
	if !b.means(words, 0, "in") {
		return 0, 0
	}
	for i := 1; ; {
		seconds, used := amount(words[i:], b)
		if used == 0 {
			return d, n
		}
		d += time.Duration(seconds * float64(time.Second))
		n = i + used
		i = n
		if b.means(words, i, "and") {
			i++
		}
	}
}

// amount reads one number with its unit: "10 minutes", "10min", "an hour",
// "half an hour", "an hour and a half" counts as an hour.
func amount(words []word, b *phrasebook) (seconds float64, n int) {
	if len(words) == 0 {
		return 0, 0
	}
	digits := strings.TrimRightFunc(words[0].fold, func(r rune) bool { return r < '0' || r > '9' })
	count, err := strconv.ParseFloat(strings.Replace(digits, ",", ".", 1), 64)
	unit := b.units[words[0].fold[len(digits):]]
	if err == nil && unit > 0 {
		return count * unit, 1
	}
	for count = 1; n < len(words) && n < 3; n++ {
		value, ok := number(words[n].fold, b)
		if !ok {
			break
		}
		count *= value
	}
	if n == 0 || n >= len(words) || b.units[words[n].fold] == 0 {
		return 0, 0
	}
	return count * b.units[words[n].fold], n + 1
}

func number(s string, b *phrasebook) (float64, bool) {
	if value, ok := b.numbers[s]; ok {
		return value, true
	}
	value, err := strconv.ParseFloat(strings.Replace(s, ",", ".", 1), 64)
	return value, err == nil && value > 0 && value < 1e6
}

// point reads "at 18:30", "tomorrow at 9", "tomorrow"; n is how many words it
// took. An hour that is past today means tomorrow.
func point(words []word, now time.Time, b *phrasebook) (at time.Time, n int) {
	day, named := now, b.means(words, 0, "tomorrow", "today")
	if named {
		n = 1
	}
	if b.means(words, 0, "tomorrow") {
		day = now.AddDate(0, 0, 1)
	}
	hour, minute, used := clockTime(words[n:], b)
	switch {
	case used == 0 && day.Equal(now):
		return time.Time{}, 0
	case used == 0:
		hour, minute = 9, 0 // a day without an hour means its morning
	}
	at = time.Date(day.Year(), day.Month(), day.Day(), hour, minute, 0, 0, now.Location())
	if !at.After(now) && !named {
		at = at.AddDate(0, 0, 1)
	}
	if !at.After(now) {
		return time.Time{}, 0
	}
	n += used
	if b.means(words, n, "tomorrow") && !named {
		at = at.AddDate(0, 0, 1)
		n++
	}
	return at, n
}

// clockTime reads "at 18:30", "at 9", "at 6pm", "18h30"; a bare number needs
// its "at".
func clockTime(words []word, b *phrasebook) (hour, minute, n int) {
	for n < 2 && b.means(words, n, "at") {
		n++
	}
	if n >= len(words) {
		return 0, 0, 0
	}
	hour, minute, ok := readClock(words[n].fold, n > 0)
	if !ok {
		return 0, 0, 0
	}
	n++
	if n == len(words) {
		return hour, minute, n
	}
	switch half := words[n].fold; {
	case half == "pm" && hour < 12:
		return hour + 12, minute, n + 1
	case half == "pm", half == "am", b.clock[half] == "clock":
		n++
	}
	return hour, minute, n
}

func readClock(s string, bare bool) (hour, minute int, ok bool) {
	s, pm := strings.CutSuffix(s, "pm")
	s, am := strings.CutSuffix(s, "am")
	hours, minutes, split := s, "0", false
	for _, mark := range []string{":", ".", "h"} {
		before, after, found := strings.Cut(s, mark)
		if found {
			hours, minutes, split = before, cmp.Or(after, "0"), true
			break
		}
	}
	if !split && !bare && !pm && !am {
		return 0, 0, false
	}
	hour, err := strconv.Atoi(hours)
	minute, err2 := strconv.Atoi(minutes)
	if pm && hour < 12 {
		hour += 12
	}
	return hour, minute, err == nil && err2 == nil && hour >= 0 && hour < 24 && minute >= 0 && minute < 60
}
