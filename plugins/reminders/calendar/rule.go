// Package calendar computes times: the moment of a local time, also where clocks are put forward or back, and the
// occurrences of a recurrence rule of RFC 5545. It is pure, and does not parse natural language.
package calendar

import (
	"errors"
	"fmt"
	"iter"
	"slices"
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

// ErrRule is wrapped by the errors of ParseRule.
var ErrRule = errors.New("bad rule")

// Rule is a recurrence rule: an RRULE of RFC 5545 with at most one occurrence an hour. The zero Rule has none.
type Rule struct {
	text   string
	option rrule.ROption
	real   bool // counts elapsed hours instead of local times
	utc    bool // UNTIL is in UTC, not a local time
	day    bool // UNTIL is a date
}

// ParseRule parses an RRULE, with or without the prefix "RRULE:".
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

// check refuses rules that are too frequent, or that the library cannot compute.
func (r *Rule) check() error {
	o := &r.option
	switch {
	case o.Freq > rrule.HOURLY:
		return fmt.Errorf("%w: FREQ=%s is too often; at most HOURLY is possible", ErrRule, o.Freq)
	case len(o.Bysecond) > 0 || len(o.Byminute) > 1:
		return fmt.Errorf("%w: it would come more than once an hour", ErrRule)
	case o.Freq == rrule.HOURLY &&
		len(o.Bymonth)+len(o.Bymonthday)+len(o.Byyearday)+len(o.Byweekno)+len(o.Byeaster)+len(o.Bysetpos) > 0:
		return fmt.Errorf("%w: FREQ=HOURLY allows only BYDAY and BYHOUR; write FREQ=DAILY with BYHOUR", ErrRule)
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

// countable reports whether the library can compute BYDAY and BYEASTER: numbers of weekdays must not exceed the weeks
// of a month or year, and days from Easter must stay within the year.
func countable(o *rrule.ROption) bool {
	most := 5
	if o.Freq == rrule.YEARLY && len(o.Bymonth) == 0 {
		most = 53
	}
	tooMany := func(n, most int) bool { return n > most || n < -most }
	return !slices.ContainsFunc(o.Byweekday, func(d rrule.Weekday) bool { return tooMany(d.N(), most) }) &&
		!slices.ContainsFunc(o.Byeaster, func(days int) bool { return tooMany(days, maxEaster) })
}

// String returns the RRULE, "" for the zero Rule.
func (r Rule) String() string { return r.text }

// IsZero reports whether the rule is the zero Rule.
func (r Rule) IsZero() bool { return r.text == "" }

// After yields, in order, the occurrences after a moment of the series that begins at start, up to the horizon after
// the later of both. Occurrences have the local time of start in its zone, also when clocks change in between; only a
// plain FREQ=HOURLY counts elapsed hours.
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
		// A local time that clocks skip resolves to a later one.
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

// Next returns the first occurrence of After.
func (r Rule) Next(start, after time.Time, horizon time.Duration) (next time.Time, ok bool) {
	for at := range r.After(start, after, horizon) {
		return at, true
	}
	return time.Time{}, false
}

const clockJump = 25 * time.Hour // more than any clock change

// until returns the rule's UNTIL in the time of the series.
func (r *Rule) until(show func(time.Time) time.Time, loc *time.Location) time.Time {
	if r.day { // the day itself is included
		return show(Resolve(r.option.Until.Add(24*time.Hour-time.Second), loc))
	}
	until := r.option.Until
	if !until.IsZero() && (r.utc || r.real) {
		return show(until)
	}
	return r.option.Until
}

// guarded returns an iterator that ends if the library panics.
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

// At returns the moment of a local time in loc. If clocks skip that time, it is
// later by the skipped span (02:30 becomes 03:30); if it occurs twice, it is the
// first one. Values outside of their range are normalised, as by time.Date.
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

// Wall returns the local time of t as a time in UTC.
func Wall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

// Resolve is the inverse of Wall; see At.
func Resolve(wall time.Time, loc *time.Location) time.Time {
	return At(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), loc)
}

// shift returns the moment of a local time with the offset that is in force at another moment.
func shift(wall, moment time.Time) time.Time {
	_, offset := moment.Zone()
	return wall.Add(-time.Duration(offset) * time.Second).In(moment.Location())
}

func sameWall(t, wall time.Time) bool { return Wall(t).Equal(wall) }
