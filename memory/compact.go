package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"synthbot/core"
)

const (
	compactSuffix = ".compact"
	compactStep   = 4 << 20 // bytes of one transaction while copying
	compactRest   = 200     // changed pairs that are left to the last step
	compactRounds = 20      // of catching up, at most
)

// Compact writes the file anew, without free space and without traces of what was deleted
// before, and returns its size before and after. Reading and writing go on meanwhile;
// writers wait for the last step only, which copies the latest changes. The disk must have
// room for both files.
func (db *DB) Compact(ctx context.Context) (before, after int64, err error) {
	select {
	case db.compacting <- struct{}{}:
		defer func() { <-db.compacting }()
	case <-ctx.Done():
		return 0, 0, fmt.Errorf("compact: %w", ctx.Err())
	}
	c := newCompaction(withJobName(ctx, "compaction"), db)
	before, err = db.file.size()
	if err == nil {
		err = c.run()
	}
	if err == nil {
		after, err = db.file.size()
	}
	if err != nil {
		return 0, 0, fmt.Errorf("compact: %w", err)
	}
	return before, after, nil
}

// changes are the pairs that changed while the file is compacted.
type changes map[pairKey]bool

type pairKey struct{ bucket, key string }

// compaction copies the file in slices. What changes meanwhile is copied again, at last by
// the writer, which then goes on with the copy.
type compaction struct {
	db     *DB
	ctx    context.Context
	target *boltFile
	traces bool // somebody is being forgotten, and the copy may have traces of them
}

func newCompaction(ctx context.Context, db *DB) *compaction {
	target := &boltFile{name: db.file.name + compactSuffix, log: db.log, noSync: true}
	return &compaction{db: db, ctx: ctx, target: target}
}

func (c *compaction) run() error {
	err := c.db.write(c.ctx, &job{exclusive: func() error {
		c.db.writer.changed = make(changes)
		c.db.epochs.mu.Lock()
		c.traces = len(c.db.epochs.inProgress) > 0
		c.db.epochs.mu.Unlock()
		return c.db.writer.broken
	}})
	if err == nil {
		err = c.copy()
	}
	if err == nil {
		err = c.complete()
	}
	used, _ := c.db.file.current()
	if used != c.target.bolt {
		c.target.closeBroken()
		_ = os.Remove(c.target.name) // else the next one does
		stop := context.WithoutCancel(c.ctx)
		// This fails on a closed database only.
		_ = c.db.write(stop, &job{exclusive: func() error { c.db.writer.changed = nil; return nil }})
	}
	return c.db.file.writeError(err)
}

// copy copies all buckets in slices.
func (c *compaction) copy() error {
	if err := os.Remove(c.target.name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := c.target.openBolt(); err != nil {
		return err
	}
	names, start := buckets(), []byte(nil) // what is left to copy
	for len(names) > 0 {
		if err := c.copyPairs(func(v *view, t *tx) { names, start = copySlice(v, t, names, start) }); err != nil {
			return err
		}
	}
	return nil
}

// copySlice copies some pairs of these buckets, of the first from start on, and returns where
// to go on.
func copySlice(v *view, t *tx, names []string, start []byte) (left []string, from []byte) {
	size := 0
	for i, name := range names {
		t.makeBuckets(name)
		to := t.bucket(name)
		to.FillPercent = 1
		for k, value := range v.bucket(name).pairs(start, nil) {
			if size >= compactStep {
				return names[i:], bytes.Clone(k)
			}
			to.Put(k, value)
			size += len(k) + len(value)
		}
		start = nil
	}
	return nil, nil
}

// copyPairs calls f with a view of the file and a transaction of the copy, and syncs that, so
// that the last sync, for which writers wait, is short.
func (c *compaction) copyPairs(f func(v *view, t *tx)) error {
	err := c.db.view(c.ctx, func(v *view) error {
		return c.target.bolt.Update(func(b *bbolt.Tx) error {
			t := &tx{Tx: b, db: c.db}
			f(v, t)
			return t.err
		})
	})
	if err != nil {
		return err
	}
	return c.target.handle.Sync()
}

// complete copies what changed meanwhile, until so little is left that the writer can do the
// rest.
func (c *compaction) complete() error {
	for round := 0; ; round++ {
		var changed changes
		err := c.db.write(c.ctx, &job{exclusive: func() error {
			if len(c.db.writer.changed) <= compactRest || round == compactRounds {
				return c.finish()
			}
			changed, c.db.writer.changed = c.db.writer.changed, make(changes)
			return nil
		}})
		if err == nil && changed != nil {
			err = c.copyPairs(func(v *view, t *tx) { c.catchUp(v, t, changed) })
		}
		if err != nil || changed == nil {
			return err
		}
	}
}

// catchUp copies pairs that changed.
func (c *compaction) catchUp(v *view, t *tx, changed changes) {
	c.traces = c.traces || changed[pairKey{bucketMeta, metaTraces}]
	for pair := range changed {
		from, to, key := v.bucket(pair.bucket), t.bucket(pair.bucket), []byte(pair.key)
		if has(from, key) {
			to.Put(key, from.Get(key))
		} else {
			to.Delete(key)
		}
	}
}

// finish copies the rest and replaces the file with the copy. The writer calls it. Views of
// the old file keep that until they end.
func (c *compaction) finish() error {
	err := c.copyPairs(func(v *view, t *tx) {
		c.catchUp(v, t, c.db.writer.changed)
		for _, name := range buckets() {
			t.fail(name, t.bucket(name).SetSequence(v.bucket(name).Sequence()))
		}
		if !c.traces {
			t.bucket(bucketMeta).Delete([]byte(metaTraces))
		}
	})
	f, old := c.db.file, c.db.file.bolt
	c.target.bolt.NoSync, c.target.bolt.NoGrowSync = f.noSync, f.noSync
	if err == nil {
		err = os.Rename(c.target.name, f.name)
	}
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.bolt, f.handle = c.target.bolt, c.target.handle
	f.mu.Unlock()
	c.db.work.Go(func() {
		if err := old.Close(); err != nil {
			f.log.Error("the replaced file cannot be closed", "file", f.name, "err", err)
		}
	})
	c.db.writer.changed, c.db.writer.unsynced = nil, 0
	return syncDir(filepath.Dir(f.name))
}

const (
	traceHour    = 4               // of the day, in which the file is rewritten
	traceTimeout = 5 * time.Second // for rewriting the file on Close
)

// hasTraces reports whether traces of what was forgotten are left in the file.
func hasTraces(db *DB) (left bool) {
	_ = db.look(context.Background(), func(v *view) { // errors are reported elsewhere
		left = v.bucket(bucketMeta).Get([]byte(metaTraces)) != nil
	})
	return left
}

// startTraceRemoval rewrites the file after the start and every night, until ctx ends, if it
// has traces of what was forgotten.
func (db *DB) startTraceRemoval(ctx context.Context) {
	due, started := hasTraces(db), false
	db.repeat(ctx, nil, func(ctx context.Context) time.Duration {
		if started {
			due = db.clock().Hour() == traceHour
		}
		started = true
		if due {
			db.removeTraces(ctx)
		}
		return time.Hour / 2
	})
}

// removeTraces rewrites the file if it has traces.
func (db *DB) removeTraces(ctx context.Context) {
	if !hasTraces(db) {
		return
	}
	if _, _, err := db.Compact(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, core.ErrClosed) {
		db.log.Error("traces of what was forgotten stay in the file until the next night",
			"file", db.file.name, "err", err)
	}
}
