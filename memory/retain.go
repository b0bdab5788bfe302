package memory

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"synthbot/core"
	"synthbot/core/loop"
)

// Retention is how much history a path, with all below it, keeps. The longest matching path wins.
type Retention struct {
	Path     core.Path     `toml:"path" kind:"place" example:"discord/81384788765712384" doc:"The place, with all places below it; empty: everywhere."`
	Messages int           `toml:"messages" default:"0" min:"0" doc:"How many messages each place keeps at most; 0: all."`
	Age      time.Duration `toml:"age" default:"0s" min:"0s" doc:"How long messages are kept; 0s: forever."`
}

// Config is what the user may set.
type Config struct {
	Journal time.Duration `toml:"journal" default:"168h" min:"0s" doc:"How long the record of a turn is kept if the turn asked for confirmation or was given up. Other records are deleted when the turn ends. 0s: forever."`
	Every   time.Duration `toml:"every" default:"1h" min:"1m" max:"168h" doc:"How often old data is deleted."`
	Recall  time.Duration `toml:"recall" default:"250ms" min:"1ms" max:"30s" doc:"How long a search of memories may wait for the embedding of its query. After that it uses words alone."`
	// These apply where no table of Keep matches. Memories stay.
	Messages int           `toml:"messages" default:"5000" min:"0" doc:"How many messages each place keeps at most; 0: all. Memories are not affected."`
	Age      time.Duration `toml:"age" default:"8760h" min:"0s" doc:"How long messages are kept; 0s: forever. Memories are not affected."`
	Keep     []Retention   `toml:"keep" doc:"How much history a place and all places below it keep, instead of messages and age above. The longest matching path wins."`
}

// Check reports faults that tags cannot express.
func (c *Config) Check(fault func(text string, at ...any)) {
	for i, r := range c.Keep {
		if slices.ContainsFunc(c.Keep[:i], func(other Retention) bool { return other.Path == r.Path }) {
			fault("is the second one for this path; write one table for each", "keep", i, "path")
		}
	}
}

const (
	idAge           = 60 * 24 * time.Hour // of deleted messages: platforms do not deliver again after that
	pendingAge      = 30 * 24 * time.Hour // how much longer the journal keeps a turn that waits for a confirmation
	usageAge        = 400 * 24 * time.Hour
	startPause      = 2 * time.Second // for the start and its first messages
	firstPrunePause = time.Minute     // from then to the first pruning, at most
)

func (c *Config) policy(place core.Path) Retention {
	best, length := Retention{Messages: c.Messages, Age: c.Age}, -1
	for _, r := range c.Keep {
		if place.Within(r.Path) && len(r.Path.String()) > length {
			best, length = r, len(r.Path.String())
		}
	}
	return best
}

type pruning struct {
	db      *DB
	config  atomic.Pointer[Config] // not to be changed
	changed chan struct{}          // holds a token after a change of the configuration
	began   time.Time              // when the first step was
	seen    *Config                // the configuration of the last step
	next    time.Time              // when to prune
}

// SetConfig replaces the configuration, as after a reload. It returns at once.
func (db *DB) SetConfig(c Config) {
	c.Keep = slices.Clone(c.Keep)
	db.pruning.config.Store(&c)
	loop.Notify(db.pruning.changed)
}

// step prunes regularly, and soon after the start and each change of the configuration; see loop.Repeat.
func (p *pruning) step(ctx context.Context) time.Duration {
	if p.began.IsZero() {
		p.began = time.Now()
	}
	early := startPause - time.Since(p.began)
	if early > 0 {
		return early
	}
	c := p.config.Load()
	if c != p.seen {
		p.seen, p.next = c, time.Now().Add(p.firstPause(ctx, c.Every))
	}
	wait := time.Until(p.next)
	switch {
	case c.Every == 0:
		return -1
	case wait > 0:
		return wait
	}
	err := p.db.Prune(ctx, *c)
	if err == nil {
		err = p.storeTime(ctx)
	}
	if err != nil && ctx.Err() == nil {
		p.db.log.Error("old history cannot be deleted", "err", err)
	}
	p.next = time.Now().Add(c.Every)
	return c.Every
}

// firstPause returns the time until the first pruning with a configuration. It is 0 if the last one is longer ago than
// the interval, so that a bot that never runs for long prunes, too. If there was none, the interval begins now.
func (p *pruning) firstPause(ctx context.Context, every time.Duration) time.Duration {
	if every == 0 {
		return 0
	}
	var last time.Time
	err := p.db.read(ctx, func(v *view) {
		last, _ = time.Parse(time.RFC3339, string(v.bucket(bucketMeta).Get([]byte(metaPruned))))
	})
	switch {
	case err == nil && last.IsZero():
		err = p.storeTime(ctx)
	case err == nil && p.db.clock().Sub(last).Abs() >= every:
		return 0
	}
	if err != nil && ctx.Err() == nil {
		p.db.log.Error("time of the last deletion of old history is not known", "err", err)
	}
	return min(firstPrunePause, every)
}

func (p *pruning) storeTime(ctx context.Context) error {
	now := p.db.clock().Format(time.RFC3339)
	return p.db.update(ctx, func(t *tx) { t.bucket(bucketMeta).Put([]byte(metaPruned), []byte(now)) })
}

