package limits

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/txt"
)

// Rate allows Count events within Per; the zero value allows any number. As a text it is "20/1h", or "off".
type Rate core.RateLimit

const (
	maxCount = 100_000
	maxPer   = 31 * 24 * time.Hour
)

const noLimit = "off"

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Rate) UnmarshalText(text []byte) error {
	if string(text) == noLimit {
		*r = Rate{}
		return nil
	}
	count, per, ok := strings.Cut(string(text), "/")
	n, err := strconv.Atoi(count)
	d, known := txt.ParseSpan(per)
	switch {
	case !ok || err != nil || !known || count[0] == '+':
		return fmt.Errorf(`%q is not a limit; write it like "20/1h", or "off"`, text)
	case n < 1 || n > maxCount:
		return fmt.Errorf("%d is not a count for a limit; write 1 to %d", n, maxCount)
	case d > maxPer:
		return fmt.Errorf("%s is too long for a limit; write at most %s", per, txt.Span(maxPer))
	}
	*r = Rate{n, d}
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

func (r Rate) String() string {
	if r.Count == 0 {
		return noLimit
	}
	return strconv.Itoa(r.Count) + "/" + txt.Span(r.Per)
}

// words describes a full window for users: "3 times this hour".
func (r Rate) words() string {
	times := "once"
	if r.Count > 1 {
		times = fmt.Sprintf("%d times", r.Count)
	}
	per := txt.SpanWords(r.Per)
	unit, one := strings.CutPrefix(per, "1 ")
	if one && !strings.Contains(unit, " ") {
		return times + " this " + unit
	}
	return times + " within " + per
}

// window counts events for a Rate. It begins with the first event and lasts Rate.Per.
type window struct {
	start    int64 // Unix nanoseconds
	count    int
	reported bool // a message has reported that it is full
}

// restart begins a new window if its time is over, or if the clock was set back.
func (w *window) restart(per time.Duration, now time.Time) {
	t := now.UnixNano()
	if t < w.start || t-w.start >= int64(per) {
		*w = window{start: t}
	}
}

func (w *window) full(r Rate, now time.Time) bool {
	if r.Count == 0 {
		return false
	}
	w.restart(r.Per, now)
	return w.count >= r.Count
}

func (w *window) end(r Rate) time.Time { return time.Unix(0, w.start).Add(r.Per) }

// fill makes the window full until a time, and reported.
func (w *window) fill(r Rate, until time.Time) {
	*w = window{start: until.Add(-r.Per).UnixNano(), count: r.Count, reported: true}
}
