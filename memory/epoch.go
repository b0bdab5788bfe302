package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"sync"

	"synthbot/core"
)

// epochs remembers who was forgotten when, while the process lives.
type epochs struct {
	mu          sync.Mutex
	now         uint64
	forgottenIn map[core.Path]uint64  // people and places; the zero Path: everybody
	inProgress  map[core.Path]int     // those who are being forgotten now
	muted       map[core.TurnID]muted // turns that answer somebody who was forgotten, by all of their ids
	floor       uint64                // numbers of new places begin above; for the writer alone
}

// Epoch is the number of times that somebody was forgotten; see core.WithEpoch.
func (db *DB) Epoch() uint64 {
	db.epochs.mu.Lock()
	defer db.epochs.mu.Unlock()
	return db.epochs.now
}

// end begins the epoch in which these are forgotten: readers that started before then are
// stale.
func (e *epochs) end(paths map[core.Path]bool) {
	if len(paths) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.now++
	for path := range paths {
		e.forgottenIn[path] = e.now
		if e.inProgress[path]--; e.inProgress[path] == 0 {
			delete(e.inProgress, path)
		}
	}
}

// Forgotten implements core.Forgetter.
func (db *DB) Forgotten(ctx context.Context, paths ...core.Path) bool {
	return db.epochOf(ctx).forgot(paths...)
}

// writeEpoch is the epoch in which something began that is stored now.
type writeEpoch struct {
	*epochs
	epoch uint64
	turn  core.TurnID // zero: none
	known bool        // false: the epoch is not known
}

func (db *DB) epochOf(ctx context.Context) writeEpoch {
	epoch, turn, dated := core.EpochOf(ctx)
	return writeEpoch{&db.epochs, epoch, turn, dated}
}

// forgot reports whether one of these people or places, or a place above one, was forgotten
// since then, or is being forgotten.
func (b writeEpoch) forgot(paths ...core.Path) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range paths {
		for ; !p.IsZero(); p = p.Parent() {
			if b.forgotExactly(p) {
				return true
			}
		}
	}
	return b.forgotExactly(core.Path{}) // everybody was
}

// forgotExactly is forgot for just this path. b.mu is held.
func (b writeEpoch) forgotExactly(path core.Path) bool {
	return b.known && (b.forgottenIn[path] > b.epoch || b.inProgress[path] > 0)
}

// isOfMutedTurn reports whether the context's turn answers somebody who was forgotten.
func (b writeEpoch) isOfMutedTurn() bool { return !b.turn.Path.IsZero() && b.isMuted(b.turn) }

// isNamed reports whether a value names somebody who was forgotten since then: their path, a
// path below it, or their id, as a JSON string.
func (b writeEpoch) isNamed(value []byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for path := range b.forgottenIn {
		if path.IsZero() || !b.forgotExactly(path) {
			continue
		}
		if namesPath(value, path) || path.IsPerson() && bytes.Contains(value, quoted(path.Elements()[2])) {
			return true
		}
	}
	return false
}

// namesPath reports whether a value in JSON holds a path, or one below it.
func namesPath(value []byte, path core.Path) bool {
	begun := quoted(path.String())
	begun = begun[:len(begun)-1]
	return bytes.Contains(value, append(begun, '"')) || bytes.Contains(value, append(begun, '/'))
}

// quoted is a text as JSON writes it.
func quoted(text string) []byte {
	raw, _ := json.Marshal(text) // every text is valid in JSON
	return raw
}

// muted is a turn that answers somebody who was forgotten: its outcome is left out.
type muted struct {
	turn  core.TurnID // under the path where its place is now
	epoch uint64      // in which it was muted
}

// mute marks a turn. A turn whose place moved goes on under the ids with which it began.
func (e *epochs) mute(turn core.TurnID, names []core.TurnID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range names {
		e.muted[name] = muted{turn, e.now}
	}
}

// isMuted reports whether a turn answers somebody who was forgotten. A turn with the same id
// that began later does not: it is another attempt. If its epoch is not known, it counts as
// old.
func (b writeEpoch) isMuted(turn core.TurnID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	m, ok := b.muted[turn]
	return ok && (!b.known || b.epoch <= m.epoch)
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
	for _, name := range turns {
		over := e.muted[name].turn
		maps.DeleteFunc(e.muted, func(_ core.TurnID, m muted) bool { return m.turn == over })
	}
}
