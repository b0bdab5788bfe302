package turn

import (
	"context"
	"errors"
	"sync"
	"time"

	"synthbot/core"
)

const (
	noticeInterval = time.Hour        // how often somebody is told of a limit, whichever it is
	maxLimitWait   = 10 * time.Second // how long a turn waits for its person's limit
	maxLimited     = 16384            // people who are remembered at the same time
)

// errTooFast is what a person is told whose messages came too fast to be answered.
var errTooFast = core.Errorf(core.Occupied, "You write faster than I can answer. I read it all, and answer again in a moment.")

// pace remembers, while the process lives, how often each person makes the model be
// asked, and when they were told of a limit. Safe for concurrent use.
type limiter struct {
	mu     sync.Mutex
	people map[core.Path]*userLimit
}

// pacing is one person's. Their turns are a token bucket: so many may come at once,
// and as many more in each minute.
type userLimit struct {
	used float64 // turns that the bucket lacks
	at   time.Time
	told time.Time
}

// reserve takes a turn out of the bucket and returns how long to wait for it. ok is
// false, and nothing is taken, if that is too long.
func (p *userLimit) reserve(perMinute int, now time.Time) (wait time.Duration, ok bool) {
	most := float64(perMinute)
	p.used, p.at = max(p.used-now.Sub(p.at).Minutes()*most, 0), now
	wait = max(time.Duration((p.used+1-most)/most*float64(time.Minute)), 0)
	if wait > maxLimitWait {
		return 0, false
	}
	p.used++
	return wait, true
}

// tell reports whether the person may be told of a limit now.
func (p *userLimit) tell(now time.Time) bool {
	if since := now.Sub(p.told); since >= 0 && since < noticeInterval {
		return false
	}
	p.told = now
	return true
}

// of returns the person's. mu is held.
func (a *limiter) of(person core.Path) *userLimit {
	if p, ok := a.people[person]; ok {
		return p
	}
	if a.people == nil || len(a.people) >= maxLimited {
		a.people = make(map[core.Path]*userLimit)
	}
	p := new(userLimit)
	a.people[person] = p
	return p
}

// reserve takes a turn that these people cause. Several people wait for nobody.
func (a *limiter) reserve(people []core.Path, perMinute int, now time.Time) (wait time.Duration, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, person := range people {
		wait, ok = a.of(person).reserve(perMinute, now)
	}
	if len(people) != 1 {
		return 0, true
	}
	return wait, ok
}

// may reports whether the person may be told of a limit now.
func (a *limiter) may(person core.Path, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := *a.of(person)
	return p.tell(now)
}

// tells reports whether one of these people has not been told of a limit lately, and
// notes that they are told now.
func (a *limiter) tells(people []core.Path, now time.Time) (tell bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, person := range people {
		tell = a.of(person).tell(now) || tell
	}
	return tell || len(people) == 0
}

// waitForLimit waits until the user who caused the turn may make the model be asked again:
// what they write meanwhile is answered together. It returns false if that would take
// too long. Admins wait for nothing.
func (c *exchange) waitForLimit(ctx context.Context) bool {
	t := c.turn
	perMinute := t.setup.Access.PerMinute
	first := &t.messages[0]
	if perMinute <= 0 || first.Kind != core.KindMessage && first.Kind != core.KindPress {
		return true
	}
	if len(t.who.Authors) == 1 && t.who.Authors[0].Rank >= core.Admin {
		return true
	}
	pause, ok := t.turns.limiter.reserve(t.causers(), perMinute, time.Now())
	if ok {
		wait(ctx, pause)
	}
	return ok
}

// limited reports whether an error tells people of a limit.
func limited(err error) bool {
	var said *core.Error
	return errors.As(err, &said) && said.Kind == core.Occupied && said.Text != ""
}
