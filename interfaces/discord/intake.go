package discord

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/driver"
	"synthbot/core/loop"
	"synthbot/interfaces/discord/gateway"
)

// Limits of the intake.
const (
	maxBatch  = 128  // events in one commit
	maxHeld   = 1000 // events that wait for one channel
	maxAtOnce = 4    // channels that are fetched at the same time
)

// intake converts events of the gateway into events of core, in order, and passes them to the inbox. It runs
// in one goroutine, except for fetching.
type intake struct {
	d    *Driver
	in   driver.Receiver
	jobs sync.WaitGroup
	slot chan struct{}
	done chan *backlog // those that were fetched

	backlogs map[string]*backlog     // of channels whose events wait, by channel
	since    map[int]time.Time       // by shard: until when the previous session received everything
	unseen   int                     // how many unknown channels may still be fetched in this session
	session  *members                // those that were fetched in this session
	listed   map[int]map[string]bool // by shard: the guilds that READY named
	awaited  map[string]time.Time    // those that have not arrived, with channels to fetch: when READY came

	batch []core.Event
	after []func()                // called once the batch is durable
	kept  int                     // how many events of the batch the last commit kept; 0: none
	taken map[int]gateway.Session // by shard: as of the latest event that was handled
}

// backlog is the events of a channel that wait until the channel is known and its missed messages are fetched.
type backlog struct {
	channel string
	guild   string
	events  []gatewayEvent
	from    string // the message after which missed ones begin; "": none are fetched, unless the channel has a cursor
	started bool   // startFetch was called
	gap     bool   // events are missing after the first intact ones
	intact  int    // how many events come before the gap

	// Set by the goroutine that fetches.
	place  place
	missed []message
	failed time.Time // when it failed; zero if nothing more is to be fetched
}

func newIntake(d *Driver, in core.Inbox) *intake {
	t := &intake{
		d: d, session: newMembers(), slot: make(chan struct{}, maxAtOnce), done: make(chan *backlog),
		backlogs: make(map[string]*backlog), since: make(map[int]time.Time),
		listed: make(map[int]map[string]bool), awaited: make(map[string]time.Time),
		taken: make(map[int]gateway.Session),
	}
	t.in = driver.Receiver{Inbox: in, Skip: t.skip}
	return t
}

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
		case b := <-t.done:
			t.finish(ctx, b)
		case <-flush.C:
			t.startOverdue(ctx)
			t.d.feed.store(ctx, false)
		}
		done := t.commit(ctx)
		t.d.feed.behind = !done || len(t.backlogs) > 0 || len(t.batch) > 0 || len(t.awaited) > 0
		if !done {
			return nil
		}
		if t.d.feed.behind {
			continue // the events of the sessions are not all on disk
		}
		if err := t.d.feed.progress.SetSessions(ctx, t.taken); err != nil && ctx.Err() == nil {
			t.d.log.Error("gateway sessions not stored", "err", err)
		}
		clear(t.taken)
	}
}

// startOverdue fetches channels whose guild was announced but has not arrived in time, and those whose last fetch
// failed a while ago.
func (t *intake) startOverdue(ctx context.Context) {
	maps.DeleteFunc(t.awaited, func(_ string, since time.Time) bool { return time.Since(since) >= t.d.timings.guilds })
	for _, b := range t.backlogs {
		if _, ok := t.awaited[b.guild]; !ok {
			t.startFetch(ctx, b)
		}
	}
	for id, guild := range t.d.cursors.failedBefore(time.Now().Add(-refetchAfter)) {
		if t.backlogs[id] == nil {
			t.startFetch(ctx, &backlog{channel: id, guild: guild})
		}
	}
}

// events handles an event and those that wait behind it, up to a full batch.
func (t *intake) events(ctx context.Context, f gatewayEvent) {
	for n := 1; ; n++ {
		t.d.feed.room.Release(f.size())
		t.event(ctx, f)
		if f.Session.ID != "" {
			t.taken[f.Shard] = f.Session
		}
		if n == maxBatch || len(t.d.feed.waiting) == 0 {
			return
		}
		f = <-t.d.feed.waiting
	}
}

// commit passes the batch to the inbox, and retries until it is durable. If only some places are damaged, others need
// not wait: then it keeps the batch for the next commit. It returns false if ctx ends first.
func (t *intake) commit(ctx context.Context) bool {
	t.d.feed.storeCursors(ctx, true) // a new channel is stored before its first message
	for wait := t.d.timings.retry; ; wait = min(2*wait, 10*time.Second) {
		err := t.in.Receive(ctx, slices.Collect(slices.Chunk(t.batch, 1)))
		if err == nil {
			break
		}
		t.d.feed.health.Fails(intakeSource, time.Now(), errors.New("events cannot be stored"))
		if ctx.Err() != nil {
			return false
		}
		keep := errors.Is(err, core.ErrDamaged) && len(t.batch) < maxBatch
		if !keep || t.kept != len(t.batch) {
			t.d.log.Error("events not stored, retrying", "err", err, "count", len(t.batch))
		}
		t.kept = len(t.batch)
		if keep || !loop.Sleep(ctx, wait) {
			return keep
		}
	}
	t.d.feed.health.Works(intakeSource)
	for _, f := range t.after {
		f()
	}
	t.batch, t.after, t.kept = nil, nil, 0
	return true
}

func (t *intake) skip(e *core.Event, err error) {
	t.d.log.Error("event skipped: it cannot be stored", "path", e.Message.Path, "id", e.Message.ID, "err", err)
}

