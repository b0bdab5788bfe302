package beats

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"synthbot/core/txt"
)

// clock is a time of the day, in minutes.
type clock int

func readClock(text string) (clock, error) {
	t, err := time.Parse("15:04", strings.TrimSpace(text))
	if err != nil {
		return 0, fmt.Errorf("%q is not a time of day; write it like 09:30", text)
	}
	return clock(t.Hour()*60 + t.Minute()), nil
}

func readDay(text string) (time.Weekday, error) {
	i := slices.Index([]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"},
		strings.ToLower(strings.TrimSpace(text)))
	if i < 0 {
		return 0, fmt.Errorf("%q is not a day; write mon, tue, wed, thu, fri, sat or sun", text)
	}
	return time.Weekday(i), nil
}

// night is a part of the day. If both ends are the same, there is none.
type night struct{ from, to clock }

var errNight = errors.New("write it like 22:00-08:00, or none")

func readNight(text string) (night, error) {
	if text == "none" {
		return night{}, nil
	}
	from, to, ok := strings.Cut(text, "-")
	if !ok {
		return night{}, errNight
	}
	a, err := readClock(from)
	b, err2 := readClock(to)
	if err != nil || err2 != nil {
		return night{}, errNight
	}
	return night{a, b}, nil
}

func (n night) holds(t time.Time) bool {
	at := clock(t.Hour()*60 + t.Minute())
	if n.from <= n.to {
		return n.from <= at && at < n.to
	}
	return at >= n.from || at < n.to
}

type schedule struct {
	at    []clock
	every time.Duration
	days  []time.Weekday
}

func readSchedule(b *Beat) (s schedule, err error) {
	s = b.timing(func(text string, at ...any) { err = fmt.Errorf("beat %q: %v: %s", b.Name, at, text) })
	return s, err
}

// timing parses when the beat is due, and reports faults.
func (b *Beat) timing(fault func(text string, at ...any)) schedule {
	s := schedule{every: b.Every}
	if (b.Every > 0) == (len(b.At) > 0) {
		fault(`give either at or every`, "at")
	}
	if b.Every > 0 && b.Every < minEvery {
		fault(fmt.Sprintf("that is too often; at least %s", minEvery), "every")
	}
	for i, text := range b.At {
		c, err := readClock(text)
		if err != nil {
			fault(err.Error(), "at", i)
		}
		s.at = append(s.at, c)
	}
	for i, text := range b.Days {
		d, err := readDay(text)
		if err != nil {
			fault(err.Error(), "days", i)
		}
		s.days = append(s.days, d)
	}
	slices.Sort(s.at)
	return s
}

func (s *schedule) on(d time.Weekday) bool { return len(s.days) == 0 || slices.Contains(s.days, d) }

// next returns when the beat is due next after a moment, by the local time of a
// zone. With every, the times do not depend on when the bot was started.
func (s *schedule) next(after time.Time, zone *time.Location) time.Time {
	after = after.In(zone)
	if s.every > 0 {
		t := after.Truncate(s.every).Add(s.every)
		for tries := 0; !s.on(t.In(zone).Weekday()) && tries < 10_000; tries++ {
			t = t.Add(s.every)
		}
		return t
	}
	for i := range 9 {
		day := time.Date(after.Year(), after.Month(), after.Day()+i, 12, 0, 0, 0, zone)
		if !s.on(day.Weekday()) {
			continue
		}
		for _, c := range s.at {
			t := time.Date(day.Year(), day.Month(), day.Day(), int(c)/60, int(c)%60, 0, 0, zone)
			if t.After(after) {
				return t
			}
		}
	}
	return after.AddDate(0, 0, 7) // no day has these times
}

// String describes the schedule for users.
func (s *schedule) String() string {
	text := txt.JoinFunc(s.at, ", ", func(c clock) string { return fmt.Sprintf("%02d:%02d", int(c)/60, int(c)%60) })
	if s.every > 0 {
		text = "every " + strings.TrimSuffix(strings.TrimSuffix(s.every.String(), "0s"), "0m")
	}
	if len(s.days) > 0 {
		text += " on " + txt.JoinFunc(s.days, ", ", func(d time.Weekday) string { return d.String()[:3] })
	}
	return text
}
