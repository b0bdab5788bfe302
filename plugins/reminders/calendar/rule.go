// Package calendar tells when something happens: what a wall clock's time means
// where clocks are put forward and back, and when a rule of RFC 5545 falls due.
// It is pure; what people say is read elsewhere.
package calendar

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/teambition/rrule-go"
)

const (
	maxRule     = 200   // bytes
	maxInterval = 1000  // of its unit
	maxCount    = 10000 // occurrences
	maxEaster   = 80    // days from Easter
)

// ErrRule is what every refused rule's error wraps.
var ErrRule = errors.New("bad rule")

// Rule says how something comes again: an RRULE of RFC 5545, never more than
// once an hour. The zero Rule never does.
type Rule struct {
	text   string
	option rrule.ROption
	real   bool // in real hours: no wall clock has a say
	utc    bool // it ends at a moment, not at a wall clock's time
	day    bool // it ends with a day
}

// ParseRule reads an RRULE, with or without its name in front.
func ParseRule(text string) (Rule, error) {
	text = strings.ToUpper(strings.TrimSpace(text))
	text = strings.TrimSuffix(strings.TrimPrefix(text, "RRULE:"), ";")
	if text == "" || len(text) > maxRule || strings.ContainsAny(text, " \t\r\n") {
		return Rule{}, fmt.Errorf("%w: it must be one RRULE of at most %d letters, like FREQ=WEEKLY;BYDAY=MO", ErrRule,
			maxRule)
	}
	if strings.Contains(text, "DTSTART") || strings.Count(text, "FREQ=") != 1 {
		return Rule{}, fmt.Errorf("%w: it must have one FREQ and no DTSTART", ErrRule)
	}
	option, err := rrule.StrToROption(text)
	if err != nil {
		return Rule{}, fmt.Errorf("%w: %w", ErrRule, err)
	}
	_, rest, _ := strings.Cut(text, "UNTIL=")
	until, _, _ := strings.Cut(rest, ";")
	r := Rule{text: text, option: *option, utc: strings.HasSuffix(until, "Z")}
	r.day = until != "" && !strings.Contains(until, "T")
	r.real = option.Freq == rrule.HOURLY && !strings.Contains(text, "BY")
	if err := r.check(); err != nil {
		return Rule{}, err
	}
	return r, nil
}

// check refuses what comes too often, and what could not be counted out.
func (r *Rule) check() error {
	o := &r.option
	switch {
	case o.Freq > rrule.HOURLY:
		return fmt.Errorf("%w: FREQ=%s is too often; HOURLY is the least", ErrRule, o.Freq)
	case len(o.Bysecond) > 0 || len(o.Byminute) > 1:
		return fmt.Errorf("%w: it would come more than once an hour", ErrRule)
	case o.Freq == rrule.HOURLY &&
		len(o.Bymonth)+len(o.Bymonthday)+len(o.Byyearday)+len(o.Byweekno)+len(o.Byeaster)+len(o.Bysetpos) > 0:
		return fmt.Errorf("%w: with FREQ=HOURLY only BYDAY and BYHOUR go; write FREQ=DAILY with BYHOUR", ErrRule)
	case !countable(o):
		return fmt.Errorf("%w: BYDAY counts to 5 in a month and to 53 in a year, BYEASTER to %d days", ErrRule,
			maxEaster)
	case o.Interval > maxInterval || o.Count > maxCount || o.Count < 0:
		return fmt.Errorf("%w: INTERVAL is at most %d and COUNT at most %d", ErrRule, maxInterval, maxCount)
	}
	o.Dtstart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	if _, err := rrule.NewRRule(*o); err != nil {
		return fmt.Errorf("%w: %w", ErrRule, err)
	}
	return nil
}

// countable reports whether no weekday is counted further than months and years
// have weeks, and no day further from Easter than always lies in its year: the
// library would look beyond the ends of its tables.
func countable(o *rrule.ROption) bool {
	most := 5
	if o.Freq == rrule.YEARLY && len(o.Bymonth) == 0 {
		most = 53
	}
	for i := range o.Byweekday {
		n := o.Byweekday[i].N()
		if n > most || n < -most {
			return false
		}
	}
	for _, days := range o.Byeaster {
		if days > maxEaster || days < -maxEaster {
			return false
		}
	}
	return true
}

