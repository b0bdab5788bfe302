package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"synthbot/core"
	"synthbot/core/driver"
	"synthbot/interfaces/discord/gateway"
)

// gatewayEvent is one event of the gateway, as it came.
type gatewayEvent struct {
	shard int
	kind  string // for example MESSAGE_CREATE
	data  json.RawMessage
	call  *arrival  // with an interaction
	since time.Time // with READY: until when the previous session received everything

	session gateway.Session // once the event was taken
}

// Limits of what may wait; beyond them the gateway does.
const (
	maxQueued      = 1024    // events
	maxQueuedBytes = 8 << 20 // of events
)

// size is the room that an event takes: one event always fits.
func (e *gatewayEvent) size() int64 { return min(int64(len(e.data)), maxQueuedBytes) }

// feed queues the events of the gateway for the intake, and knows until when all of
// them were received. Safe for concurrent use.
type feed struct {
	*account
	responder *responder
	waiting   chan gatewayEvent // in order
	room      *semaphore.Weighted
	alive     alive
	health    driver.Health // of shards, and of the intake
	shards    int           // of the account; 0: Listen does not know yet
	connected int           // how many of them are connected here
}

func newFeed(a *account, r *responder) *feed {
	return &feed{
		account: a, responder: r, waiting: make(chan gatewayEvent, maxQueued),
		room: semaphore.NewWeighted(maxQueuedBytes), alive: alive{shards: make(map[int]time.Time), sessions: make(map[int]gateway.Session)},
	}
}

// begin is called when it is known how many shards the account has, and which of them are connected.
func (f *feed) begin(shards int, connected []int) {
	f.shards, f.connected = shards, len(connected)
	for _, shard := range connected {
		f.fails(shard, time.Time{})
	}
}

// Event implements gateway.Handler. It waits while the queue is full.
func (f *feed) Event(ctx context.Context, e gateway.Event) bool {
	event := gatewayEvent{shard: e.Shard, kind: e.Type, data: e.Data, session: e.Session}
	switch e.Type {
	case "INTERACTION_CREATE":
		event.call = f.responder.arrive(ctx, e.Data)
	case "READY":
		f.health.Works(e.Shard)
		event.since = f.alive.touch(e.Shard, f.clock())
	case "RESUMED":
		f.health.Works(e.Shard)
	}
	wanted := e.Type != "INTERACTION_CREATE" || event.call != nil
	if wanted && !f.push(ctx, event) {
		if event.call != nil {
			f.responder.arrived.Put(event.call.id, false) // it comes again
		}
		return false
	}
	f.Alive(e.Shard)
	return true
}

// push waits for room. It returns false if ctx ends before.
func (f *feed) push(ctx context.Context, e gatewayEvent) bool {
	if f.room.Acquire(ctx, e.size()) != nil {
		return false
	}
	select {
	case f.waiting <- e:
		return true
	case <-ctx.Done():
		f.room.Release(e.size())
		return false
	}
}

// Alive implements gateway.Handler.
func (f *feed) Alive(shard int) { f.alive.touch(shard, f.clock()) }

// Disconnected implements gateway.Handler.
func (f *feed) Disconnected(shard int) { f.fails(shard, time.Now()) }

func (f *feed) fails(shard int, since time.Time) {
	f.health.Fails(shard, since, fmt.Errorf("shard %d has no session", shard))
}

// intakeSource is the intake among the sources of health, which are shards.
const intakeSource = -1

// ContentRefused implements gateway.Handler.
func (f *feed) ContentRefused() {
	f.notices.once("content", "the message content intent is off for this bot: it sees what mentions it, what "+
		"replies to it and direct messages, and nothing else. Switch the intent on in the developer portal, "+
		"under Bot, and restart.")
}

// note stores what was taken in, and until when everything was. It is called by the
// intake, or when that has ended: everything before is on disk.
func (f *feed) note(ctx context.Context, now bool) {
	at := f.alive.all(f.connected)
	f.noteCursors(ctx)
	if len(f.waiting) > 0 || at.IsZero() {
		return
	}
	if err := f.alive.note(ctx, f.state, at, now); err != nil {
		f.log.Error("until when the gateway was heard is not stored", "err", err)
	}
}

func (f *feed) noteCursors(ctx context.Context) {
	if err := f.cursors.flush(ctx); err != nil {
		f.log.Error("what was seen is not stored", "err", err)
	}
}

