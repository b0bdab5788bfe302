// Package limits limits how often the bot may be asked, and stops repeats, floods and walls of text.
//
// Only messages that speak to the bot count, and those in the places of Config.CountAll.
// Presses of buttons have counts of their own, in private and in groups. The bot's own
// events, such as reminders, do not count. Guards do not apply to moderators.
//
// A message beyond a limit is stored and not answered; in an extreme flood it is not even stored. Its author is warned
// once in each period of a limit, and by guards every ten minutes. Presses get no reply; their limit is only logged.
//
// Counts are in memory, in tables of a fixed size. Reached limits are in the log, from
// which the next process restores them.
package limits

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/gate"
	"synthbot/core/recent"
	"synthbot/core/txt"
)

// Config is a part of the table [plugins.moderation].
type Config struct {
	Private Rate `toml:"private" default:"60/1h" doc:"How many messages of one user are answered in private, such as 60/1h; off: no limit. Admins have no limits."`
	Group   Rate `toml:"group" default:"30/1h" doc:"How many messages of one user are answered in all groups together."`
	Place   Rate `toml:"place" default:"300/1h" doc:"How many messages of all users together are answered in one group place."`
	// CountAll lists where the bot also answers messages that are not for it, which a Gate cannot know.
	CountAll []core.Path `toml:"count_all" kind:"place" example:"discord/81384788765712384/2" doc:"Group places, with all places below them, where every message counts towards the limits, not only those that address the bot. List places with activation always."`

	Repeat int  `toml:"repeat" default:"4" min:"0" max:"1000" doc:"From this number on, identical messages in a row are not answered; 0: no limit."`
	Flood  Rate `toml:"flood" default:"10/10s" doc:"How fast one user may write to the bot. Beyond five times as much, messages are not even stored."`
	Wall   int  `toml:"wall" default:"16000" min:"0" max:"1048576" doc:"How many characters one user may send to the bot within ten seconds; 0: no limit."`
}

// Log is the moderation log, which survives restarts.
type Log interface {
	// LogAuthor logs an event about the author of a message. It does not block.
	LogAuthor(m *core.Message, what, detail string, until time.Time)
	// LogPlace logs an event about a place. It does not block.
	LogPlace(place core.Path, what string, until time.Time)
	// ReachedLimits calls use for each reached limit in the log that is still in force. about is
	// the user, or the place if detail is empty.
	ReachedLimits(use func(about core.Path, detail string, until time.Time))
}

// limited is the event of a reached limit in the log.
const limited = "limited"

const (
	maxUsers     = 32_768
	maxPlaces    = 8_192
	maxDelivered = 1000
)

// Limiter counts messages. It is safe for concurrent use.
type Limiter struct {
	clock  func() time.Time
	used   func(by core.Path, kind string) // announces a count to other processes; nil: there are none
	config Config
	log    Log
	seed   maphash.Seed // of activity.last

	mu        sync.Mutex
	resumed   bool
	users     recent.Cache[core.Path, *activity]
	places    recent.Cache[core.Path, *window]
	delivered recent.Cache[gate.Delivery, gate.Verdict]
}

// activity contains the counts of a user.
type activity struct {
	asked   [kinds]window
	pace    window // of messages, for Config.Flood
	wall    window // of characters
	last    uint64 // hash of the latest text
	lastAt  time.Time
	repeats int
	warned  time.Time // by a guard
}

// Kinds of questions, each of which has a window.
const (
	inPrivate = iota
	inGroups
	pressPrivate
	pressGroups
	kinds
)

// kindNames contains the names of the kinds, for the log and other processes.
var kindNames = [kinds]string{"private", "groups", "private buttons", "group buttons"}

func New(clock func() time.Time, c Config, log Log) *Limiter {
	return &Limiter{
		clock: clock, config: c, log: log, seed: maphash.MakeSeed(),
		users:     recent.NewCache[core.Path, *activity](maxUsers),
		places:    recent.NewCache[core.Path, *window](maxPlaces),
		delivered: recent.NewCache[gate.Delivery, gate.Verdict](maxDelivered),
	}
}

