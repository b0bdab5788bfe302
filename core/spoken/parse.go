package spoken

import (
	"math"
	"slices"
	"time"
)

// said is what a phrase said about a time; each part at most once.
type said struct {
	span *span
	rule *rule
	day  *dayWord
	time int  // minutes of the day; -1: not said
	face bool // a clock's face shows that time twice a day, and which one was meant was not said
	part int  // the hour that a part of the day means; -1: not said
}

// span is a stretch of time from now.
type span struct {
	months, days int
	seconds      float64
}

// length counts 30 days a month, and 365 a year. It is 0 if it is longer than ten years.
func (s *span) length() time.Duration {
	const day, most = 24 * 3600, 10 * 365 * 24 * 3600 // seconds
	seconds := float64(s.months/12*365+s.months%12*30+s.days)*day + s.seconds
	if seconds > most {
		return 0
	}
	return time.Duration(seconds * float64(time.Second)).Truncate(time.Second)
}

// rule is how it comes again.
type rule struct {
	unit, n  int
	weekdays []int
}

// dayWord is a day as it was called.
type dayWord struct {
	kind  kind // day: from today; weekday; date: packed; nth: of a month
	value int
	other bool // a weekday, but not today's
	named *int // the weekday that a date was called by, too
}

func nothing() said { return said{time: -1, part: -1} }

func (s *said) empty() bool {
	return s.span == nil && s.rule == nil && s.day == nil && s.time < 0 && s.part < 0
}

// parser reads the tokens of one language. What begins with said… reads a part of a time; it
// may stop anywhere where that is not there, as try goes back.
type parser struct {
	tokens []token
	at     int
	bare   bool // "10 minutes" means in 10 minutes
	led    bool // an hour needs no word like "at" if its number counts nothing
	said   said
}

// value is what the next token means, as one of a kind.
func (p *parser) value(k kind) (v float64, ok bool) {
	if p.at < len(p.tokens) {
		for _, s := range p.tokens[p.at].senses {
			if s.kind == k {
				return s.value, true
			}
		}
	}
	return 0, false
}

func (p *parser) is(k kind) bool {
	_, ok := p.value(k)
	return ok
}

func (p *parser) take(k kind) (v float64, ok bool) {
	v, ok = p.value(k)
	if ok {
		p.at++
	}
	return v, ok
}

// whole reads a whole number within bounds.
func (p *parser) whole(k kind, least, most int) (n int, ok bool) {
	v, ok := p.value(k)
	n = int(v)
	if !ok || v != float64(n) || n < least || n > most {
		return 0, false
	}
	p.at++
	return n, true
}

// accept reads a token of one of the kinds, and reports whether there was one.
func (p *parser) accept(kinds ...kind) bool {
	i := slices.IndexFunc(kinds, p.is)
	if i >= 0 {
		p.at++
	}
	return i >= 0
}

func (p *parser) skip(kinds ...kind) (any bool) {
	for p.accept(kinds...) {
		any = true
	}
	return any
}

// try reads something as a whole, or nothing.
func (p *parser) try(read func() bool) bool {
	at := p.at
	ok := read()
	if !ok {
		p.at = at
	}
	return ok
}

// parse reads as far as it goes.
func (p *parser) parse() {
	end := p.at
	for p.component() || !p.said.empty() && p.skip(the, and, on, glue) && p.component() {
		end = p.at
	}
	p.at = end
}

func (p *parser) component() bool {
	parts := []func() bool{p.saidAgain, p.saidFromNow, p.saidDay, p.saidDate, p.saidClock, p.saidPart}
	return slices.ContainsFunc(parts, p.try)
}

// saidAgain reads "every monday and thursday", "every 2 weeks", "every workday".
func (p *parser) saidAgain() bool {
	p.skip(on)
	if !p.accept(every) {
		return false
	}
	if p.said.rule != nil { // mondays, every week
		u, _ := p.take(unit)
		return p.said.rule.weekdays != nil && u == aWeek
	}
	p.skip(the)
	if p.accept(workday) {
		p.said.rule = &rule{unit: aWeek, n: 1, weekdays: []int{1, 2, 3, 4, 5}}
		return true
	}
	r := rule{unit: aWeek, n: 1, weekdays: p.weekdays()}
	if r.weekdays == nil {
		n, ok := p.whole(number, 1, math.MaxInt32)
		if ok {
			r.n = n
			r.weekdays = p.weekdays()
		}
	}
	d, ordinal := p.whole(nth, 1, 31) // every 15th
	switch u, ok := p.value(unit); {
	case r.weekdays != nil && !ordinal:
	case ordinal && ok:
		p.at++
		r.unit, r.n = int(u), d // every 2nd day
	case ordinal && p.said.day == nil && !p.is(weekday) && !p.is(month):
		r.unit = aMonth
		p.said.day = &dayWord{kind: nth, value: d}
		p.try(func() bool { // of the month
			p.skip(the)
			u, _ := p.take(unit)
			return u == aMonth
		})
	case p.is(part):
		r.unit = aDay // every morning
	case ok:
		p.at++
		r.unit = int(u)
	default:
		return false
	}
	p.said.rule = &r
	return true
}

