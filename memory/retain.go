package memory

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"synthbot/core"
)

// Retention says how much of the history at or below a path is kept. Of several
// the longest path that matches counts.
type Retention struct {
	Path     core.Path     `toml:"path" example:"discord/81384788765712384" doc:"The place, with all places below it; empty: everywhere."`
	Messages int           `toml:"messages" default:"0" min:"0" doc:"How many messages each place keeps at most; 0: all."`
	Age      time.Duration `toml:"age" default:"0s" min:"0s" doc:"How long messages are kept; 0s: forever."`
}

// Config is what the user may set.
type Config struct {
	Journal time.Duration `toml:"journal" default:"168h" min:"0s" doc:"How long the record of a turn is kept if the turn asked for confirmation or was given up. Other records are deleted when the turn ends. 0s: forever."`
	Every   time.Duration `toml:"every" default:"1h" min:"1m" max:"168h" doc:"How often old data is deleted."`
	Recall  time.Duration `toml:"recall" default:"250ms" min:"1ms" max:"30s" doc:"How long a search of memories may wait for the embedding of its query. After that it uses words alone."`
	// These apply where no table of Keep says otherwise. Memories stay.
	Messages int           `toml:"messages" default:"5000" min:"0" doc:"How many messages each place keeps at most; 0: all. Memories are not affected."`
	Age      time.Duration `toml:"age" default:"8760h" min:"0s" doc:"How long messages are kept; 0s: forever. Memories are not affected."`
	Keep     []Retention   `toml:"keep" doc:"How much history a place and all places below it keep, instead of messages and age above. The longest matching path wins."`
}

// Check finds what no tag can tell.
func (c *Config) Check(fault func(text string, at ...any)) {
	for i, r := range c.Keep {
		if slices.ContainsFunc(c.Keep[:i], func(other Retention) bool { return other.Path == r.Path }) {
			fault("is the second one for this path; write one table for each", "keep", i, "path")
		}
	}
}

const (
	// idAge is how long the id of a message that was pruned or forgotten stays
	// known: no platform delivers again after that.
	idAge = 60 * 24 * time.Hour
	// pendingAge is how much longer a turn stays in the journal that waits for a
	// person's word.
	pendingAge = 30 * 24 * time.Hour
	// usageAge is how long it is known what was used.
	usageAge = 400 * 24 * time.Hour
	// firstPrune is how soon after the start is pruned.
	firstPrune = time.Minute
)

// policy finds the rule for a place.
func (c *Config) policy(place core.Path) Retention {
	best, length := Retention{Messages: c.Messages, Age: c.Age}, -1
	for _, r := range c.Keep {
		if place.Within(r.Path) && len(r.Path.String()) > length {
			best, length = r, len(r.Path.String())
		}
	}
	return best
}

// pruning removes what is older, or more, than the configuration keeps.
type pruning struct {
	db      *DB
	config  atomic.Pointer[Config]
	changed chan struct{} // holds a token after the configuration was exchanged
}

// SetConfig exchanges the configuration, as after a reload. It returns at once.
func (db *DB) SetConfig(c Config) {
	c.Keep = slices.Clone(c.Keep)
	db.pruning.config.Store(&c)
	select {
	case db.pruning.changed <- struct{}{}:
	default:
	}
}

// config is the one in force; not to be changed.
func (db *DB) config() *Config { return db.pruning.config.Load() }

// start prunes now and then until ctx ends; soon after the start, so that
// a bot that never runs for long prunes too.
func (p *pruning) start(ctx context.Context) {
	p.db.work.Go(func() {
		for pause := firstPrune; ; pause = p.db.config().Every {
			if !p.pause(ctx, min(pause, p.db.config().Every)) {
				return
			}
			if err := p.db.Prune(ctx, *p.db.config()); err != nil && ctx.Err() == nil {
				p.db.log.Error("old history could not be taken away", "err", err)
			}
		}
	})
}

// pause waits, anew after each change of the configuration; false when
// ctx ended. Where nothing is to be pruned it waits for such a change.
func (p *pruning) pause(ctx context.Context, pause time.Duration) bool {
	for {
		var over <-chan time.Time
		if pause > 0 {
			over = time.After(pause)
		}
		select {
		case <-ctx.Done():
			return false
		case <-over:
			return true
		case <-p.changed:
			pause = min(firstPrune, p.db.config().Every)
		}
	}
}

// Prune takes away what is older, or more, than is to be kept, in small
// transactions: entries that do not wait, the journal of turns that are over,
// the ids of what is gone for long, and use of more than 400 days ago.
func (db *DB) Prune(ctx context.Context, c Config) error {
	var heads map[core.Path]head
	err := db.view(ctx, func(v *view) error {
		heads = v.headsBelow(core.Path{})
		return nil
	})
	if err != nil {
		return err
	}
	var errs []error
	for path, h := range heads {
		errs = append(errs, db.pruning.place(ctx, path, h, c.policy(path)))
	}
	if c.Journal > 0 {
		errs = append(errs, db.pruning.journal(working(ctx, "retention of journals"), db.clock().Add(-c.Journal)))
	}
	ctx = working(ctx, "retention of ids and use")
	return errors.Join(append(errs, db.pruning.ids(ctx), db.pruning.hashes(ctx), db.pruning.usage(ctx))...)
}

// usage takes away what was used long ago. Keys begin with the day.
func (p *pruning) usage(ctx context.Context) error {
	oldest := p.db.clock().Add(-usageAge).Format(time.DateOnly)
	return sweep(ctx, p.db, bucketUsage, nil, []byte(oldest), func([]byte, []byte) bool { return true },
		func(t *tx, k, _ []byte) { t.bucket(bucketUsage).Delete(k) })
}

