// Package progress notes how far each shard has received what happens on Discord, so that the next
// process can go on from there.
package progress

import (
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
	every = 30 * time.Second // between two notes
	// Slack is how exact the noted time is, because of clocks and of events on their way.
	Slack = time.Minute
	// After sessionAge nobody tries to go on with a session: Discord has forgotten it.
	sessionAge = 15 * time.Minute
)

// Progress is that of one account, or of one of its shards. It is safe for concurrent use.
type Progress struct {
	state driver.State

	mu       sync.Mutex
	shards   map[int]time.Time // until when each has received everything
	behind   bool              // events wait that are not on disk
	noted    time.Time         // until when everything is known to be on disk, perhaps by an earlier process
	sessions map[int]gateway.Session
	began    bool // a session is not noted yet
}

// stored is the value of SessionsKey.
type stored struct {
	At     time.Time               `json:"at"`
	Shards map[int]gateway.Session `json:"shards"`
}

// New returns a Progress that knows nothing before Load.
func New(s driver.State) *Progress {
	return &Progress{state: s, shards: make(map[int]time.Time), sessions: make(map[int]gateway.Session)}
}

// Load reads what an earlier process noted. Damaged sessions count as none.
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
	p.noted, err = time.Parse(time.RFC3339, string(at))
	clear(p.shards) // another process may have received since
	return err
}

// Sessions returns those that an earlier process had, as Load read them.
func (p *Progress) Sessions() map[int]gateway.Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.sessions)
}

// Touch is called when a shard has received everything until now. It returns until when it had before;
// zero if that is unknown.
func (p *Progress) Touch(shard int, now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	until, known := p.shards[shard]
	if !known {
		until = p.noted
	}
	p.shards[shard] = now
	return until
}

// Wait sets whether events wait that are not on disk.
func (p *Progress) Wait(behind bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.behind = behind
}

// All is until when so many shards have received everything, if that is on disk; zero if that is
// unknown.
func (p *Progress) All(count int) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.behind || len(p.shards) < max(count, 1) {
		return p.noted
	}
	return slices.MinFunc(slices.Collect(maps.Values(p.shards)), time.Time.Compare)
}

// Took is called when all events of these sessions are on disk. It notes them if one has begun.
func (p *Progress) Took(ctx context.Context, sessions map[int]gateway.Session) error {
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
	return p.noteSessions(ctx)
}

// Note notes a time and the sessions, if now or if the noted time is old. Everything before at is on
// disk.
func (p *Progress) Note(ctx context.Context, at time.Time, now bool) error {
	p.mu.Lock()
	due := at.Sub(p.noted) >= every || now && at.After(p.noted)
	p.mu.Unlock()
	if !due {
		return nil
	}
	if err := p.state.Put(ctx, TimeKey, []byte(at.UTC().Format(time.RFC3339))); err != nil {
		return err
	}
	p.mu.Lock()
	p.noted = at
	p.mu.Unlock()
	return p.noteSessions(ctx)
}

func (p *Progress) noteSessions(ctx context.Context) error {
	p.mu.Lock()
	value := core.JSON(stored{time.Now(), p.sessions})
	p.began = false
	p.mu.Unlock()
	err := p.state.Put(ctx, SessionsKey, value)
	if err != nil {
		p.mu.Lock()
		p.began = true
		p.mu.Unlock()
	}
	return err
}
