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

// CompactSuffix ends the name of the copy that compaction makes.
const CompactSuffix = ".compact"

const (
	compactRest   = 200 // changed pairs that are left to the last step
	compactRounds = 20  // of catching up, at most
)

// Compact rewrites the file without free space and without traces of deleted data, and returns its size before
// and after. It copies the file in slices, and then what changed meanwhile. Reading and writing go on. Writers
// wait only for the last step, which copies the latest changes and calls last with the copy. The disk must have
// room for both files.
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

type changes map[pairKey]bool

type pairKey struct{ bucket, key string }

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
		_ = os.Remove(c.target.name) // if it fails, the next compaction does
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

func (c *compaction) copy() error {
	if err := os.Remove(c.target.name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := c.target.openBolt(c.target.name); err != nil {
		return err
	}
	var names []string
	err := c.copyPairs(func(from, _ *tx) error {
		names = from.Buckets()
		return nil
	})
	for _, name := range names {
		for start := []byte{}; start != nil && err == nil; {
			err = c.copyPairs(func(from, to *tx) (err error) {
				_, start, err = kv.CopySome(to, from, name, start)
				return err
			})
		}
	}
	return err
}

// copyPairs syncs the copy after f has changed it, so that the last sync, for which writers wait, is short.
func (c *compaction) copyPairs(f func(from, to *tx) error) (err error) {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		v := recover()
		if v != nil {
			err = PanicError(v)
		}
	}()
	from, err := c.file.Begin(c.ctx)
	if err != nil {
		return err
	}
	defer from.End()
	err = c.target.bolt.Update(func(to *bbolt.Tx) error { return f(&from.(*view).tx, &tx{Tx: to, file: c.target}) })
	if err != nil {
		return err
	}
	return c.target.handle.Sync()
}

// complete copies what changed meanwhile, until so little is left that the last step can do the rest.
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
			err = c.copyPairs(func(from, to *tx) error { return catchUp(from, to, changed) })
		}
		if err != nil || changed == nil {
			return err
		}
	}
}

func catchUp(source, target *tx, changed changes) error {
	for pair := range changed {
		key, to := []byte(pair.key), target.Bucket(pair.bucket)
		k, value := source.Bucket(pair.bucket).Cursor(nil, nil).Seek(key)
		var err error
		if bytes.Equal(k, key) {
			err = to.Put(k, value)
		} else {
			err = to.Delete(key)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", pair.bucket, err)
		}
	}
	return nil
}

var errDisplaced = errors.New("somebody has moved, deleted or replaced the open file")

// finish replaces the file with the copy, between two transactions. Views of the old file go on until they end.
func (c *compaction) finish() error {
	f := c.file
	err := c.copyPairs(func(from, to *tx) error {
		err := catchUp(from, to, f.changed)
		for _, name := range from.Buckets() {
			err = errors.Join(err, to.Bucket(name).SetSequence(from.Bucket(name).Sequence()))
		}
		if err != nil {
			return err
		}
		return c.last(to)
	})
	c.target.bolt.NoSync, c.target.bolt.NoGrowSync = f.options.NoSync, f.options.NoSync
	if err == nil && !isNamed(f.name, f.handle) {
		err = fmt.Errorf("%s: %w", f.name, errDisplaced)
	}
	if err == nil {
		err = KeepOwner(c.target.name, f.name)
	}
	if err == nil {
		err = os.Rename(c.target.name, f.name)
	}
	if err != nil {
		return err
	}
	old := f.bolt
	f.mu.Lock()
	f.bolt, f.handle = c.target.bolt, c.target.handle
	f.mu.Unlock()
	f.closingOld.Go(func() { // when the views of the old one have ended
		if err := old.Close(); err != nil {
			f.log.Error("the replaced file cannot be closed", "file", f.name, "err", err)
		}
	})
	f.changed, f.unsynced = nil, 0
	return SyncDir(filepath.Dir(f.name))
}