// Judge implements gate.Gate. A message that is judged again counts nothing.
func (l *Limiter) Judge(m *core.Message, again bool) gate.Verdict {
	speaks := m.Addressed != "" || !m.Private && slices.ContainsFunc(l.config.CountAll, m.In)
	author, err := m.Path.Person(m.Author.ID)
	if again || !speaks || err != nil {
		return gate.Verdict{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resume()
	d := gate.DeliveryOf(m)
	v, known := l.delivered.Get(d)
	if known {
		return v
	}
	v = l.count(m, author)
	if m.ID != "" {
		l.delivered.Put(d, v)
	}
	return v
}

// resume restores the limits that were reached before the process started.
func (l *Limiter) resume() {
	if l.resumed {
		return
	}
	l.resumed = true
	l.log.ReachedLimits(func(about core.Path, detail string, until time.Time) {
		if detail == "" {
			l.place(about).fill(l.config.Place, until)
			return
		}
		kind := slices.Index(kindNames[:], detail)
		if kind >= 0 {
			l.user(about).asked[kind].fill(l.rate(kind), until)
		}
	})
}

func (l *Limiter) user(user core.Path) *activity {
	return l.users.Ensure(user, func() *activity { return new(activity) })
}

func (l *Limiter) place(place core.Path) *window {
	return l.places.Ensure(place, func() *window { return new(window) })
}

func (l *Limiter) rate(kind int) Rate {
	if kind == inPrivate || kind == pressPrivate {
		return l.config.Private
	}
	return l.config.Group
}

func (l *Limiter) count(m *core.Message, author core.Path) gate.Verdict {
	now, a := l.clock(), l.user(author)
	if m.Author.Rank < core.RankModerator {
		v := l.guard(a, m, now)
		if v.Admission != gate.Admit {
			return v
		}
	}
	kind := inGroups
	if m.Private {
		kind = inPrivate
	}
	if isPress(m) {
		kind += pressPrivate
	}
	own, rate := &a.asked[kind], l.rate(kind)
	if own.full(rate, now) {
		log := func(until time.Time) { l.log.LogAuthor(m, limited, kindNames[kind], until) }
		return refuse(own, rate, m, now, "You have asked me", log)
	}
	if !m.Private {
		place := l.place(m.Path)
		full := place.full(l.config.Place, now)
		if full && isPress(m) { // the next message reports the limit
			return gate.Verdict{Admission: gate.Quiet}
		}
		if full {
			log := func(until time.Time) { l.log.LogPlace(m.Path, limited, until) }
			return refuse(place, l.config.Place, m, now, "I was asked here", log)
		}
		place.count++
	}
	own.count++
	if l.used != nil {
		l.used(author, kindNames[kind])
	}
	return gate.Verdict{}
}

// Announce implements gate.Counter.
func (l *Limiter) Announce(f func(by core.Path, what string)) { l.used = f }

// Used implements gate.Counter. what is one of kindNames.
func (l *Limiter) Used(by core.Path, what string) {
	kind := slices.Index(kindNames[:], what)
	if kind < 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now, a := l.clock(), l.user(by)
	a.pace.restart(l.config.Flood.Per, now)
	a.pace.count++
	a.asked[kind].restart(l.rate(kind).Per, now)
	a.asked[kind].count++
}

// refuse returns the verdict if a window is full. It logs the first message that can be
// answered, or the first press; the reply to the message says when the window ends.
func refuse(w *window, r Rate, m *core.Message, now time.Time, who string, log func(until time.Time)) gate.Verdict {
	v := gate.Verdict{Admission: gate.Quiet}
	if w.reported || !gate.CanReply(m) && !isPress(m) {
		return v
	}
	w.reported = true
	until := w.end(r)
	log(until)
	if gate.CanReply(m) {
		v.Limited = true
		v.Reply = fmt.Sprintf("%s %s; I answer again at %s.", who, r.words(), txt.Moment(until, now))
	}
	return v
}

func isPress(m *core.Message) bool {
	return m.Text == "" && len(m.Attachments) == 0 && len(m.Foreign) == 0
}

// Forget removes all that is remembered about a user.
func (l *Limiter) Forget(user core.Path) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.users.Delete(user)
}

// Events of guards in the log.
const (
	repeating = "repeating"
	flooding  = "flooding"
	walling   = "walling"
)

const (
	repeatWithin = 10 * time.Minute // between two equal texts that count as repeated
	wallWithin   = 10 * time.Second
	warnEvery    = 10 * time.Minute
	grossFlood   = 5    // times the limit, from which on messages are not stored
	maxHashed    = 4096 // bytes of a text that are compared
)

// guard detects floods, repeats and walls of text. All three are always counted.
func (l *Limiter) guard(a *activity, m *core.Message, now time.Time) (v gate.Verdict) {
	flood := l.config.Flood
	a.pace.restart(flood.Per, now)
	a.pace.count++
	repeats := l.repeats(a, m, now)
	// Platforms split a long text into several messages, so characters are counted over time.
	a.wall.restart(wallWithin, now)
	a.wall.count += utf8.RuneCountInString(m.AllText())
	what, reply := "", ""
	switch {
	case flood.Count > 0 && a.pace.count > flood.Count:
		what = flooding
		reply = fmt.Sprintf("That is too fast for me: more than %d messages within %s."+
			" I do not answer further ones.", flood.Count, txt.SpanWords(flood.Per))
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

// repeats counts how often the same text came in a row, and returns whether that is too often.
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
