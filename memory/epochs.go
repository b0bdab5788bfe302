package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"

	"synthbot/core"
	"synthbot/core/epochs"
)

// Epochs keep out what was begun before somebody was forgotten and is written afterwards: a turn, a search, a summary.
// They live in memory. What comes from outside later, such as a quote, is kept out by requests: see forgottenTx.

// epochState remembers, until the process ends, who was forgotten when.
type epochState struct {
	mu          sync.Mutex
	now         uint64
	forgottenIn map[core.Path]uint64  // people and places; the zero Path: everybody
	inProgress  map[core.Path]int     // who is being forgotten now; counts their Forgets
	muted       map[core.TurnID]muted // turns that answer somebody who was forgotten, by each of their ids
	floor       atomic.Uint64         // numbers of new places begin above it
	moved       []core.Path           // paths that moved recently; used by the writer only

	forgets chan struct{}          // holds a token while this process forgets somebody
	process string                 // a random name of this process
	applied uint64                 // the number of the last shared epoch that was applied
	others  map[string][]core.Path // who is being forgotten by other processes, by the key of the plan
}

// takeTurn waits until this process forgets nobody else: two that forget the same user have the same plan.
func (e *epochState) takeTurn(ctx context.Context) error {
	select {
	case e.forgets <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *epochState) endTurn() { <-e.forgets }

// begin marks paths as being forgotten. e.mu is held.
func (e *epochState) begin(paths []core.Path) {
	for _, path := range paths {
		e.forgottenIn[path] = e.now
		e.inProgress[path]++
	}
}

// end begins the epoch after they were forgotten: readers that started before then are stale. e.mu is held.
func (e *epochState) end(paths []core.Path) {
	e.now++
	for _, path := range paths {
		e.forgottenIn[path] = e.now
		if e.inProgress[path]--; e.inProgress[path] == 0 {
			delete(e.inProgress, path)
		}
	}
}

// Epoch is the number of times that somebody was forgotten; see epochs.With.
func (db *DB) Epoch() uint64 {
	db.epochs.mu.Lock()
	defer db.epochs.mu.Unlock()
	return db.epochs.now
}

// Forgotten implements core.Store.
func (db *DB) Forgotten(ctx context.Context, paths ...core.Path) bool {
	return db.epochOf(ctx).forgot(paths...)
}

// writeEpoch is the epoch in which the work began whose result is written now.
type writeEpoch struct {
	*epochState
	epoch uint64
	turn  core.TurnID // zero: none
	known bool        // false: the epoch is not known
}

func (db *DB) epochOf(ctx context.Context) writeEpoch {
	epoch, turn, dated := epochs.Of(ctx)
	return writeEpoch{&db.epochs, epoch, turn, dated}
}

// forgot reports whether one of these paths, or one above it, was forgotten since the work began or is being forgotten.
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
	return b.forgotExactly(core.Path{}) // everybody
}

// forgotExactly is forgot for just this path. b.mu is held.
func (b writeEpoch) forgotExactly(path core.Path) bool {
	return b.known && (b.forgottenIn[path] > b.epoch || b.inProgress[path] > 0)
}

// dropForgotten removes the words of people whom forgot reports from an entry.
func (b writeEpoch) dropForgotten(l *storedEntry) {
	m := &l.Message
	forgot := func(id string) bool {
		person, err := m.Path.Person(id)
		return err == nil && b.forgot(person) // on an error, there is no author
	}
	dropForeign(m, func(o core.Foreign) bool { return forgot(o.From.ID) })
	if m.ReplyTo != nil && forgot(m.ReplyTo.From.ID) {
		m.ReplyTo = &core.Quote{ID: m.ReplyTo.ID}
	}
	if forgot(m.Author.ID) {
		l.forget()
	}
}

