package discord

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/driver"
	"synthbot/core/recent"
	"synthbot/interfaces/discord/gateway"
)

// Limits of what is taken in.
const (
	maxBatch  = 128  // events in one commit
	maxHeld   = 1000 // events that wait for their channel
	maxAtOnce = 4    // channels that are looked up or fetched at once
)

// intake turns events of the gateway into those of core, in order, and hands them in. All
// of it except fetching runs in one goroutine.
type intake struct {
	d    *Driver
	in   core.Inbox
	jobs sync.WaitGroup
	slot chan struct{}
	done chan found

	holds  map[string]*hold        // channels whose events wait
	since  map[int]time.Time       // by shard: until when the previous session received everything
	unseen int                     // unknown channels that may still be fetched in this session
	listed map[int]map[string]bool // by shard: the guilds that READY named

	batch []core.Event
	after []func()                // once the batch is durable
	taken map[int]gateway.Session // by shard: with the latest event that was taken

	mu      sync.Mutex
	members recent.Cache[[2]string, *member] // in this session, by guild and user; nil: has left the guild
	left    int                              // that may still be asked for in this session
}

// hold is a channel whose events wait until it is known, and what was missed
// there is fetched.
type hold struct {
	events []gatewayEvent
	fetch  bool   // its missed messages are wanted
	from   string // with fetch: the channel is unknown, and messages after this one are wanted
	begun  bool
	gap    bool // something is missing after the first events
	sound  int  // how many events come before the gap
	guild  string

	announced time.Time // when the guild was, which has not come yet
}

// found is what was fetched of a channel.
type found struct {
	channel string
	place   place
	missed  []message
}

func newIntake(d *Driver, in core.Inbox) *intake {
	t := &intake{
		d: d, in: in, slot: make(chan struct{}, maxAtOnce), done: make(chan found),
		holds: make(map[string]*hold), since: make(map[int]time.Time),
		listed: make(map[int]map[string]bool), taken: make(map[int]gateway.Session),
	}
	t.refill()
	return t
}

// run takes events in until ctx ends.
func (t *intake) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer t.jobs.Wait()
	defer cancel()
	flush := time.NewTicker(t.d.timings.flush)
	defer flush.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case f := <-t.d.feed.waiting:
			t.events(ctx, f)
		case f := <-t.done:
			t.found(ctx, f)
		case <-flush.C:
			t.beginOverdue(ctx)
			t.d.feed.note(ctx, false)
		}
		if !t.commit(ctx) {
			t.d.feed.progress.Wait(true)
			return nil
		}
		t.d.feed.progress.Wait(len(t.holds) > 0)
		if len(t.holds) == 0 {
			t.noteSessions(ctx)
		}
	}
}

// beginOverdue begins channels whose guild was announced, and did not come.
func (t *intake) beginOverdue(ctx context.Context) {
	for id, h := range t.holds {
		if time.Since(h.announced) >= t.d.timings.guilds {
			t.begin(ctx, id, h)
		}
	}
}

// noteSessions notes the sessions of which all events are on disk.
func (t *intake) noteSessions(ctx context.Context) {
	if err := t.d.feed.progress.Took(ctx, t.taken); err != nil && ctx.Err() == nil {
		t.d.log.Error("sessions are not stored", "err", err)
	}
	clear(t.taken)
}

// events takes events in, as many as wait and fit into a batch.
func (t *intake) events(ctx context.Context, f gatewayEvent) {
	for n := 1; ; n++ {
		t.d.feed.room.Release(f.size())
		t.event(ctx, f)
		if f.session.ID != "" {
			t.taken[f.shard] = f.session
		}
		if n == maxBatch || len(t.d.feed.waiting) == 0 {
			return
		}
		f = <-t.d.feed.waiting
	}
}

// commit hands the batch in, again and again until it is durable.
func (t *intake) commit(ctx context.Context) bool {
	if t.d.cursors.fresh() {
		// An unknown channel is stored before its first message.
		t.d.feed.noteCursors(ctx)
	}
	if len(t.batch) > 0 && !t.receive(ctx, t.batch) {
		return false
	}
	for _, f := range t.after {
		f()
	}
	t.batch, t.after = nil, nil
	return true
}

// receive hands events in, again and again until they are durable. It returns false if ctx
// ended. Events that can never be taken in are left out.
func (t *intake) receive(ctx context.Context, events []core.Event) bool {
	for wait := t.d.timings.retry; ; wait = min(2*wait, 10*time.Second) {
		err := t.in.Receive(ctx, events...)
		if err == nil || errors.Is(err, core.ErrBadEvent) {
			t.d.feed.health.Works(intakeSource)
		} else {
			t.d.feed.health.Fails(intakeSource, time.Now(), errors.New("events are not taken in"))
		}
		switch {
		case err == nil:
			return true
		case ctx.Err() != nil:
			return false
		case errors.Is(err, core.ErrBadEvent) && len(events) == 1:
			t.d.log.Error("event left out: it cannot be taken in", "err", err)
			return true
		case errors.Is(err, core.ErrBadEvent):
			for i := range events {
				if !t.receive(ctx, events[i:i+1]) {
					return false
				}
			}
			return true
		}
		t.d.log.Error("events not taken in", "err", err, "count", len(events))
		if !driver.Sleep(ctx, wait) {
			return false
		}
	}
}