// String is the RRULE; "" for the zero Rule.
func (r Rule) String() string { return r.text }

// IsZero reports whether the rule never comes again.
func (r Rule) IsZero() bool { return r.text == "" }

// After yields the occurrences after a moment, in order, of the series that
// begins at start; none that lies further than the horizon behind both. The wall
// clock is start's, in the zone of start, whatever happens to clocks in between;
// only a plain FREQ=HOURLY counts real hours.
func (r Rule) After(start, after time.Time, horizon time.Duration) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		if r.IsZero() {
			return
		}
		loc := start.Location()
		read := func(t time.Time) time.Time { return Resolve(t, loc) }
		show := func(t time.Time) time.Time { return Wall(t.In(loc)) }
		if r.real {
			read = func(t time.Time) time.Time { return t.In(loc) }
			show = func(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
		}
		far := start.Add(max(0, after.Sub(start)) + horizon)
		o := r.option
		o.Dtstart, o.Until = show(start), r.until(show, loc)
		if o.Until.IsZero() || o.Until.After(show(far)) {
			o.Until = show(far)
		}
		rule, err := rrule.NewRRule(o)
		if err != nil {
			return
		}
		series := guarded(rule.Iterator())
		// A time that clocks skip is a little later than its name says.
		from, last := show(after).Add(-clockJump), after
		for t, more := series(); more; t, more = series() {
			if t.Before(from) {
				continue
			}
			at := read(t)
			if at.After(far) {
				return
			}
			if at.After(last) && !at.Before(start) {
				last = at
				if !yield(at) {
					return
				}
			}
		}
	}
}

// Next is the first of After.
func (r Rule) Next(start, after time.Time, horizon time.Duration) (next time.Time, ok bool) {
	for at := range r.After(start, after, horizon) {
		return at, true
	}
	return time.Time{}, false
}

// clockJump is more than clocks are ever put forward by.
const clockJump = 25 * time.Hour

// until is where the rule itself ends, as its series counts.
func (r *Rule) until(show func(time.Time) time.Time, loc *time.Location) time.Time {
	if r.day { // that day is one of those on which it comes
		return show(Resolve(r.option.Until.Add(24*time.Hour-time.Second), loc))
	}
	until := r.option.Until
	if !until.IsZero() && (r.utc || r.real) {
		return show(until)
	}
	return r.option.Until
}

// guarded ends a series that the library cannot count out: who waits for it must
// not end with it.
func guarded(next rrule.Next) rrule.Next {
	return func() (t time.Time, more bool) {
		defer func() {
			if recover() != nil {
				t, more = time.Time{}, false
			}
		}()
		return next()
	}
}

// At is the moment at which a wall clock in loc shows that time. Where a change
// of clocks leaves it out, it is as much later as the clocks jump (02:30 becomes
// 03:30); where it comes twice, the first one counts. Values beyond their range
// count on, as with time.Date.
func At(year int, month time.Month, day, hour, minute, second int, loc *time.Location) time.Time {
	wall := time.Date(year, month, day, hour, minute, second, 0, time.UTC)
	near := time.Date(year, month, day, hour, minute, second, 0, loc)
	before := shift(wall, near.Add(-24*time.Hour))
	if sameWall(before, wall) {
		return before
	}
	after := shift(wall, near.Add(24*time.Hour))
	if sameWall(after, wall) {
		return after
	}
	return before
}

// Wall is the wall clock's time as if there were no zones: what t shows, in UTC.
func Wall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

// Resolve is At for what Wall returned.
func Resolve(wall time.Time, loc *time.Location) time.Time {
	return At(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), loc)
}

// shift reads the wall clock by the offset that holds at a moment.
func shift(wall, moment time.Time) time.Time {
	_, offset := moment.Zone()
	return wall.Add(-time.Duration(offset) * time.Second).In(moment.Location())
}

func sameWall(t, wall time.Time) bool { return Wall(t).Equal(wall) }
