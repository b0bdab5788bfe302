package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"go.etcd.io/bbolt"

	"synthbot/core"
	"synthbot/memory/kv"
)

// CompactSuffix ends the name of the copy while a file is compacted.
const CompactSuffix = ".compact"

const (
	compactStep   = 4 << 20 // bytes of one transaction while copying
	compactRest   = 200     // changed pairs that are left to the last step
	compactRounds = 20      // of catching up, at most
)

// Compact writes the file anew, without free space and without traces of what was deleted
// before, and returns its size before and after. It copies the file in slices, and what
// changes meanwhile again. Reading and writing go on; writers wait for the last step only,
// which copies the latest changes and calls last with the copy. The disk must have room for
// both files.
func (f *File) Compact(ctx context.Context, last func(kv.Tx) error) (before, after int64, err error) {
	select {
	case f.compacting <- struct{}{}:
		defer func() { <-f.compacting }()
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	c := newCompaction(ctx, f, last)
	err = c.exclusive(func() (err error) {
		before, err = f.Size()
		f.changed = make(changes)
		return err
	})
	if err == nil {
		err = c.run()
	}
	if err == nil {
		after, err = f.Size()
	}
	if err != nil {
		return 0, 0, fullError(err)
	}
	return before, after, nil
}

// changes are the pairs that changed while the file is compacted.
type changes map[pairKey]bool

type pairKey struct{ bucket, key string }

// compaction copies a file.
type compaction struct {
	file   *File
	target *File
	ctx    context.Context
	last   func(kv.Tx) error
}

func newCompaction(ctx context.Context, f *File, last func(kv.Tx) error) *compaction {
	target := newFile(f.name+CompactSuffix, Options{Log: f.log, NoSync: true})
	return &compaction{file: f, target: target, ctx: ctx, last: last}
}

func (c *compaction) run() error {
	err := c.copy()
	if err == nil {
		err = c.complete()
	}
	used, _ := c.file.current()
	if used != c.target.bolt {
		c.target.closeBroken()
		_ = os.Remove(c.target.name) // else the next one does
		c.file.writing <- struct{}{}
		c.file.changed = nil
		<-c.file.writing
	}
	return err
}

// exclusive calls f between two transactions.
func (c *compaction) exclusive(f func() error) error {
	c.file.writing <- struct{}{}
	defer func() { <-c.file.writing }()
	switch {
	case c.file.closed:
		return core.ErrClosed
	case c.file.broken != nil:
		return c.file.broken
	}
	return f()
}

// copy copies all buckets in slices.
func (c *compaction) copy() error {
	if err := os.Remove(c.target.name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := c.target.openBolt(); err != nil {
		return err
	}
	names, start := [][]byte(nil), []byte(nil) // what is left to copy
	err := c.copyPairs(func(from, _ *bbolt.Tx) error {
		return from.ForEach(func(name []byte, _ *bbolt.Bucket) error {
			names = append(names, bytes.Clone(name))
			return nil
		})
	})
	for err == nil && len(names) > 0 {
		err = c.copyPairs(func(from, to *bbolt.Tx) (err error) {
			names, start, err = copySlice(from, to, names, start)
			return err
		})
	}
	return err
}

// copySlice copies some pairs of these buckets, of the first from start on, and returns where
// to go on.
func copySlice(source, target *bbolt.Tx, names [][]byte, start []byte) (left [][]byte, from []byte, err error) {
	size := 0
	for i, name := range names {
		to, err := target.CreateBucketIfNotExists(name)
		if err != nil {
			return nil, nil, err
		}
		to.FillPercent = 1
		c := source.Bucket(name).Cursor()
		for k, value := c.Seek(start); k != nil; k, value = c.Next() {
			if size >= compactStep {
				return names[i:], bytes.Clone(k), nil
			}
			if err := to.Put(k, value); err != nil {
				return nil, nil, err
			}
			size += len(k) + len(value)
		}
		start = nil
	}
	return nil, nil, nil
}

// copyPairs calls f with a view of the file and a transaction of the copy, and syncs that, so
// that the last sync, for which writers wait, is short.
func (c *compaction) copyPairs(f func(from, to *bbolt.Tx) error) (err error) {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		v := recover()
		if v != nil {
			err = fmt.Errorf("%w: %v", core.ErrDamaged, v)
		}
	}()
	from, err := c.file.Begin(c.ctx)
	if err != nil {
		return err
	}
	defer from.End()
	err = c.target.bolt.Update(func(to *bbolt.Tx) error { return f(from.(*view).Tx, to) })
	if err != nil {
		return err
	}
	return c.target.handle.Sync()
}

// complete copies what changed meanwhile, until so little is left that the last step can do
// the rest.
func (c *compaction) complete() error {
	for round := 0; ; round++ {
		var changed changes
		err := c.exclusive(func() error {
			if len(c.file.changed) <= compactRest || round == compactRounds {
				return c.finish()
			}
			changed, c.file.changed = c.file.changed, make(changes)
			return nil
		})
		if err == nil && changed != nil {
			err = c.copyPairs(func(from, to *bbolt.Tx) error { return catchUp(from, to, changed) })
		}
		if err != nil || changed == nil {
			return err
		}
	}
}

// catchUp copies pairs that changed.
func catchUp(source, target *bbolt.Tx, changed changes) error {
	for pair := range changed {
		from, to := source.Bucket([]byte(pair.bucket)), target.Bucket([]byte(pair.bucket))
		k, value := from.Cursor().Seek([]byte(pair.key))
		var err error
		if k != nil && string(k) == pair.key {
			err = to.Put(k, value)
		} else {
			err = to.Delete([]byte(pair.key))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", pair.bucket, err)
		}
	}
	return nil
}

// finish copies the rest and replaces the file with the copy, between two transactions. Views
// of the old file keep that until they end.
func (c *compaction) finish() error {
	f := c.file
	err := c.copyPairs(func(from, to *bbolt.Tx) error {
		if err := catchUp(from, to, f.changed); err != nil {
			return err
		}
		err := from.ForEach(func(name []byte, b *bbolt.Bucket) error {
			return to.Bucket(name).SetSequence(b.Sequence())
		})
		if err != nil {
			return err
		}
		return c.last(&tx{Tx: to, file: c.target})
	})
	c.target.bolt.NoSync, c.target.bolt.NoGrowSync = f.options.NoSync, f.options.NoSync
	if err == nil {
		err = os.Rename(c.target.name, f.name)
	}
	if err != nil {
		return err
	}
	f.replaceWith(c.target)
	return SyncDir(filepath.Dir(f.name))
}

// replaceWith goes on with a copy of the file, and closes the old one when its views have ended.
func (f *File) replaceWith(target *File) {
	old := f.bolt
	f.mu.Lock()
	f.bolt, f.handle = target.bolt, target.handle
	f.mu.Unlock()
	f.replaced.Go(func() {
		if err := old.Close(); err != nil {
			f.log.Error("the replaced file cannot be closed", "file", f.name, "err", err)
		}
	})
	f.changed, f.unsynced = nil, 0
}
