package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

const (
	compactSuffix = ".compact"
	compactStep   = 4 << 20 // bytes of one transaction while copying
	compactRest   = 200     // changed pairs that are left to the last step
	compactRounds = 20      // of catching up, at most
)

// Compact writes the file anew, without the room that is free in it and without
// traces of what was deleted before it began, and reports its size before and after.
// Reading and writing go on meanwhile; writers wait for the last step only, which
// copies what was written a moment ago. There must be room on the disk for both.
func (db *DB) Compact(ctx context.Context) (before, after int64, err error) {
	select {
	case db.compacting <- struct{}{}:
		defer func() { <-db.compacting }()
	case <-ctx.Done():
		return 0, 0, fmt.Errorf("compact: %w", ctx.Err())
	}
	c := &compaction{db: db, ctx: working(ctx, "compaction"), fresh: newBoltFile(db.file.name+compactSuffix, db.log)}
	if before, after, err = c.run(); err != nil {
		return 0, 0, fmt.Errorf("compact: %w", err)
	}
	return before, after, nil
}

// changes are the pairs that were changed while the file is compacted.
type changes map[pairKey]bool

type pairKey struct{ bucket, key string }

// compaction copies the file in slices, each as it is at that moment. What changes
// meanwhile is copied again, at last by the writer, who then goes on with the copy.
type compaction struct {
	db     *DB
	ctx    context.Context
	fresh  *boltFile
	untidy bool // somebody is forgotten meanwhile, and the copy may hold them
}

func (c *compaction) run() (before, after int64, err error) {
	old, _ := c.db.file.hold() // so that the writer need not close it
	defer c.db.file.let(old)
	err = c.db.write(c.ctx, &job{alone: func() error {
		c.db.writer.changed = make(changes)
		c.untidy = c.db.epochs.busy()
		return c.db.writer.broken
	}})
	if err == nil {
		err = c.copy()
	}
	if err == nil {
		before, after, err = c.complete()
	}
	if !c.db.file.uses(c.fresh) {
		c.fresh.drop()
		_ = os.Remove(c.fresh.name) // else the next one does
		stop := context.WithoutCancel(c.ctx)
		// This fails on a closed database only.
		_ = c.db.write(stop, &job{alone: func() error { c.db.writer.changed = nil; return nil }})
	}
	return before, after, c.db.file.writeError(err)
}

// copy copies everything.
func (c *compaction) copy() error {
	if err := os.Remove(c.fresh.name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := c.fresh.openBolt(); err != nil {
		return err
	}
	c.fresh.bolt.NoSync, c.fresh.bolt.NoGrowSync = true, true
	for _, name := range buckets() {
		if err := c.copyBucket(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// copyBucket copies a bucket in slices. Each is synced: else the last sync, for
// which writers wait, would be a long one.
func (c *compaction) copyBucket(name string) error {
	for start := []byte{}; start != nil; {
		err := c.both(func(v *view, t *tx) {
			t.makeBuckets(name)
			to := t.bucket(name)
			to.FillPercent = 1
			size := 0
			cursor := v.bucket(name).Cursor()
			k, value := cursor.Seek(start)
			for ; k != nil && size < compactStep; k, value = cursor.Next() {
				to.Put(k, value)
				size += len(k) + len(value)
			}
			start = bytes.Clone(k)
		})
		if err == nil {
			err = c.fresh.handle.Sync()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// both calls f with the file as it is now and a transaction of the copy.
func (c *compaction) both(f func(v *view, t *tx)) error {
	return c.db.view(c.ctx, func(v *view) error {
		return c.db.file.guard(func() error {
			return c.fresh.bolt.Update(func(b *bbolt.Tx) error {
				t := &tx{Tx: b, db: c.db}
				f(v, t)
				return t.err
			})
		})
	})
}

// complete copies what has changed meanwhile, until so little is left that the writer
// copies it and goes on with the copy.
func (c *compaction) complete() (before, after int64, err error) {
	for round := 0; ; round++ {
		var changed changes
		err = c.db.write(c.ctx, &job{alone: func() error {
			if len(c.db.writer.changed) <= compactRest || round == compactRounds {
				before, after, err = c.finish()
				return err
			}
			changed, c.db.writer.changed = c.db.writer.changed, make(changes)
			return nil
		}})
		if err == nil && changed != nil {
			err = errors.Join(c.catchUp(changed), c.fresh.handle.Sync())
		}
		if err != nil || changed == nil {
			return before, after, err
		}
	}
}

// catchUp copies pairs that have changed.
func (c *compaction) catchUp(changed changes) error {
	c.untidy = c.untidy || changed[pairKey{bucketMeta, metaUntidy}]
	return c.both(func(v *view, t *tx) {
		for pair := range changed {
			from, to, key := v.bucket(pair.bucket), t.bucket(pair.bucket), []byte(pair.key)
			if has(from, key) {
				to.Put(key, from.Get(key))
			} else {
				to.Delete(key)
			}
		}
	})
}

// finish copies the rest and puts the copy into the place of the file. The writer
// calls it.
func (c *compaction) finish() (before, after int64, err error) {
	err = c.catchUp(c.db.writer.changed)
	if err == nil {
		err = c.both(func(v *view, t *tx) {
			for _, name := range buckets() {
				t.fail(name, t.bucket(name).SetSequence(v.bucket(name).Sequence()))
			}
			if !c.untidy {
				t.bucket(bucketMeta).Delete([]byte(metaUntidy))
			}
		})
	}
	c.fresh.bolt.NoSync, c.fresh.bolt.NoGrowSync = false, false
	if err == nil {
		err = c.fresh.handle.Sync()
	}
	if err == nil {
		before, err = fileSize(c.db.file.handle)
	}
	if err == nil {
		after, err = fileSize(c.fresh.handle)
	}
	if err == nil {
		err = os.Rename(c.fresh.name, c.db.file.name)
	}
	if err != nil {
		return 0, 0, err
	}
	c.db.file.exchange(c.fresh)
	c.db.writer.changed, c.db.writer.torn = nil, 0
	return before, after, syncDir(filepath.Dir(c.db.file.name))
}
