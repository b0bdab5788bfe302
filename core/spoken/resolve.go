package spoken

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// resolve returns the time that was meant. It changes what was said.
func (r *Reader) resolve(s said, now time.Time) (When, error) {
	s.applyPart()
	if r.waking {
		r.moveToWakingHours(s, now)
	}
	w, err := r.first(s, now)
	if s.ends != nil && err == nil {
		w.Repeat, err = r.endRule(w.Repeat, *s.ends, now)
	}
	w.Wall, w.Dated = s.span == nil || s.isClocked(), s.day != nil || s.rule != nil
	return w, err
}

// first returns the first moment after now that was meant, and the rule of those after it.
func (r *Reader) first(s said, now time.Time) (When, error) {
	switch {
	case s.ends != nil && s.rule == nil:
		return When{}, ErrUnclear
	case s.rule != nil && s.span == nil:
		return r.repeated(s, now)
	case s.rule != nil:
		return When{}, ErrUnclear
	case s.span != nil:
		return r.fromNow(s, now)
	case s.day != nil:
		return r.onDay(s, now)
	case s.isClocked():
		at := r.clockOn(now, s.minutes())
		if !at.After(now) {
			at = r.clockOn(now.AddDate(0, 0, 1), s.minutes())
		}
		return future(When{At: at}, now)
	}
	return When{}, ErrUnclear
}

// applyPart moves the hour into the part of the day that was named. Twelve in the evening is midnight.
func (s said) applyPart() {
	if s.time == nil || s.part == nil {
		return
	}
	switch h := s.time.minutes / 60; {
	case *s.part == evening && h >= 5 && h <= 12, *s.part == afternoon && h >= 1 && h < 12:
		s.time.minutes += 12 * 60
	case *s.part == evening && h < 5 && s.day != nil && s.day.kind == day: // tonight at 2
		s.time.minutes += 24 * 60
	}
}

// moveToWakingHours moves an ambiguous hour to the afternoon if it is before 7:00 (6:00 if it repeats), or past today.
func (r *Reader) moveToWakingHours(s said, now time.Time) {
	if s.time == nil || !s.time.ambiguous || s.part != nil {
		return
	}
	first := 7
	if s.rule != nil {
		first = 6
	}
	isToday := s.day != nil && s.day.kind == day && s.day.value == 0
	if s.time.minutes/60 < first || isToday && !r.clockOn(now, s.time.minutes).After(now) {
		s.time.minutes += 12 * 60
	}
}

// minutes returns the minutes of the day: of the time, or of its part, or of the morning.
func (s said) minutes() int {
	switch {
	case s.time != nil:
		return s.time.minutes
	case s.part != nil:
		return *s.part * 60
	}
	return morning * 60
}

func (r *Reader) clockOn(day time.Time, minutes int) time.Time {
	return r.at(day.Year(), day.Month(), day.Day(), minutes/60, minutes%60, 0, day.Location())
}

// fromNow adds a span to now: days and longer units by the calendar, the rest as elapsed time.
func (r *Reader) fromNow(s said, now time.Time) (When, error) {
	if s.day != nil || s.isClocked() && s.span.seconds > 0 {
		return When{}, ErrUnclear
	}
	at := now
	if s.span.months != 0 || s.span.days != 0 {
		day := addMonths(now, s.span.months).AddDate(0, 0, s.span.days)
		if s.isClocked() {
			return future(When{At: r.clockOn(day, s.minutes())}, now)
		}
		at = r.at(day.Year(), day.Month(), day.Day(), now.Hour(), now.Minute(), now.Second(), now.Location())
	} else if s.isClocked() {
		return When{}, ErrUnclear
	}
	const most = 200 * 366 * 24 * 3600 // seconds; more may overflow a Duration
	if s.span.seconds > most {
		return When{}, ErrUnclear
	}
	at = at.Add(time.Duration(s.span.seconds * float64(time.Second)))
	return future(When{At: at.Truncate(time.Second)}, now)
}

// addMonths adds months, and stays within the month: a month after 31 January is 28 February.
func addMonths(t time.Time, n int) time.Time {
	first := time.Date(t.Year(), t.Month()+time.Month(n), 1, 12, 0, 0, 0, t.Location())
	last := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(t.Day(), last)-1)
}

