package offline

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"synthbot/core/engine/offline/phrases"
	"synthbot/core/spoken"
	"synthbot/core/txt"
)

type orderReader struct{ *speaker }

// order is a request for a reminder, as far as it is understood.
type order struct {
	when spoken.When
	what string
	open string // the topic of what must be asked first; "": the order is certain enough to act on
}

func (u understood) isOrder() bool {
	return slices.Contains([]string{"remind", "wake", "timer"}, u.topic)
}

// read reads an order. What wakes is in the morning, and needs no text.
func (s orderReader) read(m understood) order {
	if m.topic != "wake" {
		return s.readText(m.rest())
	}
	s = s.early()
	text := s.clock(m.rest())
	first, rest, _ := strings.Cut(text, " ")
	hour := s.hour(first)
	if hour != "" { // "6 tomorrow"
		text = hour + " " + rest
	}
	o := s.readText(text)
	if o.open == "remindwhat" {
		return s.readText(text + " " + s.say("wake"))
	}
	return o
}

// early returns a reader that takes "at 7" for 7:00.
func (s orderReader) early() orderReader {
	early := *s.speaker
	early.reader = s.morning
	return orderReader{&early}
}

func (s orderReader) readText(text string) order {
	if s.book.Has("rise", text) {
		s = s.early()
	}
	text, bad := s.withoutWrongTimes(text)
	when, what, err := s.findTime(text)
	o := order{when: when, what: clipForeign(s.withoutJoiners(what))}
	corrected := s.corrected(text, o.what)
	switch {
	case corrected != text:
		return s.readText(corrected)
	case bad:
		o.open = "remindbad"
	case s.isOfMonth(text, o, err):
		o.open = "remindlimit"
	case errors.Is(err, spoken.ErrNever):
		o.open = "remindbad"
	case errors.Is(err, spoken.ErrOften):
		o.open = "remindoften"
	case errors.Is(err, spoken.ErrPast), err != nil && s.mentions("past", text), s.book.Read(text).Begins("ago") > 0:
		o.open = "remindpast"
	case o.what == "":
		o.open = "remindwhat"
	case s.isHalf(o.what), strings.Contains(when.Repeat, "UNTIL"), errors.Is(err, spoken.ErrPartly):
		o.open = "remindlimit"
	case err != nil:
		o.open = "remindwhen"
	}
	return o
}

// isOfMonth reports whether a time is a weekday of the month ("every second Tuesday of the month"), which reminders do
// not support.
func (s orderReader) isOfMonth(text string, o order, err error) bool {
	isUnread := err != nil && !errors.Is(err, spoken.ErrNever) && !errors.Is(err, spoken.ErrOften)
	return s.book.Has("ofmonth", text) && (isUnread || strings.HasPrefix(o.when.Repeat, "FREQ=WEEKLY") ||
		s.book.Read(o.what).Begins("bounds", "ordinals") > 0)
}

// corrected returns the request with a typing error corrected, if the first word of its text is probably a word
// for a time.
func (s orderReader) corrected(text, what string) string {
	words := phrases.Split(what)
	if len(words) == 0 || len(words[0].Fold) <= 3 || s.book.Knows(words[0].Fold) {
		return text
	}
	w := words[0]
	for _, word := range slices.Sorted(maps.Keys(s.book.Lists["timewords"])) {
		if txt.Distance(w.Fold, word) == 1 {
			return strings.Replace(text, what[w.Start:w.End], word, 1)
		}
	}
	return text
}

// isHalf reports whether the text of a reminder begins or ends with a part of its time that was not understood: "and
// 7pm to …", "except sundays to …", "60 to …", "4 weeks to …".
func (s orderReader) isHalf(what string) bool {
	t := s.book.Read(what)
	for len(t.Words) > 1 && t.Begins("and", "vague") > 0 {
		t = t.From(1)
	}
	for n := range min(3, len(t.Words)-1) {
		if t.Ends(n+1, "limits", "bounds") {
			return true
		}
	}
	n := t.Begins("bounds")
	if t.Begins("limits") > 0 || n > 0 && s.isMoment(t.From(n)) || s.reader.Begins(t.String()) {
		return true
	}
	for len(t.Words) > 1 && t.Begins("articles") > 0 {
		t = t.From(1)
	}
	return s.isNumber(t) && (t.From(1).Begins("joiners") > 0 || len(t.Words) > 1 && s.reader.Begins("in "+what) ||
		t.From(1).Begins("units") > 0 && len(t.Words) > 2)
}

