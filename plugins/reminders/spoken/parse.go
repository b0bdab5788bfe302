package spoken

// said is what a phrase said about a time; each part at most once.
type said struct {
	span *span
	rule *rule
	day  *dayWord
	time int // minutes of the day; -1: not said
	part int // the hour that a part of the day means; -1: not said
}

// span is a stretch of time from now.
type span struct {
	months, days int
	seconds      float64
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

// parser reads the tokens of one language.
type parser struct {
	tokens []token
	at     int
	bare   bool // "10 minutes" means in 10 minutes
	said   said
}

// value is what the i-th token from here means, as one of a kind.
func (p *parser) value(i int, k kind) (v float64, ok bool) {
	i += p.at
	if i >= len(p.tokens) {
		return 0, false
	}
	for _, s := range p.tokens[i].senses {
		if s.kind == k {
			return s.value, true
		}
	}
	return 0, false
}

func (p *parser) is(i int, k kind) bool {
	_, ok := p.value(i, k)
	return ok
}

// skip counts the tokens of these kinds from the i-th on.
func (p *parser) skip(i int, kinds ...kind) int {
	n := 0
	for {
		found := false
		for _, k := range kinds {
			found = found || p.is(i+n, k)
		}
		if !found {
			return n
		}
		n++
	}
}

// parse reads from p.at on as far as it goes, and returns where that ends.
func (p *parser) parse() (end int) {
	end = p.at
	for p.at < len(p.tokens) {
		n := p.component()
		if n == 0 {
			between := p.skip(0, the, and, on, glue)
			p.at += between
			if between == 0 || p.said.empty() {
				break
			}
			n = p.component()
			if n == 0 {
				break
			}
		}
		p.at += n
		end = p.at
	}
	return end
}

// component reads one part and returns how many tokens it took; 0 for none.
func (p *parser) component() int {
	for _, read := range []func() int{p.again, p.fromNow, p.dayTold, p.dateTold, p.clockTold, p.partTold} {
		n := read()
		if n > 0 {
			return n
		}
	}
	return 0
}

// again reads "every monday and thursday", "every 2 weeks", "every workday".
func (p *parser) again() int {
	if p.said.rule != nil || !p.is(0, every) {
		return 0
	}
	n := 1 + p.skip(1, the)
	if p.is(n, workday) {
		p.said.rule = &rule{unit: aWeek, n: 1, weekdays: []int{1, 2, 3, 4, 5}}
		return n + 1
	}
	days, usedDays := p.weekdays(n)
	if usedDays > 0 {
		p.said.rule = &rule{unit: aWeek, n: 1, weekdays: days}
		return n + usedDays
	}
	count := 1
	if v, ok := p.value(n, number); ok && v >= 1 && v == float64(int(v)) {
		count = int(v)
		n++
	}
	days, used := p.weekdays(n)
	if used > 0 {
		p.said.rule = &rule{unit: aWeek, n: count, weekdays: days}
		return n + used
	}
	if p.is(n, part) {
		p.said.rule = &rule{unit: aDay, n: count} // every morning
		return n
	}
	u, ok := p.value(n, unit)
	if !ok {
		return 0
	}
	p.said.rule = &rule{unit: int(u), n: count}
	return n + 1
}

// weekdays reads "monday, tuesday and friday".
func (p *parser) weekdays(from int) (days []int, n int) {
	for {
		i := from + n
		if n > 0 {
			i += p.skip(i, and, the, on, every)
		}
		d, ok := p.value(i, weekday)
		if !ok {
			return days, n
		}
		days = append(days, int(d))
		n = i + 1 - from
	}
}

// fromNow reads "in 2 hours and 30 minutes", "2 weeks from now".
func (p *parser) fromNow() int {
	if p.said.span != nil {
		return 0
	}
	leads := p.is(0, in)
	from := 0
	if leads {
		from = 1 + p.skip(1, the, on)
	}
	s, n := p.amounts(from)
	if n == 0 {
		return 0
	}
	n += from
	trails := p.is(n, later)
	if trails {
		n++
	}
	if !leads && !trails && !p.bare {
		return 0
	}
	p.said.span = s
	return n
}

// amounts reads "an hour and a half", "2 days and 3 hours".
func (p *parser) amounts(from int) (*span, int) {
	s, n := &span{}, 0
	for {
		i := from + n
		if n > 0 {
			i += p.skip(i, and)
		}
		used := p.amount(i, s)
		if used == 0 {
			break
		}
		n = i + used - from
	}
	if n == 0 {
		return nil, 0
	}
	return s, n
}

// amount adds one number with its unit to a span. Behind an hour, "and a half"
// is one.
func (p *parser) amount(i int, s *span) int {
	if v, ok := p.value(i, hours); ok {
		s.seconds += v * 60
		return 1
	}
	v, n := p.count(i)
	if n == 0 {
		return 0
	}
	n += p.skip(i+n, the)
	u, ok := p.value(i+n, unit)
	if !ok {
		return 0
	}
	n++
	used := p.andHalf(i + n)
	if used > 0 {
		v += 0.5
		n += used
	}
	if !s.add(v, int(u)) {
		return 0
	}
	return n
}

// count reads "10", "a", "half an", "three quarters of an", "a quarter of an".
func (p *parser) count(i int) (v float64, n int) {
	v, ok := p.value(i, number)
	if ok {
		n = 1
	} else {
		v = 1
	}
	switch {
	case p.is(i+n, half):
		v *= 0.5
		n++
	case p.is(i+n, quarter):
		v *= 0.25
		n++
	default:
		return v, n
	}
	n += p.skip(i+n, the)
	if one, ok := p.value(i+n, number); ok && one == 1 {
		n++
	}
	return v, n
}

// andHalf reads "and a half", unless that belongs to a further unit.
func (p *parser) andHalf(i int) int {
	if !p.is(i, and) {
		return 0
	}
	n := 1 + p.skip(i+1, the)
	if one, ok := p.value(i+n, number); ok && one == 1 {
		n++
	}
	if !p.is(i+n, half) {
		return 0
	}
	if n++; p.is(i+n, unit) {
		return 0
	}
	return n
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

// dayTold reads "tomorrow", "next monday".
func (p *parser) dayTold() int {
	if p.said.day != nil {
		return 0
	}
	if d, ok := p.value(0, day); ok {
		p.said.day = &dayWord{kind: day, value: int(d)}
		return 1
	}
	n := p.skip(0, on, the, next)
	d, ok := p.value(n, weekday)
	if !ok {
		return 0
	}
	end := n + 1 + p.skip(n+1, next)
	p.said.day = &dayWord{kind: weekday, value: int(d)}
	for i := range end {
		v, _ := p.value(i, next)
		p.said.day.other = p.said.day.other || v == 1
	}
	return end
}

// partTold reads "in the evening".
func (p *parser) partTold() int {
	n := p.skip(0, the, on, next)
	v, ok := p.value(n, part)
	if !ok || p.said.part >= 0 {
		return 0
	}
	p.said.part = int(v)
	return n + 1
}