// Prune deletes, in small transactions, what is older, or more, than the configuration keeps: entries that do not wait,
// the journal of finished turns, old ids of deleted messages, and usage of more than 400 days ago.
func (db *DB) Prune(ctx context.Context, c Config) error {
	var heads map[core.Path]head
	if err := db.read(ctx, func(v *view) { heads = maps.Collect(v.headsBelow(core.Path{})) }); err != nil {
		return err
	}
	var errs []error
	for path, h := range heads {
		errs = append(errs, db.pruning.pruneEntries(ctx, path, h, c.policy(path)))
	}
	if c.Journal > 0 {
		oldest := db.clock().Add(-c.Journal)
		errs = append(errs, db.pruning.pruneJournal(withJobName(ctx, "retention of journals"), oldest))
	}
	ctx = withJobName(ctx, "retention of ids and use")
	oldUse := []byte(db.clock().Add(-usageAge).Format(time.DateOnly)) // keys begin with the day
	errs = append(errs, db.pruning.pruneIDs(ctx), deleteWhere(ctx, db, bucketUsage, nil, oldUse, nil))
	return errors.Join(errs...)
}

func (p *pruning) pruneIDs(ctx context.Context) error {
	old := hour(p.db.clock().Add(-idAge))
	err := sweep(ctx, p.db, bucketIDs, nil, nil, func(_, v []byte) bool {
		run := idRun{bytes: v}
		for run.next() && run.last.hour >= old {
		}
		return run.last.hour < old
	}, func(t *tx, k, v []byte) {
		path, _, _ := cutPath(k) // no entry is below the zero Path
		from := t.resolve(path)
		for run := (idRun{bytes: v}); run.next(); {
			if run.last.hour < old && !t.hasEntry(from, run.last.seq) {
				setID(t, from.ids, knownID{id: run.last.id})
			}
		}
	})
	return errors.Join(err, deleteWhere(ctx, p.db, bucketGone, nil, nil, func(_, v []byte) bool {
		hour, size := uvarint(string(v))
		return size > 0 && hour < old // requests stay: they hold seconds, which are greater
	}))
}

// pruneEntries deletes entries from the beginning of one log, up to the first that stays or that waits.
// Unreadable entries are deleted with those before them.
func (p *pruning) pruneEntries(ctx context.Context, path core.Path, h head, r Retention) error {
	surplus := 0
	if r.Messages > 0 {
		surplus = max(int(h.count)-r.Messages, 0)
	}
	if surplus == 0 && r.Age <= 0 {
		return nil
	}
	oldest, key := p.db.clock().Add(-r.Age), placeKey(path)
	return changeFound(withJobName(ctx, "retention in %s", path), p.db, func(v *view) (seqs []uint64) {
		for seq, value := range v.numbers(bucketLog, key, 0) {
			l, ok := v.readEntry(path, seq, value)
			stays := ok && len(seqs) >= surplus && (r.Age <= 0 || !l.Message.Time.Before(oldest))
			if stays || hasKey(v.bucket(bucketDue), seqKey(key, seq)) {
				break
			}
			seqs = append(seqs, seq)
		}
		return seqs
	}, func(t *tx, seq uint64) { t.remove(key, seq) })
}

// pruneJournal deletes the turns that are over, if all of their records are old: a part of a turn's records is useless.
func (p *pruning) pruneJournal(ctx context.Context, oldest time.Time) error {
	return changeFound(ctx, p.db, func(v *view) (turns []core.TurnID) {
		for turn, records := range v.turns(nil, nil) {
			if isOld(&v.tx, turn, records, oldest) {
				turns = append(turns, turn)
			}
		}
		return turns
	}, func(t *tx, turn core.TurnID) {
		if isOld(t, turn, t.records(turn), oldest) {
			t.deleteBelow(bucketJournal, turnKey(turn))
		}
	})
}

// isOld reports whether a turn is answered and all of its records are older than that; much older if it is pending.
func isOld(t *tx, turn core.TurnID, records []record, oldest time.Time) bool {
	h, _ := t.readHead(placeKey(turn.Path))
	if h.answered < turn.Seq {
		return false
	}
	for _, r := range records {
		w, _ := decodeRecord(r.value) // an unreadable one is useless, and has no time
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

func (t *tx) deleteBelow(bucket string, prefix []byte) {
	var keys [][]byte
	for k := range t.bucket(bucket).prefixed(prefix) {
		keys = append(keys, bytes.Clone(k))
	}
	for _, k := range keys {
		t.bucket(bucket).Delete(k)
	}
}

// remove deletes an entry. Its id stays known. The time of the head stays, even if the entry
// was the newest: see correctHeadTimes.
func (t *tx) remove(place []byte, seq uint64) {
	key := seqKey(place, seq)
	if t.bucket(bucketLog).Get(key) == nil {
		return
	}
	t.head(place).count-- // before the deletion: an unreadable head is counted again
	t.bucket(bucketLog).Delete(key)
	t.bucket(bucketDue).Delete(key)
}

// correctHeadTimes sets the times of places' heads to those of their newest entries, after
// entries were deleted. It reads in a view, since a cursor cannot go back in a transaction
// that has deleted. A place that changed since then is skipped.
func correctHeadTimes(ctx context.Context, db *DB, places iter.Seq[core.Path]) error {
	type corrected struct {
		key    []byte
		before head
		time   time.Time
	}
	return changeFound(ctx, db, func(v *view) (all []corrected) {
		for path := range places {
			key := placeKey(path)
			h, ok := v.readHead(key)
			last := v.tail(path, key)
			if ok && last.step() && !h.time.Equal(last.entry.Message.Time) {
				all = append(all, corrected{key, h, last.entry.Message.Time})
			}
		}
		return all
	}, func(t *tx, c corrected) {
		h := t.head(c.key)
		if h.last == c.before.last && h.count == c.before.count {
			h.time = c.time
		}
	})
}
