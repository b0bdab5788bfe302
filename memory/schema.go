package memory

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"

	"go.etcd.io/bbolt"

	"synthbot/core"
)

// schema is the version of the file's format that this program writes.
const schema = 4

// Keys of the meta bucket.
const (
	metaSchema = "schema"
	metaClean  = "clean"  // set while the file is closed in order
	metaTraces = "untidy" // set while the file has traces of what was forgotten
	metaFloor  = "floor"  // the highest number of a place that was forgotten
	metaName   = "name"   // the file's own random name
)

// prepare creates a new file's buckets, upgrades an older file, and refuses a newer one.
func (db *DB) prepare() error {
	m, err := db.file.readMeta()
	switch {
	case err != nil:
		return err
	case m.version == 0:
		return db.writer.create()
	case m.version > schema:
		return fmt.Errorf("its format is version %d, this synthbot knows %d: a newer synthbot wrote it; run that one",
			m.version, schema)
	}
	db.writer.inUse, db.file.unclean, db.epochs.floor = !m.clean, !m.clean, m.floor
	db.file.installation = m.name
	if m.name == "" { // it is stored with the next write
		db.file.installation, db.writer.inUse = rand.Text(), false
	}
	return db.writer.upgrade(m.version, steps())
}

// Installation implements core.Store: the name of the file.
func (db *DB) Installation() string { return db.file.installation }

// step upgrades a file by one version. steps()[0] leads from version 1 to 2.
type step func(*tx) error

func steps() []step {
	return []step{vectorBuckets, privateHeads, wordsAnew}
}

// vectorBuckets adds the buckets of vectors.
func vectorBuckets(t *tx) error {
	t.makeBuckets(bucketVectors, bucketSketches)
	return nil
}

func (t *tx) makeBuckets(names ...string) {
	for _, name := range names {
		_, err := t.CreateBucketIfNotExists([]byte(name))
		t.fail(name, err)
	}
}

// privateHeads sets private in the heads of places with private entries.
func privateHeads(t *tx) error {
	for k, v := range t.bucket(bucketLog).pairs(nil, nil) {
		place, _, err := cutSeq(k)
		if err == nil && isPrivate(v) {
			t.head(place).private = true
		}
	}
	return nil
}

// wordsAnew rebuilds the postings: before, words of a script without spaces were one word
// with a neighbour in another script.
func wordsAnew(t *tx) error {
	t.fail(bucketWords, t.DeleteBucket([]byte(bucketWords)))
	t.makeBuckets(bucketWords)
	for k, v := range t.bucket(bucketFacts).pairs(nil, nil) {
		f, err := decodeFact(k, v)
		if err != nil {
			t.db.logUnreadable(err)
			continue
		}
		t.facts().putPostings(&f)
	}
	return nil
}

// versionSuffix, with the version, ends the name of the copy that an upgrade leaves.
const versionSuffix = ".version"

// upgrade applies the steps behind version, each in a transaction of its own, after a backup
// beside the file.
func (w *writer) upgrade(version int, steps []step) error {
	if version > len(steps) {
		return nil
	}
	backup := w.db.file.name + versionSuffix + strconv.Itoa(version)
	if err := w.db.Backup(backup); err != nil {
		return fmt.Errorf("backup before the change of its format: %w", err)
	}
	w.db.log.Info("the database's format changes",
		"file", w.db.file.name, "from", version, "to", len(steps)+1, "backup", backup)
	for ; version <= len(steps); version++ {
		err := w.transact(func(t *tx) error {
			if err := steps[version-1](t); err != nil {
				return err
			}
			t.bucket(bucketMeta).Put([]byte(metaSchema), []byte(strconv.Itoa(version+1)))
			return nil
		})
		if err != nil {
			return fmt.Errorf("change of its format to version %d: %w; the backup is %s", version+1, err, backup)
		}
	}
	return nil
}

var errForeign = errors.New("no database of synthbot")

// fileMeta is the content of the meta bucket.
type fileMeta struct {
	version int    // of the format; 0: the file is empty
	clean   bool   // it was closed in order
	floor   uint64 // numbers of new places begin above; 0 if it cannot be read
	name    string // see DB.Installation
}

func (f *boltFile) readMeta() (m fileMeta, err error) {
	err = f.guard(func() error {
		return f.bolt.View(func(t *bbolt.Tx) error {
			name, _ := t.Cursor().First()
			if name == nil {
				return nil
			}
			meta := t.Bucket([]byte(bucketMeta))
			if meta == nil {
				return fmt.Errorf("%w: %w", core.ErrDamaged, errForeign)
			}
			m.clean, m.name = meta.Get([]byte(metaClean)) != nil, string(meta.Get([]byte(metaName)))
			m.floor, err = strconv.ParseUint(string(meta.Get([]byte(metaFloor))), 10, 64)
			if err != nil {
				m.floor = 0
			}
			m.version, err = strconv.Atoi(string(meta.Get([]byte(metaSchema))))
			if err != nil || m.version < 1 {
				return fmt.Errorf("%w: %w: schema %q", core.ErrDamaged, errForeign, meta.Get([]byte(metaSchema)))
			}
			return nil
		})
	})
	return m, err
}

// create makes the buckets of a new file.
func (w *writer) create() error {
	f := w.db.file
	return f.guard(func() error {
		return f.bolt.Update(func(t *bbolt.Tx) error {
			for _, name := range buckets() {
				if _, err := t.CreateBucketIfNotExists([]byte(name)); err != nil {
					return fmt.Errorf("bucket %s: %w", name, err)
				}
			}
			meta := t.Bucket([]byte(bucketMeta))
			w.inUse, f.installation = true, rand.Text()
			return errors.Join(meta.Put([]byte(metaSchema), []byte(strconv.Itoa(schema))),
				meta.Put([]byte(metaName), []byte(f.installation)))
		})
	})
}

// markClean stores that the file is closed in order. The writer calls it last.
func (w *writer) markClean() {
	if !w.inUse || w.broken != nil {
		return
	}
	err := w.transact(func(t *tx) error {
		t.bucket(bucketMeta).Put([]byte(metaClean), []byte("1"))
		return nil
	})
	if err != nil {
		w.db.log.Error("the database could not be closed in order", "file", w.db.file.name, "err", err)
	}
}
