package txt

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	day     = 24 * time.Hour
	maxSpan = 3650 * day
)

// units are the units of a span, the longest first.
var units = [...]struct {
	letter byte
	name   string
	length time.Duration
}{
	{'w', "week", 7 * day}, {'d', "day", day}, {'h', "hour", time.Hour}, {'m', "minute", time.Minute},
	{'s', "second", time.Second},
}

// ParseSpan reads a time span like "30m", "12h", "7d" or "1w2d". ok is false for other
// texts, and for zero or more than ten years.
func ParseSpan(text string) (d time.Duration, ok bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	for text != "" {
		n := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
		if n < 1 {
			return 0, false
		}
		number, err := strconv.Atoi(text[:n])
		i := strings.IndexByte("wdhms", text[n]) // in the order of units
		if err != nil || i < 0 || number > int(maxSpan/units[i].length) {
			return 0, false
		}
		d += time.Duration(number) * units[i].length
		if d > maxSpan {
			return 0, false
		}
		text = text[n+1:]
	}
	return d, d > 0
}

// Span writes a duration in the form that ParseSpan reads, without fractions of a second.
func Span(d time.Duration) string {
	var b strings.Builder
	for _, u := range units {
		n := d / u.length
		d -= n * u.length
		if n > 0 {
			fmt.Fprintf(&b, "%d%c", n, u.letter)
		}
	}
	return b.String()
}

// SpanWords writes a duration for users, without fractions of a second: "1 hour 30 minutes".
func SpanWords(d time.Duration) string {
	var parts []string
	for _, u := range units {
		n := d / u.length
		d -= n * u.length
		switch {
		case n == 1:
			parts = append(parts, "1 "+u.name)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", n, u.name))
		}
	}
	return strings.Join(parts, " ")
}

// Moment writes a time for users, in the time zone of now and as short as possible.
func Moment(t, now time.Time) string {
	t = t.In(now.Location())
	layout := "15:04 MST"
	switch ty, tm, td := t.Date(); {
	case ty != now.Year():
		layout = "2 Jan 2006 15:04 MST"
	case tm != now.Month() || td != now.Day():
		layout = "2 Jan 15:04 MST"
	case t.Sub(now).Abs() < time.Minute:
		layout = "15:04:05 MST"
	}
	return t.Format(layout)
}
