package limits

import (
	"fmt"
	"hash/maphash"
	"strings"
	"time"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/gate"
	"synthbot/core/txt"
)

// What guards log.
const (
	repeating = "repeating"
	flooding  = "flooding"
	walling   = "walling"
)

const (
	repeatWithin = 10 * time.Minute // a text that is older is not repeated
	wallWithin   = 10 * time.Second
	warnEvery    = 10 * time.Minute
	grossFlood   = 5    // times the limit: not even kept
	maxHashed    = 4096 // bytes of a text that are compared
)

// guard looks for floods, repeats and walls of text. Each of them is counted, whatever
// the others say.
func (l *Limiter) guard(a *activity, m *core.Message, now time.Time) gate.Verdict {
	flood := l.config.Flood
	a.pace.restart(flood.Per, now)
	a.pace.count++
	repeats, wall := l.repeats(a, m, now), l.isWall(a, m, now)
	what := ""
	switch {
	case flood.Count > 0 && a.pace.count > flood.Count:
		what = flooding
	case repeats:
		what = repeating
	case wall:
		what = walling
	default:
		return gate.Verdict{}
	}
	v := gate.Verdict{Admission: gate.Quiet}
	if what == flooding && a.pace.count > grossFlood*flood.Count {
		v.Admission = gate.Discard
	}
	since := now.Sub(a.warned)
	if gate.CanReply(m) && (since < 0 || since >= warnEvery) {
		a.warned = now
		v.Reply, v.Limited = l.warning(what), true
		l.log.LogAuthor(m, what, "", time.Time{})
	}
	return v
}

// repeats counts how often the same text came in a row, and reports whether it was too
// often.
func (l *Limiter) repeats(a *activity, m *core.Message, now time.Time) bool {
	if l.config.Repeat == 0 || !gate.CanReply(m) {
		return false
	}
	text := strings.TrimSpace(m.AllText())
	sum := maphash.String(l.seed, text[:min(len(text), maxHashed)])
	since := now.Sub(a.lastAt)
	if sum != a.last || since < 0 || since > repeatWithin {
		a.repeats = 0
	}
	a.last, a.lastAt = sum, now
	a.repeats++
	return a.repeats >= l.config.Repeat
}

// isWall counts characters, because platforms split a long text into several messages.
func (l *Limiter) isWall(a *activity, m *core.Message, now time.Time) bool {
	if l.config.Wall == 0 {
		return false
	}
	a.wall.restart(wallWithin, now)
	a.wall.count += utf8.RuneCountInString(m.AllText())
	return a.wall.count > l.config.Wall
}

// warning returns what the author reads.
func (l *Limiter) warning(what string) string {
	switch what {
	case flooding:
		f := l.config.Flood
		return fmt.Sprintf("That is too fast for me: more than %d messages within %s."+
			" What comes after them goes unanswered.", f.Count, txt.SpanWords(f.Per))
	case repeating:
		return "You have said that several times now. I answer again when you say something else."
	}
	return fmt.Sprintf("That is too long for me: I read at most %d characters at a time.", l.config.Wall)
}
