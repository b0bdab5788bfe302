package spoken

// dateTold reads a date, also behind the weekday that it is: "Monday 30 November".
func (p *parser) dateTold() int {
	called := p.said.day
	if called != nil && (called.kind != weekday || called.other) {
		return 0
	}
	n := p.dateRead()
	if n > 0 && called != nil {
		p.said.day.named = &called.value
	}
	return n
}

// dateRead reads "21 November 2027", "the 21st", "2027-11-21", "am 21.11.".
func (p *parser) dateRead() int {
	n := p.skip(0, on, the)
	led := p.skip(0, on) > 0 || n > 1
	if v, ok := p.value(n, date); ok {
		p.said.day = &dayWord{kind: date, value: int(v)}
		return n + 1
	}
	if v, ok := p.value(n, dotted); ok && (v < 0 || led) {
		v = max(v, -v)
		m, d := int(v)%100, int(v)/100
		if m >= 1 && m <= 12 && d >= 1 && d <= 31 {
			p.said.day = &dayWord{kind: date, value: m*100 + d}
			return n + 1
		}
	}
	if m, ok := p.value(n, month); ok {
		return p.monthFirst(n+1, int(m))
	}
	d, ok := p.dayNumber(n)
	if !ok {
		return 0
	}
	return p.dayFirst(n+1, d, led)
}

// dayNumber reads a day of a month.
func (p *parser) dayNumber(i int) (d int, ok bool) {
	v, ok := p.value(i, nth)
	if !ok {
		v, ok = p.value(i, digits)
	}
	if !ok {
		v, ok = p.value(i, number) // "le premier" is none
	}
	return int(v), ok && v >= 1 && v <= 31 && v == float64(int(v))
}

// monthFirst reads "November 21st, 2027" from behind the month.
func (p *parser) monthFirst(n, m int) int {
	n += p.skip(n, the)
	d, ok := p.dayNumber(n)
	if !ok || p.is(n+1, unit) {
		return 0
	}
	y, used := p.year(n + 1)
	p.said.day = &dayWord{kind: date, value: y*10000 + m*100 + d}
	return n + 1 + used
}

// dayFirst reads "21 of November 2027" from behind the day, and "the 21st".
func (p *parser) dayFirst(n, d int, led bool) int {
	i := n + p.skip(n, the, on)
	if m, ok := p.value(i, month); ok {
		y, used := p.year(i + 1)
		p.said.day = &dayWord{kind: date, value: y*10000 + int(m)*100 + d}
		return i + 1 + used
	}
	ordinal := p.is(n-1, nth)
	if !ordinal && !led || p.is(n, unit) || p.is(n, oclock) || p.is(n, am) || p.is(n, pm) {
		return 0
	}
	p.said.day = &dayWord{kind: nth, value: d}
	return n
}

// year reads a year behind a month.
func (p *parser) year(i int) (y, n int) {
	n = p.skip(i, the)
	if v, ok := p.value(i+n, digits); ok && v >= 2000 && v <= 2200 {
		return int(v), n + 1
	}
	return 0, 0
}

// clockTold reads "at 9", "18:30", "half past 9", "9 e mezza", "um halb 10".
func (p *parser) clockTold() int {
	if p.said.time >= 0 {
		return 0
	}
	n := p.skip(0, at)
	led := n > 0
	n += p.skip(n, the)
	minutes, used, sure := p.clock(n)
	if used == 0 {
		return 0
	}
	n += used
	for p.is(n, oclock) {
		n, sure = n+1, true
	}
	half, usedHalf, ok := p.halves(n, minutes)
	last, usedLast := p.minutesLast(n)
	switch {
	case ok:
		minutes, n, sure = half, n+usedHalf, true
	case usedLast > 0 && minutes%60 == 0 && (sure || led):
		minutes, n, sure = minutes+last, n+usedLast, true
	}
	switch {
	case p.is(n, pm) && minutes < 12*60:
		minutes, n, sure = minutes+12*60, n+1, true
	case p.is(n, am) && minutes/60 == 12:
		minutes, n, sure = minutes-12*60, n+1, true
	case p.is(n, am), p.is(n, pm):
		n, sure = n+1, true
	}
	if !led && !sure && !p.is(n+p.skip(n, the), part) {
		return 0
	}
	p.said.time = minutes
	return n
}

