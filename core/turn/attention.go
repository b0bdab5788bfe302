package turn

import (
	"sync"
	"time"

	"synthbot/core"
)

// Bounds of what is listened to.
const (
	botRounds   = 3         // messages of bots in a row that are answered
	maxPlaces   = 4096      // places that are listened to at the same time
	silentAfter = time.Hour // a place that was silent for so long is forgotten
)

// ears remember, while the process lives, how talk goes on in places where
// nobody speaks to the bot. Safe for concurrent use.
type attention struct {
	mu     sync.Mutex
	places map[core.Path]*placeAttention
}

// ear is one place's.
type placeAttention struct {
	last     time.Time // something was said
	since    int       // messages that were only overheard, since the bot was last asked
	asked    time.Time // when that was, or when listening began
	answered time.Time // when the bot last spoke
	to       string    // the id of the person whom it answered
	bots     int       // messages of bots in a row that were answered
}

// at returns the place's ear. mu is held.
func (a *attention) at(place core.Path, now time.Time) *placeAttention {
	if e, ok := a.places[place]; ok {
		return e
	}
	if a.places == nil {
		a.places = make(map[core.Path]*placeAttention)
	}
	if len(a.places) >= maxPlaces {
		a.prune(now)
	}
	e := &placeAttention{asked: now, last: now}
	a.places[place] = e
	return e
}

// prune forgets who was silent for long; if nobody was, all of them.
func (a *attention) prune(now time.Time) {
	for place, e := range a.places {
		if now.Sub(e.last) > silentAfter {
			delete(a.places, place)
		}
	}
	if len(a.places) >= maxPlaces {
		clear(a.places)
	}
}

// chance reports whether the bot may say something to a message that was not
// meant for it: it has just answered this person, or listens and was not asked
// for a while.
func (e *placeAttention) chance(m *core.Message, here *Settings, now time.Time) bool {
	if here.Attention > 0 && e.to == m.Author.ID && e.to != "" && now.Sub(e.answered) <= here.Attention {
		return here.Activation != Never
	}
	if here.Activation != Ambient {
		return false
	}
	if n := here.AmbientMessages; n > 0 && e.since+1 >= n {
		return true
	}
	return here.AmbientEvery > 0 && now.Sub(e.asked) >= here.AmbientEvery
}

// heard notes a person's message.
func (e *placeAttention) heard(wanted bool, now time.Time) {
	e.last, e.bots = now, 0
	if wanted {
		e.since, e.asked = 0, now
	} else {
		e.since++
	}
}

// hearing is how the ears would stand when a batch of events were taken in. Only
// then it is known which of them are new, and they are counted.
type intake struct {
	attention *attention
	limiter   *limiter
	now       time.Time
	places    map[core.Path]*placeAttention
	told      map[core.Path]bool // people who were told of a limit by now
	counts    []count            // of the event that is looked at
}

// count is what an event changes for good.
type count func()

// at returns how the place's ear would stand.
func (h *intake) at(place core.Path) *placeAttention {
	if e, ok := h.places[place]; ok {
		return e
	}
	if h.places == nil {
		h.places = make(map[core.Path]*placeAttention)
	}
	h.attention.mu.Lock()
	defer h.attention.mu.Unlock()
	e := *h.attention.at(place, h.now)
	h.places[place] = &e
	return &e
}

// note counts something, for the time being.
func (h *intake) note(place core.Path, apply func(*placeAttention)) {
	apply(h.at(place))
	h.counts = append(h.counts, func() {
		h.attention.mu.Lock()
		defer h.attention.mu.Unlock()
		apply(h.attention.at(place, h.now))
	})
}

// bot counts a bot's message that speaks to us and reports whether it is
// answered: two bots that answer each other are cut off after a few rounds, until
// a person speaks.
func (h *intake) bot(m *core.Message) bool {
	h.note(m.Path, func(e *placeAttention) { e.bots++ })
	return h.at(m.Path).bots <= botRounds
}

// heard notes a person's message.
func (h *intake) heard(m *core.Message, wanted bool) {
	if !m.Private {
		h.note(m.Path, func(e *placeAttention) { e.heard(wanted, h.now) })
	}
}

// tells reports whether the author may be told of a limit now, for the time being.
func (h *intake) tells(m *core.Message) bool {
	person, err := m.Path.Person(m.Author.ID)
	if err != nil || h.told[person] || !h.limiter.may(person, h.now) {
		return false
	}
	if h.told == nil {
		h.told = make(map[core.Path]bool)
	}
	h.told[person] = true
	h.counts = append(h.counts, func() { h.limiter.tells([]core.Path{person}, h.now) })
	return true
}

// take returns what the event that was looked at counts, and is ready for the next.
func (h *intake) take() (counts []count) {
	counts, h.counts = h.counts, nil
	return counts
}

// keep counts for good.
func keep(counts []count) {
	for _, c := range counts {
		c()
	}
}

// spoke notes that the bot answered a person, or, with "", several or none.
func (a *attention) spoke(place core.Path, person string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.at(place, now)
	e.answered, e.to = now, person
}