// isNamed reports whether a value names somebody whom forgot reports: by a path, or by their id as a JSON string.
func (b writeEpoch) isNamed(value []byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for path := range b.forgottenIn {
		named := namesPath(value, path) || path.IsPerson() && bytes.Contains(value, quoted(path.Elements()[2]))
		if named && b.forgotExactly(path) {
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

func quoted(text string) []byte {
	raw, _ := json.Marshal(text) // every text is valid in JSON
	return raw
}

// muted is a turn that answers somebody who was forgotten: its outcome is left out.
type muted struct {
	turn  core.TurnID // under the path where its place is now
	epoch uint64      // in which it was muted
}

// isMuted reports whether a turn answers somebody who was forgotten. A turn with the same id that began later does not:
// it is another attempt. A turn whose epoch is not known counts as old.
func (b writeEpoch) isMuted(turn core.TurnID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	m, ok := b.muted[turn]
	return ok && (!b.known || b.epoch <= m.epoch)
}

func (e *epochState) raiseFloor(to uint64) {
	for floor := e.floor.Load(); floor < to && !e.floor.CompareAndSwap(floor, to); floor = e.floor.Load() {
	}
}

func (e *epochState) mutedUpTo(mark core.TurnID) (turns []core.TurnID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for turn := range e.muted {
		if turn.Path == mark.Path && turn.Seq <= mark.Seq {
			turns = append(turns, turn)
		}
	}
	return turns
}

func (e *epochState) unmute(turns []core.TurnID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range turns {
		over := e.muted[name].turn
		maps.DeleteFunc(e.muted, func(_ core.TurnID, m muted) bool { return m.turn == over })
	}
}

// metaEpochs is the key, in the meta bucket, of the latest epochs (a list in JSON), which all processes apply.
const metaEpochs = "epochs"

// maxEpochs is how many epochs are stored. A process that missed older ones treats everybody as forgotten.
const maxEpochs = 64

// sharedEpoch informs other processes that somebody is being forgotten, or that this has ended.
type sharedEpoch struct {
	Number uint64       `json:"number"`
	By     string       `json:"by"`              // a random name of the process
	Plan   string       `json:"plan"`            // the key of the plan of this Forget
	Begun  []core.Path  `json:"begun,omitempty"` // who is being forgotten from now on
	Over   bool         `json:"over,omitempty"`  // all of this Forget's are forgotten
	Muted  []sharedMute `json:"muted,omitempty"`
}

// sharedMute is a muted turn, and its id now, if its place has moved.
type sharedMute struct {
	Place core.Path `json:"place"`
	Seq   uint64    `json:"seq"`
	Now   core.Path `json:"now"`
	As    uint64    `json:"as"`
}

// announce stores an epoch for other processes. None of them commits anything before it has applied the epoch.
func announce(t *tx, e sharedEpoch) {
	if Shared(t.db) == nil {
		return
	}
	var all []sharedEpoch
	meta := t.bucket(bucketMeta)
	_ = json.Unmarshal(meta.Get([]byte(metaEpochs)), &all) // a damaged list is replaced
	e.Number, e.By = 1, t.db.epochs.process
	if len(all) > 0 {
		e.Number = all[len(all)-1].Number + 1
	}
	all = append(all, e)
	meta.Put([]byte(metaEpochs), core.JSON(all[max(0, len(all)-maxEpochs):]))
	raiseBarrier(t)
}

func applyEpochs(db *DB) error {
	var all []sharedEpoch
	var floor uint64
	err := db.read(context.Background(), func(v *view) {
		meta := v.bucket(bucketMeta)
		_ = json.Unmarshal(meta.Get([]byte(metaEpochs)), &all) // see announce
		floor, _ = strconv.ParseUint(string(meta.Get([]byte(metaFloor))), 10, 64)
	})
	if err != nil {
		return err
	}
	e := &db.epochs
	e.raiseFloor(floor)
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, one := range all {
		switch {
		case one.Number <= e.applied:
			continue
		case i == 0 && e.applied > 0 && one.Number > e.applied+1: // some are missing
			e.now++
			e.forgottenIn[core.Path{}] = e.now
		}
		e.applied = one.Number
		if one.By != e.process {
			e.apply(&one)
		}
	}
	return nil
}

// apply applies an epoch of another process. e.mu is held.
func (e *epochState) apply(one *sharedEpoch) {
	e.begin(one.Begun)
	e.others[one.Plan] = append(e.others[one.Plan], one.Begun...)
	for _, m := range one.Muted {
		e.muted[core.TurnID{Path: m.Place, Seq: m.Seq}] = muted{core.TurnID{Path: m.Now, Seq: m.As}, e.now}
	}
	if one.Over {
		e.end(e.others[one.Plan])
		delete(e.others, one.Plan)
	}
}
