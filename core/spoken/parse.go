package spoken

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// said holds the parts of a time that a phrase named. They are nil if they were not said.
type said struct {
	span *span
	rule *rule
	day  *dayWord
	time *timeOfDay
	part *int  // the hour that the part of the day means
	ends *said // when a rule ends
}

// timeOfDay is a time as it was named.
type timeOfDay struct {
	minutes   int
	ambiguous bool // it may be on a 12-hour clock
}

// span is a time span from now.
type span struct {
	months, days int
	seconds      float64
}

// length counts a month as 30 days and a year as 365. It returns 0 for more than ten years.
func (s *span) length() time.Duration {
	const day, most = 24 * 3600, 10 * 365 * 24 * 3600 // seconds
	seconds := float64(s.months/12*365+s.months%12*30+s.days)*day + s.seconds
	if seconds > most {
		return 0
	}
	return time.Duration(seconds * float64(time.Second)).Truncate(time.Second)
}

// rule says how a time repeats: every n units.
type rule struct {
	unit, n  int
	weekdays []int
}

// dayWord is a day as it was named.
type dayWord struct {
	kind  kind // day: days from today; weekday; date: year*10000 + month*100 + day; nth: day of a month
	value int
	other bool // a weekday, but not today
	named *int // the weekday that was named with a date
}

func (s said) isEmpty() bool { return s == said{} }

// isClocked reports whether a time of day or a part of the day was said.
func (s said) isClocked() bool { return s.time != nil || s.part != nil }

// or returns what s says, and what only t says.
func (s said) or(t said) said {
	return said{
		span: cmp.Or(s.span, t.span), rule: cmp.Or(s.rule, t.rule), day: cmp.Or(s.day, t.day),
		time: cmp.Or(s.time, t.time), part: cmp.Or(s.part, t.part), ends: cmp.Or(s.ends, t.ends),
	}
}

// parser reads the tokens of one language. Methods like readDay read a part of a time. If they return
// false, at may be anywhere; try resets it.
type parser struct {
	tokens []token
	at     int
	bare   bool // "10 minutes" means in 10 minutes
	led    bool // an hour needs no word like "at", if nothing follows that it could count
	said   said
}

// value returns the value of the next token as a meaning of a kind.
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

func (p *parser) integer(k kind, least, most int) (n int, ok bool) {
	v, ok := p.value(k)
	n = int(v)
	if !ok || v != float64(n) || n < least || n > most {
		return 0, false
	}
	p.at++
	return n, true
}

// accept reads a token of one of the kinds. It reports whether there was one.
func (p *parser) accept(kinds ...kind) bool {
	i := slices.IndexFunc(kinds, p.is)
	if i >= 0 {
		p.at++
	}
	return i >= 0
}

func (p *parser) acceptValue(k kind, value int) bool {
	_, ok := p.integer(k, value, value)
	return ok
}

func (p *parser) skip(kinds ...kind) (any bool) {
	for p.accept(kinds...) {
		any = true
	}
	return any
}

// try calls read, and goes back if it returns false.
func (p *parser) try(read func() bool) bool {
	at := p.at
	ok := read()
	if !ok {
		p.at = at
	}
	return ok
}

// parse reads as many parts of a time as it can.
func (p *parser) parse() {
	end := p.at
	for p.component() || !p.said.isEmpty() && p.skip(the, and, on, glue) && p.component() {
		end = p.at
	}
	p.at = end
}

func (p *parser) component() bool {
	parts := []func() bool{p.readRule, p.readFromNow, p.readDay, p.readDate, p.readTime, p.readPart, p.readEnd}
	return slices.ContainsFunc(parts, p.try)
}

// readRule reads "every monday and thursday", "every 2 weeks", "every workday".
func (p *parser) readRule() bool {
	p.skip(on)
	if !p.accept(every) {
		return false
	}
	if p.said.rule != nil { // mondays, every week
		return p.said.rule.weekdays != nil && p.acceptValue(unit, aWeek)
	}
	p.skip(the)
	if p.accept(workday) {
		p.said.rule = &rule{unit: aWeek, n: 1, weekdays: []int{1, 2, 3, 4, 5}}
		return true
	}
	r := rule{unit: aWeek, n: 1, weekdays: p.weekdays()}
	if r.weekdays == nil {
		n, ok := p.integer(number, 1, math.MaxInt32)
		if ok {
			r.n = n
			r.weekdays = p.weekdays()
		}
	}
	d, ordinal := p.integer(nth, 1, 31) // every 15th
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
			return p.acceptValue(unit, aMonth)
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

// readFromNow reads "in 2 hours and 30 minutes", "2 weeks from now".
func (p *parser) readFromNow() bool {
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

// readLength reads "for 2 hours", "2 hours", "2 Stunden lang". marked reports whether a word like "for" was said.
func (p *parser) readLength() (s span, marked, ok bool) {
	const before, behind = 0, 1
	marked = p.acceptValue(lasting, before)
	ok = p.amounts(&s)
	return s, p.acceptValue(lasting, behind) || marked, ok
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

// amount adds a number with a unit to a span, perhaps with "and a half" or "and a quarter".
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
	for _, part := range []sense{{half, 0.5}, {quarter, 0.25}} {
		if p.try(func() bool { // but not "and a half week"
			return p.accept(and) && p.articles() && p.accept(part.kind) && !p.is(unit)
		}) {
			v += part.value
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

// articles skips words like "the" and "a". It returns true.
func (p *parser) articles() bool {
	p.skip(the)
	p.integer(number, 1, 1)
	return true
}

// add adds an amount of a unit. It returns false if that is too large, or a part of a month or year.
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

// readDay reads "tomorrow", "next monday", "monday and thursday".
func (p *parser) readDay() bool {
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
	var more []int
	p.try(func() bool {
		if p.skip(and) {
			p.skip(the, on)
			more = p.weekdays()
		}
		return more != nil
	})
	if more != nil && p.said.rule == nil { // on mondays and thursdays
		p.said.rule = &rule{unit: aWeek, n: 1, weekdays: append([]int{int(d)}, more...)}
		return true
	}
	p.skip(next)
	other := func(t token) bool { return slices.Contains(t.senses, sense{next, 1}) }
	p.said.day = &dayWord{kind: weekday, value: int(d), other: slices.ContainsFunc(p.tokens[from:p.at], other)}
	return true
}

// readPart reads "in the evening".
func (p *parser) readPart() bool {
	p.skip(the, on, next)
	v, ok := p.take(part)
	if !ok || p.said.part != nil {
		return false
	}
	p.said.part = new(int(v))
	return true
}

// readEnd reads the end of a time that repeats: "until 1 December".
func (p *parser) readEnd() bool {
	if p.said.ends != nil || !p.accept(until) {
		return false
	}
	end := parser{tokens: p.tokens, at: p.at, led: true}
	end.skip(at)
	end.parse()
	if end.said.isEmpty() {
		return false
	}
	p.at, p.said.ends = end.at, &end.said
	return true
}