// isNumber reports whether a text begins with a number, perhaps with an ending: "2nd".
func (s orderReader) isNumber(t phrases.Text) bool {
	_, ok := number(s.book, strings.TrimRight(t.First(), "abcdefghijklmnopqrstuvwxyzº."))
	return ok
}

// isMoment reports whether a text begins with a time, a number, a month or a named day.
func (s orderReader) isMoment(t phrases.Text) bool {
	_, isNumber := number(s.book, t.First())
	return isNumber || s.reader.Begins(t.String()) || t.Begins("holidays") > 0 ||
		s.month(t.First()) >= 0
}

// findTime finds a time at the start or the end of a text, or else within it.
func (s orderReader) findTime(text string) (spoken.When, string, error) {
	when, rest, err := s.reader.Find(text, s.now)
	if err == nil || !errors.Is(err, spoken.ErrUnclear) || errors.Is(err, spoken.ErrPartly) {
		return when, rest, err
	}
	words := phrases.Split(text)
	for i := min(len(words), 30) - 2; i > 0; i-- {
		within, before, wrong := s.reader.Find(text[:words[i].End], s.now)
		if wrong == nil && before != "" {
			return within, before + " " + strings.TrimSpace(text[words[i].End:]), nil
		}
	}
	return when, rest, err
}

// wrongTime matches what may be an impossible time: 25:00, 9:75, 13 pm; or, after a word like "at", 27.
var wrongTime = txt.Pattern(`(?i)(^|\s)(?:(\S+)\s)?(\d{1,3})(?:([:.h])(\d{2}))?(\s?[ap]\.?m\b\.?)?` +
	`(?:\s?(?:h|uhr|heures?|horas|ore|o'clock))?(?:$|[\s,;!?])`)

// withoutWrongTimes removes impossible times. bad reports whether there were any.
func (s orderReader) withoutWrongTimes(text string) (rest string, bad bool) {
	for _, m := range wrongTime().FindAllStringSubmatch(text, -1) {
		hour, _ := strconv.Atoi(m[3])
		minute, _ := strconv.Atoi(m[5])
		led := s.book.Is("at", txt.Fold(m[2]))
		wrong := hour > 24 || minute > 59 || m[6] != "" && hour > 12 || hour == 24 && minute > 0
		if wrong && (led || m[4] == ":" || m[6] != "") {
			cut := strings.TrimSpace(strings.TrimPrefix(m[0], m[1]))
			if !led {
				cut = strings.TrimSpace(strings.TrimPrefix(cut, m[2]))
			}
			text, bad = strings.Replace(text, cut, "", 1), true
		}
	}
	return strings.Join(strings.Fields(text), " "), bad
}

// withoutJoiners removes words like "to", "later" and "that I have to" from the front, and words that introduced a
// time from the end.
func (s orderReader) withoutJoiners(text string) string {
	t := s.book.Read(text)
	for n := t.Begins("vague", "joiners"); n > 0; n = t.Begins("vague", "joiners") {
		if s.book.Is("subject", t.First()) {
			t = withoutDuty(t)
			break
		}
		t = t.From(n)
	}
	return s.mainClause(t.WithoutEnd("at", "and", "polite", "vague").String())
}

// withoutDuty removes "I have to" from the front of a clause, or "ich" and "muss" from around it. Other clauses keep
// their subject.
func withoutDuty(t phrases.Text) phrases.Text {
	n := t.From(1).Begins("duty")
	switch {
	case n > 0:
		return t.From(1 + n)
	case len(t.Words) > 2 && t.Ends(1, "dutyend"):
		return t.Before(len(t.Words) - 1).From(1)
	}
	return t
}

// hasTime reports whether a text has a time, possible or not.
func (s orderReader) hasTime(text string) bool { return s.readText("x "+text).open != "remindwhen" }

// isTime reports whether an answer has a time, possible or not. If the question was for a time, the answer may have
// only a few other words.
func (s orderReader) isTime(answer, question string) bool {
	_, rest, _ := s.findTime(answer)
	short := len(phrases.Split(rest)) < 4 && !s.mentions("asks", answer)
	return s.hasTime(answer) && (question == "remindwhat" || short)
}

// clock returns the time of a text that is only an hour, and other texts unchanged.
func (s orderReader) clock(text string) string { return cmp.Or(s.hour(text), text) }

// hour returns the time of a text that is only an hour, or "".
func (s orderReader) hour(text string) string {
	n, ok := number(s.book, txt.Fold(text))
	if ok && n >= 0 && n < 24 {
		return fmt.Sprintf("%d:00", n)
	}
	return ""
}
