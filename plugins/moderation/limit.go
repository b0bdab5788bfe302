package moderation

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Limit allows Count things within Per; the zero value any number. As a text it
// is "20/1h", or "off".
type Limit struct {
	Count int
	Per   time.Duration
}

// Bounds of a Limit.
const (
	maxCount = 100_000
	maxPer   = 31 * day
)

const noLimit = "off"

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *Limit) UnmarshalText(text []byte) error {
	if string(text) == noLimit {
		*l = Limit{}
		return nil
	}
	count, per, ok := strings.Cut(string(text), "/")
	n, err := strconv.Atoi(count)
	d, known := parseSpan(per)
	switch {
	case !ok || err != nil || !known || count[0] == '+':
		return fmt.Errorf(`%q is no limit; write it like "20/1h", or "off"`, text)
	case n < 1 || n > maxCount:
		return fmt.Errorf("%d is no count of a limit; write 1 to %d", n, maxCount)
	case d > maxPer:
		return fmt.Errorf("%s is too long for a limit; write at most %s", per, spanText(maxPer))
	}
	*l = Limit{n, d}
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (l Limit) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

func (l Limit) String() string {
	if l.Count == 0 {
		return noLimit
	}
	return strconv.Itoa(l.Count) + "/" + spanText(l.Per)
}

// window counts against a Limit: from the first thing on, for as long as the
// limit says. Times are of the bot's clock, in nanoseconds.
type window struct {
	start int64
	count int
	told  bool // that it is full
}

// fresh begins the window anew when its time is over, or the clock was put back.
func (w *window) fresh(l Limit, now time.Time) {
	if t := now.UnixNano(); t < w.start || t-w.start >= int64(l.Per) {
		*w = window{start: t}
	}
}

// full reports whether there is no room for one more.
func (w *window) full(l Limit, now time.Time) bool {
	if l.Count == 0 {
		return false
	}
	w.fresh(l, now)
	return w.count >= l.Count
}

// take counts one more, if there is room.
func (w *window) take(l Limit, now time.Time) bool {
	if w.full(l, now) {
		return false
	}
	w.count++
	return true
}

// tell reports whether it is still to be told that the window is full, and notes
// that it is.
func (w *window) tell() bool {
	told := w.told
	w.told = true
	return !told
}

// ends is when there is room again.
func (w *window) ends(l Limit) time.Time { return time.Unix(0, w.start).Add(l.Per) }

// fill makes a window that is full until then, and of which that was told.
func (w *window) fill(l Limit, until time.Time) {
	*w = window{start: until.Add(-l.Per).UnixNano(), count: l.Count, told: true}
}
