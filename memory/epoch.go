package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"synthbot/core"
)

// epochs remembers who was forgotten when, while the process lives: what was
// begun before, in memory, ends with the process.
type epochs struct {
	mu    sync.Mutex
	now   uint64
	gone  map[core.Path]uint64  // people and places; the zero Path: everybody
	going map[core.Path]int     // those who are being forgotten now
	muted map[core.TurnID]muted // turns that answer somebody who was forgotten, under all of their names
	floor uint64                // no place begins below. The writer's
}

// Epoch is the number of times that somebody was forgotten; see core.WithEpoch.
func (db *DB) Epoch() uint64 {
	db.epochs.mu.Lock()
	defer db.epochs.mu.Unlock()
	return db.epochs.now
}

// next begins a new epoch.
func (e *epochs) next() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.now++
}

// begin says that a person or a place is being forgotten: until end it counts as
// forgotten for everybody, whenever they began.
func (e *epochs) begin(path core.Path) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone == nil {
		e.gone, e.going = make(map[core.Path]uint64), make(map[core.Path]int)
	}
	e.gone[path] = e.now
	e.going[path]++
}

// end begins the epoch in which these are forgotten: readers that began before, and
// may have read what was still there, began too early.
func (e *epochs) end(paths map[core.Path]bool) {
	if len(paths) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.now++
	for path := range paths {
		e.gone[path] = e.now
		if e.going[path]--; e.going[path] == 0 {
			delete(e.going, path)
		}
	}
}

// busy reports whether somebody is being forgotten.
func (e *epochs) busy() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.going) > 0
}

// Forgotten implements core.Forgetter.
func (db *DB) Forgotten(ctx context.Context, paths ...core.Path) bool {
	return db.begun(ctx).forgot(paths...)
}

// begun is when something was begun that is stored now.
type begun struct {
	*epochs
	epoch uint64
	turn  core.TurnID // zero: none
	dated bool        // false: it is not known when
}

func (db *DB) begun(ctx context.Context) begun {
	epoch, turn, dated := core.EpochOf(ctx)
	return begun{&db.epochs, epoch, turn, dated}
}

// forgot reports whether one of these people or places, or a place above one, was
// forgotten since, or is being forgotten.
func (b begun) forgot(paths ...core.Path) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range paths {
		for ; !p.IsZero(); p = p.Parent() {
			if b.since(p) {
				return true
			}
		}
	}
	return b.since(core.Path{}) // everybody was
}

// since reports whether exactly this path was forgotten since, or is being
// forgotten. b.mu is held.
func (b begun) since(path core.Path) bool {
	return b.dated && (b.gone[path] > b.epoch || b.going[path] > 0)
}

// stale reports whether it comes of a turn that answers somebody who was forgotten.
func (b begun) stale() bool { return !b.turn.Path.IsZero() && b.isMuted(b.turn) }

// named reports whether a value names somebody who was forgotten since: their path, a
// path below it, or their id, as a string of its own.
func (b begun) named(value []byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for path := range b.gone {
		if path.IsZero() || !b.since(path) {
			continue
		}
		begun := quoted(path.String())
		begun = begun[:len(begun)-1]
		if bytes.Contains(value, append(begun, '"')) || bytes.Contains(value, append(begun, '/')) {
			return true
		}
		if path.IsPerson() && bytes.Contains(value, quoted(path.Elements()[2])) {
			return true
		}
	}
	return false
}

// quoted is a text as JSON writes it.
func quoted(text string) []byte {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(fmt.Errorf("memory: %w", err)) // every text is valid in JSON
	}
	return raw
}

// muted is a turn that answers somebody who was forgotten.
type muted struct {
	turn  core.TurnID // where its place is
	epoch uint64      // in which it was muted
}

// mute lets what a turn ends with be left out. A turn whose place moved goes on under
// the path with which it began: names are all that it may have.
func (e *epochs) mute(turn core.TurnID, names []core.TurnID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.muted == nil {
		e.muted = make(map[core.TurnID]muted)
	}
	for _, name := range append(names, turn) {
		e.muted[name] = muted{turn, e.now}
	}
}

// isMuted reports whether a turn answers somebody who was forgotten. One of the
// same number that began later does not: it is another try, which knows nothing of
// them. If it is not known when it began, it counts as old.
func (b begun) isMuted(turn core.TurnID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	m, ok := b.muted[turn]
	return ok && (!b.dated || b.epoch <= m.epoch)
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