// minutesLast reads the minutes behind an hour, "9 Uhr 30", "alle 21 e 30", where
// nothing follows that they could belong to. Behind an "and" they are more than
// hours go to: "at 9 and 10" are two times.
func (p *parser) minutesLast(i int) (minutes, n int) {
	least := 0.0
	if p.is(i, and) {
		i, n, least = i+1, 1, 25
	}
	v, ok := p.value(i, digits)
	if !ok || v < least || v > 59 {
		return 0, 0
	}
	if u, ok := p.value(i+1, unit); ok && u == aMinute {
		i, n = i+1, n+1
	}
	if p.at+i+1 < len(p.tokens) {
		return 0, 0
	}
	return int(v), n + 1
}

// clock reads the number of a time; sure: it can be nothing else.
func (p *parser) clock(i int) (minutes, n int, sure bool) {
	if v, ok := p.value(i, hour); ok {
		return int(v) * 60, 1, true
	}
	for _, k := range []kind{clock, hours} {
		if v, ok := p.value(i, k); ok && v < 24*60 {
			return int(v), 1, true
		}
	}
	if v, ok := p.value(i, dotted); ok && v >= 0 && v < 2400 && int(v)%100 < 60 {
		return int(v)/100*60 + int(v)%100, 1, true
	}
	before := p.beforeHour(i)
	if before > 0 {
		return p.aroundHour(i, before)
	}
	v, ok := p.value(i, number)
	if !ok || v < 0 || v > 23 || v != float64(int(v)) {
		return 0, 0, false
	}
	if u, ok := p.value(i+1, unit); ok {
		if u != anHour {
			return 0, 0, false // 9 minutes do not name a time of day
		}
		return int(v) * 60, 2, p.said.span == nil
	}
	return int(v) * 60, 1, false
}

// beforeHour counts "half past", "a quarter to", "halb".
func (p *parser) beforeHour(i int) (n int) {
	if p.is(i, halfTo) {
		return 1
	}
	if one, ok := p.value(i, number); ok && one == 1 && p.is(i+1, quarter) {
		n = 1
	}
	if (p.is(i+n, half) || p.is(i+n, quarter)) && (p.is(i+n+1, past) || p.is(i+n+1, to)) {
		return n + 2
	}
	return 0
}

// aroundHour reads the hour that n tokens speak about.
func (p *parser) aroundHour(i, n int) (minutes, used int, sure bool) {
	v, ok := p.value(i+n, number)
	if !ok || v < 1 || v > 23 || v != float64(int(v)) {
		return 0, 0, false
	}
	step := 15
	if p.is(i, halfTo) || n > 1 && p.is(i+n-2, half) {
		step = 30
	}
	if p.is(i, halfTo) || p.is(i+n-1, to) {
		step = -step
	}
	return int(v)*60 + step, n + 1, true
}

// halves reads "and a half", "e un quarto", "moins le quart" behind an hour.
func (p *parser) halves(i, minutes int) (told, n int, ok bool) {
	sign := 1
	switch {
	case p.is(i, and):
	case p.is(i, to):
		sign = -1
	default:
		return 0, 0, false
	}
	n = 1 + p.skip(i+1, the)
	if one, ok := p.value(i+n, number); ok && one == 1 {
		n++
	}
	switch {
	case minutes%60 != 0:
		return 0, 0, false
	case p.is(i+n, half) && !p.is(i+n+1, unit):
		return minutes + sign*30, n + 1, true
	case p.is(i+n, quarter) && !p.is(i+n+1, unit):
		return minutes + sign*15, n + 1, true
	}
	return 0, 0, false
}
