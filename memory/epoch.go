package memory

import (
	"context"
	"sync"

	"synthbot/core"
)

// epochs remembers who was forgotten when, while the process lives: what was
// begun before, in memory, ends with the process.
type epochs struct {
	mu     sync.Mutex
	now    uint64
	people map[core.Path]uint64
	muted  map[core.TurnID]bool // turns that answer somebody who was forgotten
	floor  uint64               // no place begins below. The writer's
}

type epochKey struct{}

// WithEpoch lets a Commit with this context leave out what concerns people who
// were forgotten after the epoch that DB.Epoch returned: their entries and
// quotes of them.
func WithEpoch(ctx context.Context, epoch uint64) context.Context {
	return context.WithValue(ctx, epochKey{}, epoch)
}

// Epoch is the number of times that somebody was forgotten. Who makes something
// of what he reads (a reply, a fact) reads it first and hands it in with the
// result.
func (db *DB) Epoch() uint64 {
	db.epochs.mu.Lock()
	defer db.epochs.mu.Unlock()
	return db.epochs.now
}

// raise begins a new epoch, in which a person is forgotten.
func (e *epochs) raise(person core.Path) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.now++
	if e.people == nil {
		e.people = make(map[core.Path]uint64)
	}
	e.people[person] = e.now
}

// forgot reports whether one of these was forgotten after the epoch began.
func (db *DB) forgot(epoch uint64, people ...core.Path) bool {
	db.epochs.mu.Lock()
	defer db.epochs.mu.Unlock()
	for _, p := range people {
		if db.epochs.people[p] > epoch {
			return true
		}
	}
	return false
}

// mute lets what a turn ends with be left out.
func (e *epochs) mute(turn core.TurnID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.muted == nil {
		e.muted = make(map[core.TurnID]bool)
	}
	e.muted[turn] = true
}

// isMuted reports whether a turn answers somebody who was forgotten.
func (e *epochs) isMuted(turn core.TurnID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.muted[turn]
}

// ends lists the muted turns that a mark ends.
func (e *epochs) ends(mark core.TurnID) (turns []core.TurnID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for turn := range e.muted {
		if turn.Path == mark.Path && turn.Seq <= mark.Seq {
			turns = append(turns, turn)
		}
	}
	return turns
}

func (e *epochs) unmute(turns []core.TurnID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, turn := range turns {
		delete(e.muted, turn)
	}
}