// event handles one event. Changes of a guild are handled at once, events of a channel only when the channel
// is known and its missed messages are fetched.
func (t *intake) event(ctx context.Context, f gatewayEvent) {
	defer t.skipPanic(f.Type, f.call)
	if t.takeGuildEvent(ctx, f) {
		return
	}
	head := decode[struct {
		Channel string   `json:"channel_id"`
		Guild   string   `json:"guild_id"`
		Kind    *int     `json:"channel_type"`
		Inner   *channel `json:"channel"` // of an interaction
	}](f.Data)
	if head.Channel == "" || f.Type != "INTERACTION_CREATE" && !strings.HasPrefix(f.Type, "MESSAGE_") {
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
	b := t.backlogs[head.Channel]
	if b != nil {
		t.hold(ctx, b, f)
		return
	}
	p, known := t.d.placeOf(head.Channel)
	if !known && head.Kind != nil && *head.Kind >= 0 && *head.Kind <= 255 {
		p = place{Guild: head.Guild, Kind: uint8(*head.Kind)}
		known = !p.thread() // the parent of a thread must be looked up
	}
	if !known {
		t.hold(ctx, &backlog{channel: head.Channel, guild: head.Guild}, f)
		return
	}
	t.takeEvent(f, p)
}

// skipPanic is deferred while an event is converted. A panic then does not end the process; the event is skipped.
func (t *intake) skipPanic(kind string, call *arrival) {
	p := recover()
	if p != nil {
		t.d.log.Error("event skipped: its conversion panicked", "kind", kind, "panic", fmt.Sprint(p))
		call.decide(true)
	}
}

// hold adds an event to the backlog of its channel.
func (t *intake) hold(ctx context.Context, b *backlog, f gatewayEvent) {
	if len(b.events) < maxHeld {
		b.events = append(b.events, f)
	} else if !b.gap {
		b.gap, b.intact = true, maxHeld // messages are fetched again; other events are lost
	}
	t.startFetch(ctx, b)
}

// takeEvent converts an event of a known channel into events of core, and adds them to the batch.
func (t *intake) takeEvent(f gatewayEvent, p place) {
	defer t.skipPanic(f.Type, f.call)
	switch f.Type {
	case "MESSAGE_CREATE":
		m := decode[message](f.Data)
		t.takeMessage(&m, p)
	case "MESSAGE_UPDATE":
		m := decode[message](f.Data)
		if m.Edited.IsZero() || m.Author == nil {
			return // Discord added a preview, which is not an edit
		}
		if out, ok := t.d.cache.toCore(&m, p); ok {
			out.Ahead = t.d.rest.ClockAhead()
			t.batch = append(t.batch, core.Event{Kind: core.KindEdit, Message: out})
		}
	case "MESSAGE_DELETE", "MESSAGE_DELETE_BULK":
		gone := decode[deletion](f.Data)
		for _, id := range append(gone.IDs, gone.ID) {
			m, known := t.eventMessage(gone.Channel, p, "deleted-"+id)
			if known && id != "" {
				t.batch = append(t.batch, core.Event{Kind: core.KindDeletion, Target: id, Message: m})
			}
		}
	case "MESSAGE_REACTION_ADD", "MESSAGE_REACTION_REMOVE", "MESSAGE_REACTION_REMOVE_ALL",
		"MESSAGE_REACTION_REMOVE_EMOJI":
		t.takeReaction(f, p)
	case "INTERACTION_CREATE":
		t.takeInteraction(f, p)
	}
}

// takeMessage is takeEvent for a new or missed message.
func (t *intake) takeMessage(m *message, p place) {
	defer t.skipPanic("MESSAGE_CREATE", nil)
	id, channel, at := m.ID, m.Channel, t.d.opt.Clock()
	self, _ := t.d.cache.bot()
	own := m.Author != nil && m.Author.ID == self.ID
	out, ok := t.d.cache.toCore(m, p)
	out.Ahead = t.d.rest.ClockAhead()
	if ok && p.Guild == "" {
		// A user who writes accepts direct messages again. Channels of guilds have other events for that.
		t.d.closed.clearWhere(func(id string) bool { return id == channel })
	}
	if ok {
		t.d.cursors.expect(channel, p, id, at)
		t.batch = append(t.batch, core.Event{Kind: core.KindMessage, Message: out})
	}
	awake := own || ok && out.Addressed != ""
	t.after = append(t.after, func() { t.d.cursors.recordStored(channel, p, id, at, awake) })
}

// eventMessage returns the core.Message of an event that concerns another message, such as a deletion. ok is false
// if the channel has no valid path.
func (t *intake) eventMessage(channel string, p place, id string) (core.Message, bool) {
	path, scopes, err := t.d.cache.path(channel, p)
	return core.Message{Path: path, ID: id, Time: t.d.opt.Clock(), Private: p.private(), Scopes: scopes}, err == nil
}

// takeReaction handles added and removed reactions, including those that a moderator removed from a message.
func (t *intake) takeReaction(f gatewayEvent, p place) {
	r := decode[reaction](f.Data)
	m, known := t.eventMessage(r.Channel, p, "reaction-"+r.Message)
	self, _ := t.d.cache.bot()
	if !known || r.Message == "" || r.User == self.ID && self.ID != "" {
		return
	}
	e := core.Event{Kind: core.KindReaction, Target: r.Message, Data: line(r.Emoji.text(), 100)}
	switch f.Type {
	case "MESSAGE_REACTION_ADD", "MESSAGE_REACTION_REMOVE":
		if r.User == "" {
			return // without an author, it would count even if they are blocked
		}
		who := user{ID: r.User}
		if r.Member != nil && r.Member.User != nil {
			who = *r.Member.User
		}
		m.ID += "-" + r.User
		m.Author = t.d.cache.author(&who, r.Member, p)
	}
	if f.Type != "MESSAGE_REACTION_ADD" {
		e.Data = core.TakenAway + e.Data
	}
	e.Message = m
	t.batch = append(t.batch, e)
}
