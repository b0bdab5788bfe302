// Package progress stores how far each shard has received events from Discord, so that the next process can
// continue from there. It does not know the events themselves.
package progress

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/driver"
	"synthbot/interfaces/discord/gateway"
)

// Keys of the State.
const (
	TimeKey     = "alive"    // until when all events were received, as RFC 3339
	SessionsKey = "sessions" // of the gateway, as JSON
)

const (
	every = 30 * time.Second // how often progress is stored
	// Slack is the precision of the stored time, which depends on clocks and on events in transit.
	Slack = time.Minute
	// sessionAge is when Discord has forgotten a session, which is then not resumed.
	sessionAge = 15 * time.Minute
)

// Progress is that of one account, or of one of its shards. It is safe for concurrent use, but for SetSessions and
// Store, which the same goroutine calls after StoreFirst.
type Progress struct {
	state driver.State

	mu       sync.Mutex
	began    bool              // a new session is not stored yet
	shards   map[int]time.Time // until when each has received everything
	saved    time.Time         // the stored time: everything before is on disk, perhaps by an earlier process
	sessions map[int]gateway.Session
}

// stored is the value of SessionsKey.
type stored struct {
	At     time.Time               `json:"at"`
	Shards map[int]gateway.Session `json:"shards"`
}

// New returns an empty Progress. Load must be called before it is used.
func New(s driver.State) *Progress {
	return &Progress{state: s, shards: make(map[int]time.Time), sessions: make(map[int]gateway.Session)}
}

// Load reads what an earlier process stored. Damaged sessions are ignored.
func (p *Progress) Load(ctx context.Context) error {
	at, err := p.state.Get(ctx, TimeKey)
	sessions, err2 := p.state.Get(ctx, SessionsKey)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var old stored
	_ = json.Unmarshal(sessions, &old)
	clear(p.sessions)
	age := time.Since(old.At)
	if age >= 0 && age < sessionAge {
		maps.Copy(p.sessions, old.Shards)
	}
	if at == nil {
		return nil
	}
	p.saved, _ = time.Parse(time.RFC3339, string(at))
	clear(p.shards) // another process may have received since
	return nil
}

// Sessions returns a copy of the latest known sessions by shard; after Load, those of an earlier process.
func (p *Progress) Sessions() map[int]gateway.Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.sessions)
}

// Touch records that a shard has received everything until now.
func (p *Progress) Touch(shard int, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shards[shard] = now
}

// Until returns until when a shard has received everything, or else the stored time; zero if there is none.
func (p *Progress) Until(shard int) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return cmp.Or(p.shards[shard], p.saved)
}

// ReceivedUntil returns until when all shards have received everything; zero if unknown. count is the number of
// shards. While some are missing, it is the stored time.
func (p *Progress) ReceivedUntil(count int) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.shards) < max(count, 1) {
		return p.saved
	}
	return slices.MinFunc(slices.Collect(maps.Values(p.shards)), time.Time.Compare)
}

// SetSessions records the sessions of some shards, whose events up to Session.Seq are on disk. If one of them
// is new, it stores all sessions.
func (p *Progress) SetSessions(ctx context.Context, sessions map[int]gateway.Session) error {
	p.mu.Lock()
	for shard, now := range sessions {
		p.began = p.began || p.sessions[shard].ID != now.ID
		p.sessions[shard] = now
	}
	began := p.began
	p.mu.Unlock()
	if !began {
		return nil
	}
	return p.storeSessions(ctx)
}

// StoreFirst stores a session that begins, and its time, if no earlier one of the shard is known. It must be called
// before Touch.
func (p *Progress) StoreFirst(ctx context.Context, shard int, session gateway.Session, at time.Time) error {
	p.mu.Lock()
	known, first := p.sessions[shard].ID != "", p.saved.IsZero()
	p.mu.Unlock()
	if known {
		return nil
	}
	var err error
	if first {
		err = p.Store(ctx, at, true)
	}
	if session.ID != "" {
		err = errors.Join(err, p.SetSessions(ctx, map[int]gateway.Session{shard: session}))
	}
	return err
}

// Store stores a time before which everything is on disk, and the sessions. It does nothing if the stored
// time is less than 30 seconds older, unless now is set.
func (p *Progress) Store(ctx context.Context, at time.Time, now bool) error {
	p.mu.Lock()
	due := at.Sub(p.saved) >= every || now && at.After(p.saved)
	p.mu.Unlock()
	if !due {
		return nil
	}
	if err := p.state.Put(ctx, TimeKey, []byte(at.UTC().Format(time.RFC3339))); err != nil {
		return err
	}
	p.mu.Lock()
	p.saved = at
	p.mu.Unlock()
	return p.storeSessions(ctx)
}

func (p *Progress) storeSessions(ctx context.Context) error {
	p.mu.Lock()
	value := core.JSON(stored{time.Now(), p.sessions})
	p.mu.Unlock()
	err := p.state.Put(ctx, SessionsKey, value)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.began = p.began && err != nil
	return err
}
