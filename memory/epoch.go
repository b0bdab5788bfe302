package memory

import (
	"bytes"
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

// Epoch is the number of times that somebody was forgotten. Who makes something
// of what he reads (a reply, a fact) reads it first and hands it in with the
// result.
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
// forgotten for everybody, whenever he began.
func (e *epochs) begin(path core.Path) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone == nil {
		e.gone, e.going = make(map[core.Path]uint64), make(map[core.Path]int)
	}
	e.gone[path] = e.now
	e.going[path]++
}

// end begins the epoch in which these are forgotten: whoever began before, and
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

// since reports whether the very path was forgotten after the epoch, or is being
// forgotten. e.mu is held.
func (e *epochs) since(epoch uint64, path core.Path) bool {
	return e.gone[path] > epoch || e.going[path] > 0
}

// Forgotten reports whether one of these people or places, or what one of them
// lies in, was forgotten after the epoch began, or is being forgotten now.
func (db *DB) Forgotten(epoch uint64, paths ...core.Path) bool {
	e := &db.epochs
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range paths {
		for ; !p.IsZero(); p = p.Parent() {
			if e.since(epoch, p) {
				return true
			}
		}
	}
	return e.since(epoch, core.Path{}) // everybody was
}

// names reports whether a value names somebody who was forgotten after the epoch
// began: his path, or a path below it, or his id, as a text of its own.
func (db *DB) names(epoch uint64, value []byte) bool {
	e := &db.epochs
	e.mu.Lock()
	defer e.mu.Unlock()
	for path := range e.gone {
		if path.IsZero() || !e.since(epoch, path) {
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

// quoted is a text as it stands in JSON.
func quoted(text string) []byte {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(fmt.Errorf("memory: %w", err)) // texts can be told in JSON
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
// him. Where it is not said when it began, it counts as old.
func (e *epochs) isMuted(turn core.TurnID, epoch uint64, dated bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	m, ok := e.muted[turn]
	return ok && (!dated || epoch <= m.epoch)
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
