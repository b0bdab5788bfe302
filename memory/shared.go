package memory

import (
	"context"
	"encoding/json"
	"strconv"

	"synthbot/core"
	"synthbot/memory/kv"
)

type (
	// Sharing divides the work of several processes that use the database at the same time.
	Sharing = kv.Shared
	// Worker is such a process.
	Worker = kv.Worker
)

// Shared returns how the work is divided; nil if there can be one process only.
func Shared(db *DB) Sharing { return db.engine.shared }

// OwnsParts reports whether this process certainly still owns its parts of the work.
func OwnsParts(db *DB) bool { return Shared(db) == nil || Shared(db).OwnsParts() }

// workerID returns the number of this process among those that use the database; 0 if only one can.
func workerID(db *DB) int64 {
	if Shared(db) == nil {
		return 0
	}
	return Shared(db).Self()
}

// metaEpochs is the key, in the meta bucket, of the latest epochs (a list in JSON), which all processes apply.
const metaEpochs = "epochs"

// maxEpochs is how many epochs are stored. A process that missed older ones treats everybody as forgotten.
const maxEpochs = 64

// sharedEpoch informs other processes that somebody is being forgotten, or that this has ended.
type sharedEpoch struct {
	Number  uint64       `json:"number"`
	By      string       `json:"by"` // a random name of the process
	Subject core.Path    `json:"subject"`
	Begun   []core.Path  `json:"begun,omitempty"` // who is being forgotten from now on
	Over    bool         `json:"over,omitempty"`  // all of the subject's are forgotten
	Muted   []sharedMute `json:"muted,omitempty"`
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

// raiseBarrier makes the other processes apply what this transaction stores before their next one. Their open
// ones count as earlier, as kv.Barrier says.
func raiseBarrier(t *tx) {
	if barrier, ok := t.Tx.(kv.Barrier); ok {
		t.fail(bucketMeta, barrier.Barrier())
	}
}

// applyEpochs applies the epochs of other processes.
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
	e.others[one.Subject] = append(e.others[one.Subject], one.Begun...)
	for _, m := range one.Muted {
		e.muted[core.TurnID{Path: m.Place, Seq: m.Seq}] = muted{core.TurnID{Path: m.Now, Seq: m.As}, e.now}
	}
	if one.Over {
		e.end(e.others[one.Subject])
		delete(e.others, one.Subject)
	}
}
