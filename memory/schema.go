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
	metaClean  = "clean"  // there while the file is closed in order
	metaUntidy = "untidy" // there while the file has traces of what was forgotten
	metaFloor  = "floor"  // the highest number of a place that was forgotten
	metaName   = "name"   // the file's own random name
)

// prepare makes a new file's buckets, brings an older file's up to date, and
// refuses one that it does not know.
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
	db.writer.marked, db.file.unclean, db.epochs.floor = !m.clean, !m.clean, m.floor
	db.file.installation = m.name
	if m.name == "" { // it gets one with the first thing that is written
		db.file.installation, db.writer.marked = rand.Text(), false
	}
	return db.writer.upgrade(m.version, steps())
}

// Installation implements core.Store: the name of the file.
func (db *DB) Installation() string { return db.file.installation }

// step brings a file from one version of the format to the next. steps()[0]
// leads from version 1 to 2.
type step func(*tx) error

func steps() []step {
	return []step{vectorBuckets, privateHeads, wordsAnew}
}

// vectorBuckets makes room for what facts mean.
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

// privateHeads notes with each place whether something was said there in private:
// before, only the entries said so.
func privateHeads(t *tx) error {
	c := t.bucket(bucketLog).Cursor()
	for k, v := c.First(); k != nil; {
		place, _, err := cutSeq(k)
		if err != nil || !isPrivate(v) {
			k, v = c.Next()
			continue
		}
		t.head(place).private = true
		k, v = c.Seek(after(place))
	}
	return nil
}

// wordsAnew lets facts be found by the words as they are now: before, what a script
// without spaces wrote beside another one was one word.
func wordsAnew(t *tx) error {
	t.empty(bucketWords)
	c := t.bucket(bucketFacts).Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		f, err := decodeFact(k, v)
		if err != nil {
			t.db.odd(err)
			continue
		}
		t.putPostings(&f)
	}
	return nil
}

// versionSuffix ends, before the version, the name of the copy that an upgrade
// leaves.
const versionSuffix = ".version"

// upgrade brings the file up to the version behind the last step, each step in
// a transaction of its own, after a backup beside it.
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
		err := w.update(func(t *tx) error {
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

// fileMeta is what a file says of itself.
type fileMeta struct {
	version int    // of the format; 0: the file is empty
	clean   bool   // it was closed in order
	floor   uint64 // no place begins below; what cannot be read is none
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
			w.marked, f.installation = true, rand.Text()
			return errors.Join(meta.Put([]byte(metaSchema), []byte(strconv.Itoa(schema))),
				meta.Put([]byte(metaName), []byte(f.installation)))
		})
	})
}

// leave notes that the file is closed in order. The writer calls it last.
func (w *writer) leave() {
	if !w.marked || w.broken != nil {
		return
	}
	err := w.update(func(t *tx) error {
		t.bucket(bucketMeta).Put([]byte(metaClean), []byte("1"))
		return nil
	})
	if err != nil {
		w.db.log.Error("the database could not be closed in order", "file", w.db.file.name, "err", err)
	}
}
