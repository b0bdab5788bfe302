package turn

import (
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/recent"
)

// Bounds of attention.
const (
	botRounds = 3    // messages of bots in a row that are answered
	maxPlaces = 4096 // places in memory
)

// attention holds, in memory only, what decides whether the bot joins in without being addressed.
// Safe for concurrent use.
type attention struct {
	mu     sync.Mutex
	places recent.Cache[core.Path, *placeAttention]
}

// placeAttention is the attention to one place.
type placeAttention struct {
	since    int       // messages that the bot did not answer since the model was last asked
	asked    time.Time // when that was, or when the attention began
	answered time.Time // when the bot last sent a message
	to       string    // the id of the user whom it answered
	left     bool      // the bot left the conversation, until it is addressed
	bots     int       // messages of bots in a row that were answered
	asks     time.Time // until when a question of the bot may wait for its answer
}

// with calls do with the attention to a place, which do may change.
func (a *attention) with(place core.Path, now time.Time, do func(*placeAttention)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	do(a.places.Ensure(place, func() *placeAttention { return &placeAttention{asked: now} }))
}

// move lets the attention to a place follow its move. Both paths share it, because events may be judged by either.
func (a *attention) move(m move) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e, ok := a.places.Get(m.from); ok {
		a.places.Put(m.to, e)
	}
}

// mayAsk reports whether a question of the bot may wait for its answer in a place.
func (a *attention) mayAsk(place core.Path, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	e, ok := a.places.Get(place)
	return ok && now.Before(e.asks)
}

// mayOverhear reports whether the bot may answer a message that does not address it: it has just answered this user, or
// the model was not asked for a while.
func (e *placeAttention) mayOverhear(m *core.Message, here *Settings, now time.Time) bool {
	if here.Attention > 0 && e.to == m.Author.ID && e.to != "" && now.Sub(e.answered) <= here.Attention {
		return here.Activation != ActivationNever
	}
	if here.Activation != ActivationAmbient || e.left {
		return false
	}
	if here.AmbientMessages > 0 && e.since+1 >= here.AmbientMessages {
		return true
	}
	return here.AmbientEvery > 0 && now.Sub(e.asked) >= here.AmbientEvery
}

// heard counts a message of a user. wanted says that it is answered.
func (e *placeAttention) heard(wanted bool, now time.Time) {
	e.bots = 0
	if wanted {
		e.since, e.asked, e.left = 0, now, false
	} else {
		e.since++
	}
}

// intake is a batch of events on its way to the log. Only its commit tells which events are new. Until then,
// attention and limits are changed in copies.
type intake struct {
	inbox
	setup    *setup
	events   []core.Event
	now      time.Time
	batch    core.Batch
	appended []int // the indexes of the events in batch.Append, in this order
	skipped  []int // the indexes of events without a turn

	places  map[core.Path]*placeAttention
	noticed map[core.Path]bool // users who were notified of a limit by now
	event   int                // the index of the event that is being entered
	counts  []count
}

// count is a change to be made after the commit if the event is new.
type count struct {
	event int
	apply func()
}

// at returns the intake's copy of the attention to a place.
func (in *intake) at(place core.Path) *placeAttention {
	if e, ok := in.places[place]; ok {
		return e
	}
	if in.places == nil {
		in.places = make(map[core.Path]*placeAttention)
	}
	e := new(placeAttention)
	in.turns.attention.with(place, in.now, func(now *placeAttention) { *e = *now })
	in.places[place] = e
	return e
}

// note makes a change in the copy, and after the commit for good.
func (in *intake) note(place core.Path, apply func(*placeAttention)) {
	apply(in.at(place))
	in.counts = append(in.counts, count{in.event, func() { in.turns.attention.with(place, in.now, apply) }})
}

// claimNotice reports whether the author may be notified of a limit now. Later events of the batch may not.
func (in *intake) claimNotice(m *core.Message) bool {
	person, err := m.Path.Person(m.Author.ID)
	if err != nil || in.noticed[person] || !in.turns.limiter.mayNotify(person, in.now) {
		return false
	}
	if in.noticed == nil {
		in.noticed = make(map[core.Path]bool)
	}
	in.noticed[person] = true
	in.counts = append(in.counts, count{in.event, func() { in.turns.limiter.claimNotice([]core.Path{person}, in.now) }})
	return true
}