// event takes one event in: a change of a guild at once, what happens in a channel when
// the channel is known and nothing is missing there.
func (t *intake) event(ctx context.Context, f gatewayEvent) {
	defer func() {
		// An event that cannot be read must not end the process.
		p := recover()
		if p != nil {
			t.d.log.Error("event not read", "kind", f.kind, "panic", fmt.Sprint(p))
		}
	}()
	if t.ofGuild(ctx, f) {
		return
	}
	head, ok := decode[struct {
		Channel string   `json:"channel_id"`
		Guild   string   `json:"guild_id"`
		Kind    *int     `json:"channel_type"`
		Inner   *channel `json:"channel"` // of an interaction
	}](f.data)
	if !ok || head.Channel == "" || f.kind != "INTERACTION_CREATE" && !strings.HasPrefix(f.kind, "MESSAGE_") {
		return
	}
	c := head.Inner
	if c != nil {
		head.Kind = &c.Type
		_, known := t.d.cache.place(c.ID)
		if !known && c.ID == head.Channel && head.Guild != "" {
			c.Guild = head.Guild
			t.d.cache.setChannel(*c)
		}
	}
	h := t.holds[head.Channel]
	if h != nil {
		t.wait(ctx, head.Channel, h, f)
		return
	}
	p, known := t.d.placeOf(head.Channel)
	if !known && head.Kind != nil && *head.Kind >= 0 && *head.Kind <= 255 {
		p = place{Guild: head.Guild, Kind: uint8(*head.Kind)}
		known = !p.thread() // which needs its parent
	}
	if !known {
		t.begin(ctx, head.Channel, &hold{guild: head.Guild, events: []gatewayEvent{f}})
		return
	}
	t.take(f, p)
}

// wait puts an event aside until its channel is ready.
func (t *intake) wait(ctx context.Context, channel string, h *hold, f gatewayEvent) {
	if len(h.events) < maxHeld {
		h.events = append(h.events, f)
	} else if !h.gap {
		h.gap, h.sound = true, maxHeld // messages are fetched again; other events are lost
	}
	t.begin(ctx, channel, h)
}

// take turns an event of a known channel into one of core.
func (t *intake) take(f gatewayEvent, p place) {
	switch f.kind {
	case "MESSAGE_CREATE":
		if m, ok := decode[message](f.data); ok {
			t.message(&m, p)
		}
	case "MESSAGE_UPDATE":
		m, ok := decode[message](f.data)
		if !ok || m.Edited.IsZero() || m.Author == nil {
			return // a preview that Discord adds is not an edit
		}
		if out, ok := t.normal(&m, p); ok {
			t.batch = append(t.batch, core.Event{Kind: core.KindEdit, Message: out})
		}
	case "MESSAGE_DELETE", "MESSAGE_DELETE_BULK":
		gone, ok := decode[deletion](f.data)
		for _, id := range append(gone.IDs, gone.ID) {
			m, known := t.about(gone.Channel, p, "deleted-"+id)
			if ok && known && id != "" {
				t.batch = append(t.batch, core.Event{Kind: core.KindDeletion, Target: id, Message: m})
			}
		}
	case "MESSAGE_REACTION_ADD", "MESSAGE_REACTION_REMOVE", "MESSAGE_REACTION_REMOVE_ALL",
		"MESSAGE_REACTION_REMOVE_EMOJI":
		t.react(f, p)
	case "INTERACTION_CREATE":
		t.interact(f, p)
	}
}

func (t *intake) message(m *message, p place) {
	id, channel, at := m.ID, m.Channel, t.d.clock()
	self, _ := t.d.cache.me()
	own := m.Author != nil && m.Author.ID == self.ID
	out, ok := t.normal(m, p)
	if ok && p.Guild == "" {
		// A user who writes accepts direct messages again. Channels of guilds are opened by
		// events of their own.
		t.d.closed.clearWhere(func(id string) bool { return id == channel })
	}
	if ok {
		t.d.cursors.expect(channel, p, id, at)
		t.batch = append(t.batch, core.Event{Kind: core.KindMessage, Message: out})
	}
	awake := own || ok && out.Addressed != ""
	t.after = append(t.after, func() { t.d.cursors.seen(channel, p, id, at, awake) })
}

// normal makes a core.Message of Discord's.
func (t *intake) normal(m *message, p place) (core.Message, bool) {
	out, ok := t.d.cache.normal(m, p)
	out.Ahead = t.d.rest.ClockAhead()
	return out, ok
}

// about is the message of an event that is about another message.
func (t *intake) about(channel string, p place, id string) (core.Message, bool) {
	path, scopes, err := t.d.cache.path(channel, p)
	return core.Message{Path: path, ID: id, Time: t.d.clock(), Private: p.private(), Scopes: scopes}, err == nil
}

// react takes in that a user added or removed a reaction, or that a moderator removed all
// of a message, or one emoji.
func (t *intake) react(f gatewayEvent, p place) {
	r, ok := decode[reaction](f.data)
	m, known := t.about(r.Channel, p, "reaction-"+r.Message)
	self, _ := t.d.cache.me()
	if !ok || !known || r.Message == "" || r.User == self.ID && self.ID != "" {
		return
	}
	e := core.Event{Kind: core.KindReaction, Target: r.Message, Data: line(r.Emoji.text(), 100)}
	switch f.kind {
	case "MESSAGE_REACTION_ADD", "MESSAGE_REACTION_REMOVE":
		if r.User == "" {
			return
		}
		who := user{ID: r.User}
		if r.Member != nil && r.Member.User != nil {
			who = *r.Member.User
		}
		m.ID += "-" + r.User
		m.Author = t.d.cache.author(&who, r.Member, p)
	}
	if f.kind != "MESSAGE_REACTION_ADD" {
		e.Data = core.TakenAway + e.Data
	}
	e.Message = m
	t.batch = append(t.batch, e)
}
