package memory

import (
	"context"
	"encoding/json"
	"strconv"

	"synthbot/core"
	"synthbot/memory/kv"
)

// Worker is a process that uses the database.
type Worker = kv.Worker

// Shared reports whether several processes may use the database at the same time.
func (db *DB) Shared() bool { return db.shared() != nil }

func (db *DB) shared() kv.Shared {
	s, _ := db.engine.Engine.(kv.Shared)
	return s
}

// Self is the number of this process among those that use the database; 0 if there can be one only.
func (db *DB) Self() int64 {
	s := db.shared()
	if s == nil {
		return 0
	}
	return s.Self()
}

// Own calls work while this process owns a part of what all processes do that use the database, and
// again when it does once more; see kv.Shared. If there can be one process only, it owns everything.
func (db *DB) Own(ctx context.Context, part string, work func(context.Context) error) error {
	s := db.shared()
	if s == nil {
		return work(ctx)
	}
	return s.Own(ctx, part, work)
}

// Workers lists the processes that use the database, if there can be several.
func (db *DB) Workers(ctx context.Context) ([]Worker, error) {
	s := db.shared()
	if s == nil {
		return nil, nil
	}
	return s.Workers(ctx)
}

// Hint says something to all processes that use the database, also to this one; see Options.OnHint.
func (db *DB) Hint(ctx context.Context, text string) error {
	s := db.shared()
	if s == nil {
		return nil
	}
	return s.Hint(ctx, text)
}

// metaEpochs is the key in the meta bucket of the latest epochs, as a list in JSON: all processes
// keep to them.
const metaEpochs = "epochs"

// maxEpochs is how many are kept. A process that missed more than that takes everybody for forgotten.
const maxEpochs = 64

// sharedEpoch is what begins or ends when somebody is forgotten, for other processes.
type sharedEpoch struct {
	Number  uint64       `json:"number"`
	By      string       `json:"by"` // a random name of the process
	Subject core.Path    `json:"subject"`
	Begun   []core.Path  `json:"begun,omitempty"` // who are being forgotten from now on
	Over    bool         `json:"over,omitempty"`  // all of those are
	Muted   []sharedMute `json:"muted,omitempty"`
}

// sharedMute is a muted turn, and the name under which it goes on.
type sharedMute struct {
	Place core.Path `json:"place"`
	Seq   uint64    `json:"seq"`
	Now   core.Path `json:"now"`
	As    uint64    `json:"as"`
}

// announce stores an epoch for other processes, none of which commits anything before it knows.
func (t *tx) announce(e sharedEpoch) {
	if !t.db.Shared() {
		return
	}
	var all []sharedEpoch
	meta := t.bucket(bucketMeta)
	_ = json.Unmarshal(meta.Get([]byte(metaEpochs)), &all) // a damaged list begins anew
	e.Number, e.By = 1, t.db.process
	if len(all) > 0 {
		e.Number = all[len(all)-1].Number + 1
	}
	all = append(all, e)
	meta.Put([]byte(metaEpochs), core.JSON(all[max(0, len(all)-maxEpochs):]))
	t.stopOthers()
}

// stopOthers lets the other processes take over what this transaction changes before they commit
// anything.
func (t *tx) stopOthers() {
	if barrier, ok := t.Tx.(kv.Barrier); ok {
		t.fail(bucketMeta, barrier.Barrier())
	}
}

// takeOver applies the epochs of other processes.
func (db *DB) takeOver() error {
	var all []sharedEpoch
	var floor uint64
	err := db.look(context.Background(), func(v *view) {
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
		case one.Number <= e.taken:
			continue
		case i == 0 && e.taken > 0 && one.Number > e.taken+1: // some are missing
			e.now++
			e.forgottenIn[core.Path{}] = e.now
		}
		e.taken = one.Number
		if one.By != db.process {
			e.apply(&one)
		}
	}
	return nil
}

// apply applies an epoch of another process. e.mu is held.
func (e *epochs) apply(one *sharedEpoch) {
	for _, path := range one.Begun {
		e.forgottenIn[path] = e.now
		e.inProgress[path]++
	}
	e.others[one.Subject] = append(e.others[one.Subject], one.Begun...)
	for _, m := range one.Muted {
		e.muted[core.TurnID{Path: m.Place, Seq: m.Seq}] = muted{core.TurnID{Path: m.Now, Seq: m.As}, e.now}
	}
	if !one.Over {
		return
	}
	e.now++
	for _, path := range e.others[one.Subject] {
		e.forgottenIn[path] = e.now
		if e.inProgress[path]--; e.inProgress[path] == 0 {
			delete(e.inProgress, path)
		}
	}
	delete(e.others, one.Subject)
}