// aliveKey is the State's key of the time until which all events were received.
const aliveKey = "alive"

// How exact the note of it is.
const (
	aliveEvery = 30 * time.Second // between two notes
	aliveSlack = time.Minute      // for clocks, and for events on their way
)

// alive knows until when all events were received, shard by shard. Safe for concurrent
// use.
type alive struct {
	mu       sync.Mutex
	shards   map[int]time.Time
	behind   bool                    // events wait that are not on disk
	noted    time.Time               // until when everything is known to be on disk, perhaps by an earlier process
	sessions map[int]gateway.Session // by shard; all their events are on disk
	began    bool                    // one of them is not noted yet
}

// touch is called when a shard has received everything until now. It returns until when
// it had before; zero if that is unknown.
func (a *alive) touch(shard int, now time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	until, known := a.shards[shard]
	if !known {
		until = a.noted
	}
	a.shards[shard] = now
	return until
}

// wait sets whether events wait that are not on disk.
func (a *alive) wait(behind bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.behind = behind
}

// took is called when all events of these sessions are on disk. It stores them if one has begun.
func (a *alive) took(ctx context.Context, s driver.State, sessions map[int]gateway.Session) error {
	a.mu.Lock()
	for shard, now := range sessions {
		a.began = a.began || a.sessions[shard].ID != now.ID
		a.sessions[shard] = now
	}
	began := a.began
	a.mu.Unlock()
	if !began {
		return nil
	}
	return a.noteSessions(ctx, s)
}

// noteSessions stores the sessions.
func (a *alive) noteSessions(ctx context.Context, s driver.State) error {
	a.mu.Lock()
	stored := core.JSON(storedSessions{time.Now(), a.sessions})
	a.began = false
	a.mu.Unlock()
	err := s.Put(ctx, sessionsKey, stored)
	if err != nil {
		a.mu.Lock()
		a.began = true
		a.mu.Unlock()
	}
	return err
}

// left returns the sessions that an earlier process had, as load read them.
func (a *alive) left() map[int]gateway.Session {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.sessions)
}

// all is until when so many shards have received everything, if that is on disk; zero if
// that is unknown.
func (a *alive) all(count int) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.behind || len(a.shards) < max(count, 1) {
		return a.noted
	}
	return slices.MinFunc(slices.Collect(maps.Values(a.shards)), time.Time.Compare)
}

// load reads what an earlier process stored.
func (a *alive) load(ctx context.Context, s driver.State) error {
	raw, err := s.Get(ctx, aliveKey)
	if err != nil || raw == nil {
		return err
	}
	at, err := time.Parse(time.RFC3339, string(raw))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.noted = at
	clear(a.shards) // another process may have received since
	return errors.Join(err, a.loadSessions(ctx, s))
}

// sessionsKey is the State's key of the sessions, and until when they were heard.
const sessionsKey = "sessions"

// sessionAge is after what time nobody tries to go on with a session: Discord has forgotten it.
const sessionAge = 15 * time.Minute

type storedSessions struct {
	At     time.Time               `json:"at"`
	Shards map[int]gateway.Session `json:"shards"`
}

// loadSessions reads the sessions that an earlier process stored. Damaged ones count as none. mu is held.
func (a *alive) loadSessions(ctx context.Context, s driver.State) error {
	raw, err := s.Get(ctx, sessionsKey)
	var stored storedSessions
	_ = json.Unmarshal(raw, &stored)
	a.sessions = make(map[int]gateway.Session)
	if age := time.Since(stored.At); age >= 0 && age < sessionAge {
		maps.Copy(a.sessions, stored.Shards)
	}
	return err
}

// note stores a time and the sessions, if now or if the stored time is old. Everything before at is on
// disk.
func (a *alive) note(ctx context.Context, s driver.State, at time.Time, now bool) error {
	a.mu.Lock()
	due := at.Sub(a.noted) >= aliveEvery || now && at.After(a.noted)
	a.mu.Unlock()
	if !due {
		return nil
	}
	if err := s.Put(ctx, aliveKey, []byte(at.UTC().Format(time.RFC3339))); err != nil {
		return err
	}
	a.mu.Lock()
	a.noted = at
	a.mu.Unlock()
	return a.noteSessions(ctx, s)
}
