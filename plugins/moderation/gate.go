package moderation

import (
	"context"
	"fmt"
	"strings"
	"time"

	"synthbot/core"
)

// pauseWords is how long nobody is told the same thing again by a guard or a rule.
const pauseWords = 10 * time.Minute

// doorsDaily is how often a day who is blocked may use the commands that are left
// to him.
const doorsDaily = 5

const chiefKey = "moderator "

// limitNames are what the limits of people are called in the log.
var limitNames = [windowKinds]string{"private", "groups", "private buttons", "group buttons"}

// limit is the one that counts for that kind.
func (p *Plugin) limit(kind int) Limit {
	if kind == inPrivate || kind == buttonsInPrivate {
		return p.config.Private
	}
	return p.config.Group
}

// Judge implements core.Gate.
func (p *Plugin) Judge(m *core.Message, again bool) core.Verdict {
	now := p.host.Clock()
	w := author(m)
	if v, settled := p.shut(w, m, now, again); settled {
		return v
	}
	var broken *rule
	if m.Author.Rank < core.Moderator {
		broken = p.policy.judge(m)
	}
	if again && broken == nil {
		return core.Verdict{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if again {
		p.caught(w, m, broken, now)
		return core.Verdict{Admission: broken.admission()}
	}
	if m.ID == "" || len(m.ID) > maxID {
		return p.count(w, m, broken, now)
	}
	d := delivery{m.Path, m.ID}
	if j := p.judged.find(d); j != nil {
		return j.Verdict
	}
	v := p.count(w, m, broken, now)
	p.judged.keep(d, &judgment{v, broken})
	return v
}

// caught notes that a message breaks a rule that it did not break when it came: it
// was edited since. p.mu is held.
func (p *Plugin) caught(w who, m *core.Message, broken *rule, now time.Time) {
	if j := p.judged.find(delivery{m.Path, m.ID}); j != nil && j.broken != broken {
		j.broken = broken
		p.scold(w, m, broken, now)
	}
}

// judgment is what was said of a message, and which rule it broke.
type judgment struct {
	core.Verdict
	broken *rule
}

// delivery is a message that a platform may deliver again: then the same is said
// of it, and it is counted once.
type delivery struct {
	place core.Path
	id    string
}

// What is remembered of deliveries.
const (
	maxJudged = 1000
	maxID     = 200 // bytes
)

// count judges a message that was not seen before. p.mu is held.
func (p *Plugin) count(w who, m *core.Message, broken *rule, now time.Time) core.Verdict {
	if broken != nil {
		if v := p.scold(w, m, broken, now); v.Admission != core.Admit {
			return v
		}
	}
	if !p.counts(m) {
		return core.Verdict{}
	}
	a := p.active(w)
	if m.Author.Rank < core.Moderator {
		if v := p.guard(a, w, m, now); v.Admission != core.Admit {
			return v
		}
	}
	return p.ration(a, w, m, now)
}

// shut looks at who is blocked and muted, and where. settled is false where the
// message goes on.
func (p *Plugin) shut(w who, m *core.Message, now time.Time, again bool) (v core.Verdict, settled bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.open(context.Background()); err != nil {
		p.host.Log.Error("nobody is answered: it is not known who is blocked", "err", err)
		return core.Verdict{Admission: core.Quiet}, true
	}
	if !again {
		p.rank(w, m)
	}
	var a *activity
	if len(p.holds) > 0 {
		a = p.people.find(w)
		switch h := p.holds.of(p.sum(w, a), m, now); {
		case h == nil:
		case h.kind == muted:
			return core.Verdict{Admission: core.Quiet}, true
		case !m.Private || !isDoor(m.Text):
			return core.Verdict{Admission: core.Discard}, true
		case again || p.active(w).doors.take(Limit{doorsDaily, day}, now):
			return core.Verdict{Admission: core.Quiet}, true
		default:
			return core.Verdict{Admission: core.Discard}, true
		}
	}
	if p.quiet(m, now) {
		return core.Verdict{Admission: core.Quiet}, true
	}
	return v, false
}

// sum is somebody's digest; of who is active it is made once. p.mu is held.
func (p *Plugin) sum(w who, a *activity) digest {
	switch {
	case a == nil:
		return p.seal.of(w)
	case !a.summed:
		a.sum, a.summed = p.seal.of(w), true
	}
	return a.sum
}

// quiet reports whether the bot is quiet where the message was written. Moderators
// who speak to it are answered all the same: how else could they talk it back.
// p.mu is held.
func (p *Plugin) quiet(m *core.Message, now time.Time) bool {
	if len(p.mutes) == 0 || m.Author.Rank >= core.Moderator && m.Addressed != core.NotAddressed {
		return false
	}
	_, ok := p.mutedAt(m.Path, now)
	return ok
}

// mutedAt returns the place, or the one above, that is muted. p.mu is held.
func (p *Plugin) mutedAt(place core.Path, now time.Time) (core.Path, bool) {
	for ; !place.IsZero(); place = place.Parent() {
		if until, ok := p.mutes[place]; ok && stands(until, now) {
			return place, true
		}
	}
	return core.Path{}, false
}

// rank notes who is a moderator of a group, as the platform and the configuration
// say. p.mu is held.
func (p *Plugin) rank(w who, m *core.Message) {
	is := m.Author.Rank >= core.Moderator
	if m.Private || !is && len(p.chiefs) == 0 {
		return
	}
	c := chief{w, root(m.Path)}
	if is == p.chiefs[c] || is && len(p.chiefs) >= maxChiefs {
		return
	}
	item := core.Item{Path: w.person(), Key: chiefKey + c.group.String(), Version: core.AnyVersion}
	if item.Path.IsZero() {
		return
	}
	if c.who = w.own(); is {
		p.chiefs[c] = true
		item.Value = encode(map[string]time.Time{"at": p.host.Clock()})
	} else {
		delete(p.chiefs, c)
	}
	p.later(item)
}

// isDoor reports whether the text calls a command that is left to who is blocked:
// to appeal, and to see and erase what is kept of him.
func isDoor(text string) bool {
	switch commandIn(text) {
	case "appeal", "mydata", "forgetme":
		return true
	}
	return false
}

// commandIn is the name of the command that a text calls, if it may be one.
func commandIn(text string) string {
	name, ok := strings.CutPrefix(text, "/")
	if !ok {
		return ""
	}
	if i := strings.IndexFunc(name, func(r rune) bool { return r == '@' || r == ' ' || r == '\n' || r == '\t' }); i >= 0 {
		name = name[:i]
	}
	return strings.ToLower(name)
}

// counts reports whether the message is one that the bot answers, as far as a Gate
// can know.
func (p *Plugin) counts(m *core.Message) bool {
	return m.Addressed != core.NotAddressed || !m.Private && lies(m, p.config.CountAll)
}

// tellable reports whether an answer may stand in the place of what the message
// would have caused: a command is carried out, and a button pressed, in silence.
func tellable(m *core.Message) bool { return m.AllText() != "" && commandIn(m.Text) == "" }

// admission is what becomes of a message that breaks the rule.
func (r *rule) admission() core.Admission {
	switch {
	case r == nil || r.Action == ruleTell:
		return core.Admit
	case r.Action == ruleDiscard:
		return core.Discard
	}
	return core.Quiet
}

// scold is the verdict on a message that breaks a rule. p.mu is held.
func (p *Plugin) scold(w who, m *core.Message, r *rule, now time.Time) core.Verdict {
	v := core.Verdict{Admission: r.admission()}
	if !since(&p.active(w).scolded, now, pauseWords) {
		return v
	}
	if tellable(m) && v.Admission != core.Admit {
		v.Reply = r.Reply
	}
	if r.Action == ruleTell {
		p.tell(fmt.Sprintf("%s (%s) in %s: it breaks the rule %q.", called(m.Author.Name), w.person(), m.Path, r.Name), p.config.Tell...)
	}
	p.happened(w, m, event{What: brokeRule, Detail: r.Name})
	return v
}

// happened logs what a message did. p.mu is held.
func (p *Plugin) happened(w who, m *core.Message, e event) {
	if e.about.IsZero() {
		e.about = w.person()
		e.Name = called(m.Author.Name)
	}
	if e.Place = m.Path; !m.Private {
		e.Place = root(m.Path)
	}
	if !e.about.IsZero() {
		p.note(e)
	}
}

// ration holds a message that is to be answered against the limits. p.mu is held.
func (p *Plugin) ration(a *activity, w who, m *core.Message, now time.Time) core.Verdict {
	kind := inGroups
	if m.Private {
		kind = inPrivate
	}
	if m.Text == "" && len(m.Attachments) == 0 && len(m.Foreign) == 0 {
		kind += buttonsInPrivate
	}
	limit := p.limit(kind)
	if his := &a.asked[kind]; his.full(limit, now) {
		return p.refuse(his, limit, w, m, event{What: wasLimited, Detail: limitNames[kind]}, now)
	}
	if !m.Private && p.config.Place.Count > 0 {
		all := p.places.find(m.Path)
		if all == nil {
			all = new(window)
			p.places.keep(m.Path, all)
		}
		if !all.take(p.config.Place, now) {
			return p.refuse(all, p.config.Place, w, m, event{What: wasLimited, about: m.Path}, now)
		}
	}
	a.asked[kind].take(limit, now)
	return core.Verdict{}
}

// refuse is the verdict if a window is full. The author is told once when it ends; a
// press has no text to answer to, and is only logged. p.mu is held.
func (p *Plugin) refuse(full *window, l Limit, w who, m *core.Message, e event, now time.Time) core.Verdict {
	v := core.Verdict{Admission: core.Quiet}
	silent := !tellable(m)
	if silent && e.Detail != limitNames[buttonsInPrivate] && e.Detail != limitNames[buttonsInGroups] || !full.tell() {
		return v
	}
	e.Until = full.ends(l)
	if silent {
		p.happened(w, m, e)
		return v
	}
	who := "You have asked me"
	if !e.about.IsZero() {
		who = "I was asked here"
	}
	v.Limited = true
	v.Reply = fmt.Sprintf("%s %s %s; I answer again at %s.", who, times(l.Count), within(l.Per), moment(e.Until, now))
	p.happened(w, m, e)
	return v
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
