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
func (l *Limiter) guard(a *activity, m *core.Message, now time.Time) (v gate.Verdict) {
	flood := l.config.Flood
	a.pace.restart(flood.Per, now)
	a.pace.count++
	repeats := l.repeats(a, m, now)
	// Characters are counted, because platforms split a long text into several messages.
	a.wall.restart(wallWithin, now)
	a.wall.count += utf8.RuneCountInString(m.AllText())
	what, reply := "", "" // what the author reads
	switch {
	case flood.Count > 0 && a.pace.count > flood.Count:
		what = flooding
		reply = fmt.Sprintf("That is too fast for me: more than %d messages within %s."+
			" What comes after them goes unanswered.", flood.Count, txt.SpanWords(flood.Per))
	case repeats:
		what = repeating
		reply = "You have said that several times now. I answer again when you say something else."
	case l.config.Wall > 0 && a.wall.count > l.config.Wall:
		what = walling
		reply = fmt.Sprintf("That is too long for me: I read at most %d characters at a time.", l.config.Wall)
	default:
		return v
	}
	v.Admission = gate.Quiet
	if what == flooding && a.pace.count > grossFlood*flood.Count {
		v.Admission = gate.Discard
	}
	since := now.Sub(a.warned)
	if gate.CanReply(m) && (since < 0 || since >= warnEvery) {
		a.warned = now
		v.Reply, v.Limited = reply, true
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
