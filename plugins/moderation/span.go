package moderation

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// maxSpan is the longest time that somebody may name.
const maxSpan = 3650 * day

// units are those of a span, longest first.
var units = [...]struct {
	letter byte
	name   string
	length time.Duration
}{{'w', "week", 7 * day}, {'d', "day", day}, {'h', "hour", time.Hour}, {'m', "minute", time.Minute}, {'s', "second", time.Second}}

// parseSpan reads a time like "30m", "12h", "7d" or "1w2d". ok is false where it
// is none, is nothing, or is longer than maxSpan.
func parseSpan(text string) (d time.Duration, ok bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	for text != "" {
		n := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
		if n < 1 {
			return 0, false
		}
		number, err := strconv.Atoi(text[:n])
		unit := unitOf(text[n])
		if err != nil || unit == 0 || number > int(maxSpan/unit) {
			return 0, false
		}
		if d += time.Duration(number) * unit; d > maxSpan {
			return 0, false
		}
		text = text[n+1:]
	}
	return d, d > 0
}

func unitOf(letter byte) time.Duration {
	for _, u := range units {
		if u.letter == letter {
			return u.length
		}
	}
	return 0
}

// spanText writes whole seconds so that parseSpan reads them.
func spanText(d time.Duration) string {
	var b strings.Builder
	for _, u := range units {
		if n := d / u.length; n > 0 {
			fmt.Fprintf(&b, "%d%c", n, u.letter)
			d -= n * u.length
		}
	}
	return b.String()
}

// spanWords writes a time for people: "2 hours".
func spanWords(d time.Duration) string {
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

// within words a window: "this hour".
func within(d time.Duration) string {
	for _, u := range units {
		if d == u.length {
			return "this " + u.name
		}
	}
	return "within " + spanWords(d)
}

// moment words a time for people, in the zone of now, as short as can be.
func moment(t, now time.Time) string {
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

// ending words until when something holds; the zero time is for good.
func ending(t, now time.Time) string {
	if t.IsZero() {
		return "until it is lifted"
	}
	return "until " + moment(t, now)
}