// weekdays reads "monday, tuesday and friday".
func (p *parser) weekdays() (days []int) {
	for p.try(func() bool {
		if days != nil {
			p.skip(and, the, on, every)
		}
		d, ok := p.take(weekday)
		if ok {
			days = append(days, int(d))
		}
		return ok
	}) {
	}
	return days
}

// saidFromNow reads "in 2 hours and 30 minutes", "2 weeks from now".
func (p *parser) saidFromNow() bool {
	if p.said.span != nil {
		return false
	}
	leads := p.accept(in)
	if leads {
		p.skip(the, on)
	}
	var s span
	if !p.amounts(&s) {
		return false
	}
	if !p.accept(later) && !leads && !p.bare {
		return false
	}
	p.said.span = &s
	return true
}

// saidLength reads "for 2 hours", "2 hours", "2 Stunden lang". marked reports whether a word like "for" was said.
func (p *parser) saidLength() (s span, marked, ok bool) {
	const before, behind = 0, 1
	marked = p.marksLength(before)
	ok = p.amounts(&s)
	return s, p.marksLength(behind) || marked, ok
}

// marksLength reads a word that is said with a length of time, before or behind it.
func (p *parser) marksLength(where float64) bool {
	return p.try(func() bool {
		v, ok := p.take(lasting)
		return ok && v == where
	})
}

// amounts reads "2 hours and 30 minutes".
func (p *parser) amounts(s *span) bool {
	if !p.amount(s) {
		return false
	}
	for p.try(func() bool { p.skip(and); return p.amount(s) }) {
	}
	return true
}

// amount adds one number with its unit to a span. Behind an hour, "and a half" or "and a quarter" is part of it.
func (p *parser) amount(s *span) bool {
	if v, ok := p.take(hours); ok {
		s.seconds += v * 60
		return true
	}
	if v, ok := p.take(length); ok {
		s.seconds += v
		return true
	}
	v, ok := p.count()
	if !ok {
		return false
	}
	p.skip(the)
	u, ok := p.take(unit)
	if !ok {
		return false
	}
	for k, part := range map[kind]float64{half: 0.5, quarter: 0.25} {
		if p.try(func() bool { // unless it belongs to a further unit
			return p.accept(and) && p.articles() && p.accept(k) && !p.is(unit)
		}) {
			v += part
		}
	}
	return s.add(v, int(u))
}

// count reads "10", "a", "half an", "three quarters of an", "a quarter of an".
func (p *parser) count() (v float64, ok bool) {
	v, ok = p.take(number)
	if !ok {
		v = 1
	}
	switch {
	case p.accept(half):
		v *= 0.5
	case p.accept(quarter):
		v *= 0.25
	default:
		return v, ok
	}
	return v, p.articles()
}

// articles reads "the", "a" and their like, if there are any.
func (p *parser) articles() bool {
	p.skip(the)
	p.whole(number, 1, 1)
	return true
}

// add reports whether that was a sensible amount.
func (s *span) add(v float64, u int) bool {
	const most = 100_000
	whole := v == float64(int(v))
	switch {
	case v < 0 || v > most:
		return false
	case u == aMonth && whole:
		s.months += int(v)
	case u == aYear && whole:
		s.months += 12 * int(v)
	case u == aDay && whole:
		s.days += int(v)
	case u == aWeek && whole:
		s.days += 7 * int(v)
	case u > aWeek:
		return false
	default:
		s.seconds += v * []float64{1, 60, 3600, 86400, 7 * 86400}[u]
	}
	return s.months < most && s.days < most
}

// saidDay reads "tomorrow", "next monday", "monday and thursday".
func (p *parser) saidDay() bool {
	if p.said.day != nil {
		return false
	}
	if d, ok := p.take(day); ok {
		p.said.day = &dayWord{kind: day, value: int(d)}
		return true
	}
	from := p.at
	p.skip(on, the, next)
	d, ok := p.take(weekday)
	if !ok {
		return false
	}
	more := p.furtherWeekdays()
	if more != nil && p.said.rule == nil { // on mondays and thursdays
		p.said.rule = &rule{unit: aWeek, n: 1, weekdays: append([]int{int(d)}, more...)}
		return true
	}
	p.skip(next)
	other := func(t token) bool { return slices.Contains(t.senses, sense{next, 1}) }
	p.said.day = &dayWord{kind: weekday, value: int(d), other: slices.ContainsFunc(p.tokens[from:p.at], other)}
	return true
}

// furtherWeekdays reads "and thursday".
func (p *parser) furtherWeekdays() (days []int) {
	p.try(func() bool {
		if p.skip(and) {
			p.skip(the, on)
			days = p.weekdays()
		}
		return days != nil
	})
	return days
}

// saidPart reads "in the evening".
func (p *parser) saidPart() bool {
	p.skip(the, on, next)
	v, ok := p.take(part)
	if !ok || p.said.part >= 0 {
		return false
	}
	p.said.part = int(v)
	return true
}
