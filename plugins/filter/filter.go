package filter

import (
	"fmt"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/gate"
	"synthbot/core/recent"
)

const (
	warnEvery    = 10 * time.Minute
	maxAuthors   = 4096
	maxDelivered = 1000
)

// Log is read by moderators. Its methods return at once.
type Log interface {
	// LogAuthor logs what the author of a message did.
	LogAuthor(m *core.Message, what, detail string, until time.Time)
	// NotifyAbout tells these places, or all admins if there are none, about a message.
	NotifyAbout(m *core.Message, text string, to ...core.Path)
}

// Filter checks messages. It is safe for concurrent use.
type Filter struct {
	clock  func() time.Time
	notify []core.Path
	rules  *ruleSet
	log    Log

	mu        sync.Mutex
	warned    recent.Cache[core.Path, time.Time] // when each author was warned last
	delivered recent.Cache[gate.Delivery, judgment]
}

// judgment is what became of a message, and the rule that it broke.
type judgment struct {
	gate.Verdict
	broken *rule
}

// New returns a filter. Its error names what is wrong with the rules.
func New(clock func() time.Time, c Config, log Log) (*Filter, error) {
	rules, err := newRuleSet(&c)
	if err != nil {
		return nil, fmt.Errorf("filter: %w", err)
	}
	return &Filter{
		clock: clock, notify: c.Notify, rules: rules, log: log,
		warned:    recent.NewCache[core.Path, time.Time](maxAuthors),
		delivered: recent.NewCache[gate.Delivery, judgment](maxDelivered),
	}, nil
}

// Judge implements gate.Gate.
func (f *Filter) Judge(m *core.Message, again bool) gate.Verdict {
	if len(f.rules.rules) == 0 {
		return gate.Verdict{}
	}
	var broken *rule
	if m.Author.Rank < core.RankModerator {
		broken = f.rules.judge(m)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	d := gate.DeliveryOf(m)
	before, known := f.delivered.Get(d)
	if again {
		if known && broken != nil && broken != before.broken { // it was edited
			f.verdict(m, broken)
			f.delivered.Put(d, judgment{before.Verdict, broken})
		}
		return gate.Verdict{Admission: broken.admission()}
	}
	if known {
		return before.Verdict
	}
	v := f.verdict(m, broken)
	if m.ID != "" {
		f.delivered.Put(d, judgment{v, broken})
	}
	return v
}

// verdict returns what becomes of a message that breaks a rule. It is logged
// and answered unless that happened lately. The caller holds f.mu.
func (f *Filter) verdict(m *core.Message, broken *rule) gate.Verdict {
	v := gate.Verdict{Admission: broken.admission()}
	author, err := m.Path.Person(m.Author.ID)
	if broken == nil || err != nil || !f.mayWarn(author) {
		return v
	}
	if v.Admission != gate.Admit && gate.CanReply(m) {
		v.Reply = broken.Reply
	}
	if broken.Action == ruleTell {
		f.log.NotifyAbout(m, fmt.Sprintf("it breaks the rule %q.", broken.Name), f.notify...)
	}
	f.log.LogAuthor(m, "rule", broken.Name, time.Time{})
	return v
}

// mayWarn reports whether an author was not warned lately, and notes that they are now.
func (f *Filter) mayWarn(author core.Path) bool {
	now := f.clock()
	last, ok := f.warned.Get(author)
	since := now.Sub(last)
	if ok && since >= 0 && since < warnEvery {
		return false
	}
	f.warned.Put(author, now)
	return true
}

// Forget removes what is remembered about a user.
func (f *Filter) Forget(user core.Path) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.warned.Delete(user)
}
