package moderation

import (
	"fmt"
	"time"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/txt"
)

const (
	repeatsWithin = 10 * time.Minute // what was said longer ago is not said again
	wallWithin    = 10 * time.Second
	grossFlood    = 5 // times the limit: not even kept
)

// guard looks for repeats, floods and walls of text. p.mu is held.
func (p *Plugin) guard(a *activity, w who, m *core.Message, now time.Time) core.Verdict {
	what, v := p.nuisance(a, m, now)
	if what == "" {
		return v
	}
	if tellable(m) && since(&a.warned, now, pauseWords) {
		v.Reply, v.Limited = p.warning(what), true
		p.happened(w, m, event{What: what})
	}
	return v
}

// nuisance says what a message is, "" for nothing of the kind. Each counter counts,
// whatever the others say.
func (p *Plugin) nuisance(a *activity, m *core.Message, now time.Time) (what string, v core.Verdict) {
	v.Admission = core.Quiet
	l := p.config.Flood
	a.pace.fresh(l, now)
	a.pace.count++
	same := p.repeated(a, m, now)
	wall := p.walled(a, m, now)
	switch {
	case l.Count > 0 && a.pace.count > grossFlood*l.Count:
		v.Admission = core.Discard
		return wasFlooding, v
	case l.Count > 0 && a.pace.count > l.Count:
		return wasFlooding, v
	case same:
		return wasRepeating, v
	case wall:
		return wasWalling, v
	}
	return "", core.Verdict{}
}

// repeated counts how often the same text came in a row.
func (p *Plugin) repeated(a *activity, m *core.Message, now time.Time) bool {
	if p.config.Repeat == 0 || !tellable(m) {
		return false
	}
	sum, at := textHash(p.texts, m.AllText()), now.UnixNano()
	if sum != a.last || at < a.lastAt || at-a.lastAt > int64(repeatsWithin) {
		a.repeats = 0
	}
	a.last, a.lastAt = sum, at
	a.repeats++
	return a.repeats >= p.config.Repeat
}

// walled counts characters: platforms cut a long text into several messages.
func (p *Plugin) walled(a *activity, m *core.Message, now time.Time) bool {
	if p.config.Wall == 0 {
		return false
	}
	a.wall.fresh(Limit{1, wallWithin}, now)
	a.wall.count += utf8.RuneCountInString(m.AllText())
	return a.wall.count > p.config.Wall
}

// warning is what the person is told.
func (p *Plugin) warning(what string) string {
	switch what {
	case wasFlooding:
		l := p.config.Flood
		return fmt.Sprintf("That is too fast for me: more than %d messages within %s. What comes after them goes unanswered.", l.Count, spanWords(l.Per))
	case wasRepeating:
		return "You have said that several times now. I answer again when you say something else."
	}
	return fmt.Sprintf("That is too long for me: I read at most %d characters at a time.", p.config.Wall)
}

// called is a person's name, fit for a line.
func called(name string) string {
	if name = txt.Clip(txt.Line(name), maxName); name == "" {
		return "Somebody"
	}
	return name
}

const maxName = 60 // characters