// hashes forgets the hashes of ids that were forgotten for long.
func (p *pruning) hashes(ctx context.Context) error {
	oldest := p.oldestID()
	return sweep(ctx, p.db, bucketGone, nil, nil, func(_, v []byte) bool {
		hour, size := uvarint(string(v))
		return size > 0 && hour < oldest // the second of a request, which stays, is greater than any hour
	}, func(t *tx, k, _ []byte) { t.bucket(bucketGone).Delete(k) })
}

// oldestID is the hour of the oldest ids that stay.
func (p *pruning) oldestID() uint64 { return uint64(max(p.db.clock().Add(-idAge).Unix()/3600, 0)) }

// place takes entries from the beginning of one log, up to the first that
// is to stay.
func (p *pruning) place(ctx context.Context, path core.Path, h head, r Retention) error {
	spare := 0
	if r.Messages > 0 {
		spare = max(int(h.count)-r.Messages, 0)
	}
	if spare == 0 && r.Age <= 0 {
		return nil
	}
	ctx = working(ctx, "retention in %s", path)
	oldest := p.db.clock().Add(-r.Age)
	at := place{path: path, key: placeKey(path)}
	for {
		old := func(i int, l line) bool { return i < spare || r.Age > 0 && l.Message.Time.Before(oldest) }
		var seqs []uint64
		err := p.db.view(ctx, func(v *view) error {
			seqs = v.prunable(at, old)
			return nil
		})
		if err != nil || len(seqs) == 0 {
			return err
		}
		err = changeAll(ctx, p.db, seqs, func(t *tx, seq uint64) { t.remove(at, seq) })
		if err != nil {
			return err
		}
		spare = max(spare-len(seqs), 0)
	}
}

// prunable lists the first entries of a log while old says so. Whatever waits
// for an answer stays, and what follows it.
func (t *tx) prunable(p place, old func(i int, l line) bool) (seqs []uint64) {
	due := t.bucket(bucketDue)
	for seq, value := range t.numbers(bucketLog, p.key, 0) {
		// One that cannot be read goes with those before it.
		l, ok := t.readLine(p.path, seq, value)
		if ok && !old(len(seqs), l) || has(due, seqKey(p.key, seq)) || len(seqs) == sweepWrite {
			break
		}
		seqs = append(seqs, seq)
	}
	return seqs
}

// journal drops the turns that are over, and all of whose records are older
// than that: a part of a turn is worth nothing.
func (p *pruning) journal(ctx context.Context, oldest time.Time) error {
	for start := []byte{}; start != nil; {
		var turns []core.TurnID
		err := p.db.view(ctx, func(v *view) error {
			turns, start = v.oldTurns(start, oldest)
			return nil
		})
		if err != nil {
			return err
		}
		err = changeAll(ctx, p.db, turns, func(t *tx, turn core.TurnID) {
			if t.isOld(turn, oldest) {
				t.deleteBelow(bucketJournal, seqKey(placeKey(turn.Path), turn.Seq))
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// oldTurns lists the first turns from start on that may go, and where to go on; nil at
// the end.
func (t *tx) oldTurns(start []byte, oldest time.Time) (turns []core.TurnID, next []byte) {
	c := t.bucket(bucketJournal).Cursor()
	k, _ := c.Seek(start)
	for range sweepLook {
		if k == nil || len(turns) == sweepWrite {
			break
		}
		key, err := journalKeyOf(k)
		if err != nil {
			t.db.odd(err)
			k, _ = c.Next()
			continue
		}
		if t.isOld(key.Turn, oldest) {
			turns = append(turns, key.Turn)
		}
		last := seqKey(placeKey(key.Turn.Path), key.Turn.Seq)
		k, _ = c.Seek(append(last, bytes.Repeat([]byte{0xff}, 7)...)) // behind its last record
	}
	return turns, bytes.Clone(k)
}

// isOld reports whether a turn is answered and all of its records are older than
// that; those of a turn that waits for a person's word, much older.
func (t *tx) isOld(turn core.TurnID, oldest time.Time) bool {
	place := placeKey(turn.Path)
	h, _ := t.readHead(place)
	if h.answered < turn.Seq {
		return false
	}
	prefix := seqKey(place, turn.Seq)
	c := t.bucket(bucketJournal).Cursor()
	for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = c.Next() {
		w, err := decodeRecord(v)
		if err != nil {
			continue // nobody can read it any more
		}
		limit := oldest
		if w.Progress == core.ProgressPending {
			limit = oldest.Add(-pendingAge)
		}
		if !w.Time.Before(limit) {
			return false
		}
	}
	return true
}

// deleteBelow deletes all pairs whose keys begin so.
func (t *tx) deleteBelow(bucket string, prefix []byte) {
	for _, k := range t.keysBelow(bucket, prefix) {
		t.bucket(bucket).Delete(k)
	}
}

// keysBelow lists the keys that begin so.
func (t *tx) keysBelow(bucket string, prefix []byte) (keys [][]byte) {
	c := t.bucket(bucket).Cursor()
	for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		keys = append(keys, bytes.Clone(k))
	}
	return keys
}

// ids forgets ids whose entries are gone for long.
func (p *pruning) ids(ctx context.Context) error {
	oldest := p.oldestID()
	old := func(_, v []byte) bool {
		_, n := uvarint(string(v))
		hour, size := uvarint(string(v[n:]))
		return size > 0 && hour < oldest
	}
	return sweep(ctx, p.db, bucketIDs, nil, nil, old, func(t *tx, k, v []byte) {
		seq, _ := uvarint(string(v))
		from, _, err := cutPath(k)
		p := t.resolve(from)
		if err == nil && t.bucket(bucketLog).Get(seqKey(p.key, seq+p.shift)) == nil {
			t.bucket(bucketIDs).Delete(k)
		}
	})
}
