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
	maxLimited     = 16384            // users in memory
)

// errTooFast is the notice to users whose messages come too fast to be answered.
var errTooFast = core.Errorf(core.Occupied,
	"You write faster than I can answer. I read it all, and answer again in a moment.")

// limiter counts, in memory only, the turns with a model that each user causes, and their notices of limits. Safe for
// concurrent use.
type limiter struct {
	mu     sync.Mutex
	people recent.Cache[core.Path, *userLimit]
}

// userLimit is the token bucket of one user. It holds the turns of one minute, and is full again after a minute.
type userLimit struct {
	used    float64 // turns missing from the bucket
	at      time.Time
	noticed time.Time
}

// refill adds the turns for the time since the last refill.
func (p *userLimit) refill(perMinute int, now time.Time) {
	p.used, p.at = max(p.used-now.Sub(p.at).Minutes()*float64(perMinute), 0), now
}

// claimNotice reports whether the user may be notified of a limit now, and notes it.
func (p *userLimit) claimNotice(now time.Time) bool {
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

// reserve takes one turn from the bucket of each user, and returns how long to wait for it. If that is too
// long, it takes nothing, and ok is false. A turn of several users never waits.
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

// Asked counts a turn with a model that a user caused in another process.
func (t *Turns) Asked(person core.Path, perMinute int) {
	a := &t.limiter
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.of(person)
	p.refill(perMinute, time.Now())
	p.used++
}

// mayNotify reports whether the user may be notified of a limit now.
func (a *limiter) mayNotify(person core.Path, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := *a.of(person)
	return p.claimNotice(now)
}

// claimNotice reports whether one of these users may be notified of a limit now, and notes it for all of them.
func (a *limiter) claimNotice(people []core.Path, now time.Time) (due bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, person := range people {
		due = a.of(person).claimNotice(now) || due
	}
	return due || len(people) == 0
}

// waitForLimit waits until the user may cause another turn with a model. What they write meanwhile is answered
// together. It returns false if that would take too long. Admins have no limit.
func (t *turn) waitForLimit(ctx context.Context) bool {
	kind, perMinute := t.messages[0].Kind, t.setup.Access.PerMinute
	author, _ := t.who.Author()
	wrote := kind == core.KindMessage || kind == core.KindPress
	if perMinute <= 0 || author.Rank >= core.RankAdmin || !wrote {
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

// isLimit reports whether an error tells users that they reached a limit.
func isLimit(err error) bool {
	said, ok := errors.AsType[*core.Error](err)
	return ok && said.Kind == core.Occupied && said.Text != ""
}
