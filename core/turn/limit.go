package turn

import (
	"context"
	"errors"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/recent"
)

const (
	noticeInterval = time.Hour        // between two notices of limits to one user
	maxLimitWait   = 10 * time.Second // how long a turn waits for its user's limit
	maxLimited     = 16384            // users who are remembered at the same time
)

// errTooFast is the notice to users whose messages come too fast to be answered.
var errTooFast = core.Errorf(core.Occupied,
	"You write faster than I can answer. I read it all, and answer again in a moment.")

// limiter remembers, while the process lives, how often each user makes the model be
// asked, and when they were notified of a limit. Safe for concurrent use.
type limiter struct {
	mu     sync.Mutex
	people recent.Cache[core.Path, *userLimit]
}

// userLimit is the limit of one user, a token bucket: so many turns may come at once, and
// as many more in each minute.
type userLimit struct {
	used    float64 // turns that the bucket lacks
	at      time.Time
	noticed time.Time
}

// refill puts back what the time since the last turn has brought.
func (p *userLimit) refill(perMinute int, now time.Time) {
	p.used, p.at = max(p.used-now.Sub(p.at).Minutes()*float64(perMinute), 0), now
}

// notice reports whether the user may be notified of a limit now, and notes it.
func (p *userLimit) notice(now time.Time) bool {
	since := now.Sub(p.noticed)
	if since >= 0 && since < noticeInterval {
		return false
	}
	p.noticed = now
	return true
}

// of returns the user's limit. mu is held.
func (a *limiter) of(person core.Path) *userLimit {
	return a.people.Ensure(person, func() *userLimit { return new(userLimit) })
}

// reserve takes a turn that these users cause out of their buckets, and returns how long to wait for
// it. ok is false, and nothing is taken, if that is too long. Several users wait for nobody.
func (a *limiter) reserve(people []core.Path, perMinute int, now time.Time) (wait time.Duration, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	most := float64(perMinute)
	for _, person := range people {
		p := a.of(person)
		p.refill(perMinute, now)
		wait = max(time.Duration((p.used+1-most)/most*float64(time.Minute)), 0)
		ok = wait <= maxLimitWait
		if ok {
			p.used++
		}
	}
	if len(people) != 1 {
		return 0, true
	}
	return wait, ok
}

// Asked counts that a user made the model be asked in another process.
func (t *Turns) Asked(person core.Path, perMinute int) {
	a := &t.limiter
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.of(person)
	p.refill(perMinute, time.Now())
	p.used++
}

// mayNotice reports whether the user may be notified of a limit now.
func (a *limiter) mayNotice(person core.Path, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := *a.of(person)
	return p.notice(now)
}

// notice reports whether one of these users was not notified of a limit lately, and notes
// that they are now.
func (a *limiter) notice(people []core.Path, now time.Time) (due bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, person := range people {
		due = a.of(person).notice(now) || due
	}
	return due || len(people) == 0
}

// waitForLimit waits until the user who caused the turn may make the model be asked again:
// what they write meanwhile is answered together. It returns false if that would take
// too long. Admins wait for nothing.
func (t *turn) waitForLimit(ctx context.Context, perMinute int) bool {
	first := &t.messages[0]
	author, _ := t.who.Author()
	if author.Rank >= core.RankAdmin || first.Kind != core.KindMessage && first.Kind != core.KindPress {
		return true
	}
	people := t.causers()
	pause, ok := t.turns.limiter.reserve(people, perMinute, time.Now())
	if ok && t.setup.Places.Asked != nil {
		t.setup.Places.Asked(people, perMinute)
	}
	if ok {
		wait(ctx, pause)
	}
	return ok
}

func isLimit(err error) bool {
	said, ok := errors.AsType[*core.Error](err)
	return ok && said.Kind == core.Occupied && said.Text != ""
}
