package spoken

// readDate reads a date, also after its weekday: "Monday 30 November".
func (p *parser) readDate() bool {
	called := p.said.day
	if called != nil && (called.kind != weekday || called.other) {
		return false
	}
	d := p.date()
	if d == nil {
		return false
	}
	if called != nil {
		d.named = &called.value
	}
	p.said.day = d
	return true
}

// date reads "21 November 2027", "November 21st", "the 21st", "2027-11-21", "am 21.11.".
func (p *parser) date() *dayWord {
	from, led := p.at, p.is(on)
	p.skip(on, the)
	led = led || p.at > from+1
	if v, ok := p.take(date); ok {
		return &dayWord{kind: date, value: int(v)}
	}
	if v, ok := p.value(dotted); ok && (v < 0 || led) {
		v = max(v, -v)
		m, d := int(v)%100, int(v)/100
		if m >= 1 && m <= 12 && d >= 1 && d <= 31 {
			p.at++
			return dateOn(0, m, d)
		}
	}
	m, monthFirst := p.take(month)
	if monthFirst {
		p.skip(the)
	}
	d, ordinal := p.integer(nth, 1, 31)
	ok := ordinal
	if !ok {
		d, ok = p.integer(number, 1, 31) // "le premier" has the kind nth
	}
	switch {
	case !ok || monthFirst && p.is(unit):
		return nil
	case monthFirst:
		return dateOn(p.year(), int(m), d)
	}
	if p.try(func() (ok bool) { p.skip(the, on); m, ok = p.take(month); return ok }) {
		return dateOn(p.year(), int(m), d)
	}
	if !ordinal && !led || p.is(unit) || p.is(oclock) || p.is(am) || p.is(pm) {
		return nil
	}
	return &dayWord{kind: nth, value: d}
}

func dateOn(year, month, day int) *dayWord {
	return &dayWord{kind: date, value: year*10000 + month*100 + day}
}

// year reads a year after a month. It returns 0 if there is none.
func (p *parser) year() (y int) {
	p.try(func() (ok bool) { p.skip(the); y, ok = p.integer(digits, 1000, 9999); return ok })
	return y
}

// readTime reads "at 9", "18:30", "half past 9", "9 e mezza", "um halb 10". A mere number is a time only if something
// around it says so.
func (p *parser) readTime() bool {
	if p.said.time != nil {
		return false
	}
	led := p.skip(at)
	p.skip(the)
	n, isNumber := p.value(number)
	isEarly := p.is(zeroed) || isNumber && n == 0
	minutes, sure, ok := p.clock()
	if !ok {
		return false
	}
	sure = p.skip(oclock) || sure
	more := 0
	if minutes%60 == 0 && (p.try(func() bool { return p.halves(&more) }) ||
		(sure || led || p.led) && p.try(func() bool { return p.minutesLast(&more) })) {
		minutes, sure = minutes+more, true
	}
	isPM := p.is(pm)
	marked := p.accept(am, pm)
	if !led && !sure && !marked && !p.endsHour() {
		return false
	}
	p.said.time = &timeOfDay{minutes, !marked && !isEarly && minutes > 0 && minutes < 12*60}
	switch {
	case marked && isPM && minutes < 12*60:
		p.said.time.minutes += 12 * 60
	case marked && !isPM && minutes/60 == 12:
		p.said.time.minutes -= 12 * 60
	}
	return true
}

// endsHour reports whether the words after a number show that it was an hour: a part of the day, or in a text that
// leads to a time, nothing that it could count: "until 5", but not "until 5 people come".
func (p *parser) endsHour() bool {
	after := *p
	after.skip(the)
	return after.is(part) || p.led && (p.at == len(p.tokens) || len(p.tokens[p.at].senses) > 0)
}

// minutesLast reads the minutes after an hour ("9 Uhr 30", "alle 21 e 30") if nothing else
// follows. After "and", a number up to 24 may be an hour: "at 9 and 10" are two times.
func (p *parser) minutesLast(minutes *int) (ok bool) {
	least := 0
	if p.accept(and) {
		least = 25
	}
	*minutes, ok = p.integer(digits, least, 59)
	p.integer(unit, aMinute, aMinute)
	return ok && p.at == len(p.tokens)
}

// clock reads the hour or time. sure reports that it can be nothing else.
func (p *parser) clock() (minutes int, sure, ok bool) {
	if v, ok := p.take(hour); ok {
		return int(v) * 60, true, true
	}
	for _, k := range []kind{clock, hours} {
		if minutes, ok := p.integer(k, 0, 24*60); ok {
			return minutes, true, true
		}
	}
	if v, ok := p.value(dotted); ok && v >= 0 && v < 2400 && int(v)%100 < 60 {
		p.at++
		return int(v)/100*60 + int(v)%100, true, true
	}
	step := 0
	if p.try(func() bool { return p.aroundHour(&step) }) {
		h, ok := p.integer(number, 1, 24)
		p.integer(unit, anHour, anHour)
		return h*60 + step, true, ok
	}
	h, ok := p.integer(number, 0, 24)
	if ok && h == 24 && !p.is(oclock) && !p.is(unit) {
		return 0, false, false
	}
	u, counts := p.take(unit)
	if counts && u != anHour {
		return 0, false, false // 9 minutes do not name a time of day
	}
	return h * 60, counts && p.said.span == nil, ok
}

// aroundHour reads "half past", "a quarter to", "15 minutes before", "halb".
func (p *parser) aroundHour(step *int) bool {
	if p.accept(halfTo) {
		*step = -30
		return true
	}
	n, _ := p.integer(number, 1, 59)
	_, named := p.integer(unit, aMinute, aMinute)
	switch {
	case n > 0 && (named || p.is(past) || p.is(before)):
		*step = n
	case n <= 1 && p.accept(quarter):
		*step = 15
	case n == 0 && p.accept(half):
		*step = 30
	default:
		return false
	}
	if p.accept(to, before) {
		*step = -*step
	} else if !p.accept(past) {
		return false
	}
	p.skip(the, at)
	return p.is(number)
}

// halves reads "and a half", "e un quarto", "moins le quart" after an hour.
func (p *parser) halves(step *int) bool {
	sign := 1
	if p.accept(to) {
		sign = -1
	} else if !p.accept(and) {
		return false
	}
	p.articles()
	switch {
	case p.accept(half):
		*step = sign * 30
	case p.accept(quarter):
		*step = sign * 15
	default:
		return false
	}
	return !p.is(unit)
}
