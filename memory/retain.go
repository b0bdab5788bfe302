package memory

import (
	"context"
	"encoding/binary"
	"time"

	"synthbot/core"
)

// Retention says how much of the history at or below a path is kept. Of several
// the longest path that matches counts.
type Retention struct {
	Path     core.Path     `toml:"path" doc:"The place or subtree; empty: everywhere." example:"discord/81384788765712384"`
	Messages int           `toml:"messages" doc:"How many messages each place keeps at most; 0: all." default:"0" min:"0"`
	Age      time.Duration `toml:"age" doc:"How long messages are kept; 0: for ever." default:"0s"`
}

// Config is what the user may set.
type Config struct {
	Keep    []Retention   `toml:"keep" doc:"How much history is kept, by place."`
	Journal time.Duration `toml:"journal" doc:"How long it can be asked why the bot did what it did." default:"168h"`
	Every   time.Duration `toml:"every" doc:"How often what is too old is taken away." default:"1h" min:"1m"`
}

// idAge is how long the id of a message that was pruned stays known: no platform
// delivers again after that.
const idAge = 60 * 24 * time.Hour

// policy finds the rule for a place.
func (c *Config) policy(place core.Path) (best Retention) {
	length := -1
	for _, r := range c.Keep {
		if place.Within(r.Path) && len(r.Path.String()) > length {
			best, length = r, len(r.Path.String())
		}
	}
	return best
}

// startPruning prunes now and then until ctx ends.
func (db *DB) startPruning(ctx context.Context, c Config) {
	if c.Every <= 0 {
		return
	}
	db.work.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(c.Every):
			}
			if err := db.Prune(ctx, c); err != nil && ctx.Err() == nil {
				db.log.Error("old history could not be taken away", "error", err)
			}
		}
	})
}

// Prune takes away what is older, or more, than is to be kept, in small
// transactions: entries that do not wait, the journal of turns that are over,
// and the ids of what is gone for long.
func (db *DB) Prune(ctx context.Context, c Config) error {
	var heads map[core.Path]head
	err := db.view(ctx, func(v *view) (err error) {
		heads, err = v.headsBelow(core.Path{})
		return err
	})
	if err != nil {
		return err
	}
	for path, h := range heads {
		if err := db.prunePlace(ctx, path, h, c.policy(path)); err != nil {
			return err
		}
	}
	if c.Journal > 0 {
		if err := db.pruneJournal(ctx, db.clock().Add(-c.Journal)); err != nil {
			return err
		}
	}
	return db.pruneIDs(ctx)
}

// prunePlace takes entries from the beginning of one log, up to the first that
// is to stay.
func (db *DB) prunePlace(ctx context.Context, path core.Path, h head, r Retention) error {
	spare := 0
	if r.Messages > 0 && h.count > uint64(r.Messages) {
		spare = int(h.count) - r.Messages
	}
	if spare == 0 && r.Age <= 0 {
		return nil
	}
	oldest := db.clock().Add(-r.Age)
	p := place{path: path, key: placeKey(path)}
	for {
		old := func(i int, l line) bool { return i < spare || r.Age > 0 && l.Message.Time.Before(oldest) }
		var seqs []uint64
		err := db.view(ctx, func(v *view) (err error) {
			seqs, err = v.prunable(p, old)
			return err
		})
		if err != nil || len(seqs) == 0 {
			return err
		}
		err = db.write(ctx, &job{run: func(t *tx) error {
			for _, seq := range seqs {
				if err := t.remove(p, seq); err != nil {
					return err
				}
			}
			return nil
		}})
		if err != nil {
			return err
		}
		spare = max(spare-len(seqs), 0)
	}
}

// prunable lists the first entries of a log while old says so. Whatever waits
// for an answer stays, and what follows it.
func (t *tx) prunable(p place, old func(i int, l line) bool) (seqs []uint64, err error) {
	due := t.bucket(bucketDue)
	c := t.bucket(bucketLog).Cursor()
	for k, v := c.Seek(p.key); below(k, after(p.key)) && len(seqs) < sweepWrite; k, v = c.Next() {
		l, err := lineAt(p.path, k, v)
		if err != nil {
			return nil, err
		}
		if !old(len(seqs), l) || has(due, k) {
			break
		}
		seqs = append(seqs, l.Message.Seq)
	}
	return seqs, nil
}

// pruneJournal drops the records of turns that are over and older than that.
func (db *DB) pruneJournal(ctx context.Context, oldest time.Time) error {
	_, err := db.sweep(ctx, bucketJournal, nil, nil,
		func(_, v []byte) bool {
			w, err := decodeRecord(v)
			return err == nil && w.Time.Before(oldest) && w.Progress != core.Pending
		},
		func(t *tx, k, _ []byte) error {
			if over, err := t.over(k); err != nil || !over {
				return err
			}
			return t.bucket(bucketJournal).Delete(k)
		})
	return err
}

// over reports whether the turn of a journal key is answered.
func (t *tx) over(key []byte) (bool, error) {
	place, rest, err := cutPlace(key)
	if err != nil || len(rest) < 8 {
		return false, err
	}
	h, _, err := t.readHead(place)
	return h.answered >= binary.BigEndian.Uint64(rest), err
}

// pruneIDs forgets ids whose entries are gone for long.
func (db *DB) pruneIDs(ctx context.Context) error {
	oldest := uint64(max(db.clock().Add(-idAge).Unix()/3600, 0))
	old := func(_, v []byte) bool {
		_, n := uvarint(string(v))
		if n <= 0 {
			return false
		}
		hour, size := uvarint(string(v[n:]))
		return size > 0 && hour < oldest
	}
	_, err := db.sweep(ctx, bucketIDs, nil, nil, old, func(t *tx, k, v []byte) error {
		key, _, err := cutPlace(k)
		if err != nil {
			return err
		}
		from, err := placeOf(key)
		if err != nil {
			return err
		}
		p, err := t.resolve(from)
		if err != nil {
			return err
		}
		seq, _ := uvarint(string(v))
		if t.bucket(bucketLog).Get(seqKey(p.key, seq+p.shift)) != nil {
			return nil
		}
		return t.bucket(bucketIDs).Delete(k)
	})
	return err
}