func (r *Reader) onDay(s said, now time.Time) (When, error) {
	days := s.day.days(now)
	if len(days) == 0 {
		return When{}, ErrNever
	}
	for _, day := range days {
		at := r.clockOn(day, s.minutes())
		if !at.After(now) {
			continue
		}
		named := s.day.named
		if named != nil && *named != int(day.Weekday()) {
			return When{}, fmt.Errorf("%w: that day is another weekday", ErrUnclear)
		}
		return When{At: at}, nil
	}
	return When{}, fmt.Errorf("%w", ErrPast)
}

// days returns the days that may be meant, the next one first.
func (d *dayWord) days(now time.Time) (list []time.Time) {
	noon := time.Date(now.Year(), now.Month(), now.Day(), 12, 0, 0, 0, now.Location())
	switch d.kind {
	case day:
		return []time.Time{noon.AddDate(0, 0, d.value)}
	case weekday:
		first := noon.AddDate(0, 0, (d.value-int(now.Weekday())+7)%7)
		if d.other && first.Equal(noon) {
			return []time.Time{first.AddDate(0, 0, 7)}
		}
		return []time.Time{first, first.AddDate(0, 0, 7)}
	case date:
		return d.dates(now)
	case nth:
		for i := range 12 {
			first := time.Date(now.Year(), now.Month()+time.Month(i), 1, 12, 0, 0, 0, now.Location())
			at := first.AddDate(0, 0, d.value-1)
			if at.Month() == first.Month() {
				list = append(list, at)
			}
		}
	}
	return list
}

// dates returns the days of a date: in its year, or if it has none, in the next years.
func (d *dayWord) dates(now time.Time) (list []time.Time) {
	year, last := d.value/10000, d.value/10000
	if year == 0 {
		year, last = now.Year(), now.Year()+8 // leap days may be 8 years apart
	}
	for ; year <= last; year++ {
		at := time.Date(year, time.Month(d.value/100%100), d.value%100, 12, 0, 0, 0, now.Location())
		if at.Day() == d.value%100 {
			list = append(list, at)
		}
	}
	return list
}

func (r *Reader) repeated(s said, now time.Time) (When, error) {
	rule := *s.rule
	if rule.unit < anHour || rule.n < 1 || rule.n > 1000 {
		return When{}, ErrOften
	}
	d := s.day
	if d != nil && d.kind == weekday && rule.unit == aWeek && rule.weekdays == nil {
		rule.weekdays = []int{d.value} // every week on monday
	}
	w := When{Repeat: rule.text()}
	if rule.weekdays != nil {
		for i := range 8 {
			day := now.AddDate(0, 0, i)
			at := r.clockOn(day, s.minutes())
			if at.After(now) && slices.Contains(rule.weekdays, int(day.Weekday())) {
				w.At = at
				return w, nil
			}
		}
		return When{}, ErrUnclear
	}
	if rule.unit == anHour && (s.day != nil || s.isClocked()) {
		return When{}, ErrUnclear
	}
	once := said{day: s.day, time: &timeOfDay{minutes: s.minutes()}}
	if s.day == nil && (rule.unit == anHour || rule.unit > aDay || rule.n > 1) { // one interval from now
		once = said{span: &span{}, time: s.time, part: s.part}
		once.span.add(float64(rule.n), rule.unit)
	}
	first, err := r.first(once, now)
	w.At = first.At
	return w, err
}

// endRule adds to an RRULE when it ends: at a time, or with a day.
func (r *Reader) endRule(rule string, end said, now time.Time) (string, error) {
	last, err := r.resolve(end, now)
	switch {
	case err != nil:
		return "", err
	case last.Repeat != "":
		return "", ErrUnclear
	case last.Dated && !end.isClocked():
		return rule + last.At.Format(";UNTIL=20060102"), nil
	}
	return rule + last.At.UTC().Format(";UNTIL=20060102T150405Z"), nil
}

func (r *rule) text() string {
	b := strings.Builder{}
	b.WriteString("FREQ=" + []string{"", "", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY"}[r.unit])
	if r.n > 1 {
		fmt.Fprintf(&b, ";INTERVAL=%d", r.n)
	}
	for i, d := range r.weekdays {
		b.WriteString([]string{";BYDAY=", ","}[min(i, 1)] + []string{"SU", "MO", "TU", "WE", "TH", "FR", "SA"}[d%7])
	}
	return b.String()
}
