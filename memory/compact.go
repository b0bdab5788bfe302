package memory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"synthbot/core"
)

const (
	compactSuffix = ".compact"
	compactStep   = 8 << 20 // bytes of one transaction while copying
)

// Compact writes the file anew, without the room that is free in it and without
// traces of what was deleted, and reports its size before and after. Reading
// goes on meanwhile; who writes waits, about a second for 300 MiB. There must be
// room on the disk for both.
func (db *DB) Compact(ctx context.Context) (before, after int64, err error) {
	err = db.write(ctx, &job{alone: func() error {
		before, after, err = db.compact()
		return err
	}})
	if err != nil {
		return before, before, fmt.Errorf("compact: %w", err)
	}
	return before, after, nil
}

func (db *DB) compact() (before, after int64, err error) {
	if db.broken != nil {
		return 0, 0, db.broken
	}
	fresh := &DB{file: db.file + compactSuffix, log: db.log}
	if err := os.Remove(fresh.file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, 0, err
	}
	if err := fresh.fill(db.bolt); err != nil {
		fresh.drop()
		return 0, 0, errors.Join(db.writeError(err), os.Remove(fresh.file))
	}
	if before, err = fileSize(db.handle); err == nil {
		after, err = fileSize(fresh.handle)
	}
	if err == nil {
		err = os.Rename(fresh.file, db.file)
	}
	if err != nil {
		fresh.drop()
		return 0, 0, errors.Join(err, os.Remove(fresh.file))
	}
	return before, after, errors.Join(syncDir(filepath.Dir(db.file)), db.swapTo(fresh))
}

// fill copies another database into a new file and makes it durable.
func (db *DB) fill(from *bbolt.DB) error {
	if err := db.openBolt(); err != nil {
		return err
	}
	db.bolt.NoSync, db.bolt.NoGrowSync = true, true
	err := db.guard(func() error {
		if err := bbolt.Compact(db.bolt, from, compactStep); err != nil {
			return err
		}
		return db.bolt.Update(func(t *bbolt.Tx) error { return t.Bucket([]byte(bucketMeta)).Delete([]byte(metaUntidy)) })
	})
	db.bolt.NoSync, db.bolt.NoGrowSync = false, false
	if err != nil {
		return err
	}
	return db.handle.Sync()
}

// swapTo goes on with another open file, after the last view of the old one.
func (db *DB) swapTo(fresh *DB) error {
	db.swap.Lock()
	defer db.swap.Unlock()
	old := db.bolt
	db.bolt, db.handle = fresh.bolt, fresh.handle
	return old.Close()
}

func fileSize(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// same reports a file that another process replaced between opening and
// locking it.
func (db *DB) same() error {
	named, err := os.Stat(db.file)
	if err != nil {
		return err
	}
	opened, err := db.handle.Stat()
	if err == nil && !os.SameFile(named, opened) {
		err = core.ErrLocked
	}
	return err
}
