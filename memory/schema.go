package memory

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"

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

// prepare creates a new file's buckets, upgrades an older file after a backup beside it, and
// refuses a newer one.
func (db *DB) prepare() error {
	version, err := db.writer.readMeta()
	switch {
	case err != nil:
		return err
	case version > schema:
		return fmt.Errorf("its format is version %d, this synthbot knows %d: a newer synthbot wrote it; run that one",
			version, schema)
	}
	db.writer.inUse = db.file.unclean
	if db.file.installation == "" { // it is stored with the next write
		db.file.installation, db.writer.inUse = rand.Text(), false
	}
	switch version {
	case schema:
		return nil
	case 0:
		return db.writer.transact(upgrade)
	}
	backup := db.file.name + versionSuffix + strconv.Itoa(version)
	if err := db.Backup(backup); err != nil {
		return fmt.Errorf("backup before the change of its format: %w", err)
	}
	db.log.Info("the database's format changes",
		"file", db.file.name, "from", version, "to", schema, "backup", backup)
	if err := db.writer.transact(upgrade); err != nil {
		return fmt.Errorf("change of its format to version %d: %w; the backup is %s", schema, err, backup)
	}
	return nil
}

// Installation implements core.Store: the name of the file.
func (db *DB) Installation() string { return db.file.installation }

// versionSuffix, with the version, ends the name of the copy that an upgrade leaves.
const versionSuffix = ".version"

// upgrade brings a file of any older version to the present one. Version 1 had no vectors, 2
// no private heads, and in 3 words of a script without spaces were one word with a neighbour
// in another script.
func upgrade(t *tx) error {
	t.makeBuckets(buckets()...)
	for k, v := range t.bucket(bucketLog).pairs(nil, nil) {
		path, _, err := entryOf(k)
		if err == nil && isPrivate(v) {
			t.head(placeKey(path)).private = true
		}
	}
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
	t.bucket(bucketMeta).Put([]byte(metaSchema), []byte(strconv.Itoa(schema)))
	return t.err
}

func (t *tx) makeBuckets(names ...string) {
	for _, name := range names {
		_, err := t.CreateBucketIfNotExists([]byte(name))
		t.fail(name, err)
	}
}

var errForeign = errors.New("no database of synthbot")

// readMeta reads the meta bucket, and returns the version of the file's format; 0 if the file
// is empty.
func (w *writer) readMeta() (version int, err error) {
	err = w.db.view(context.Background(), func(v *view) error {
		name, _ := v.Cursor().First()
		if name == nil {
			return nil
		}
		meta := v.Bucket([]byte(bucketMeta))
		if meta == nil {
			return fmt.Errorf("%w: %w", core.ErrDamaged, errForeign)
		}
		w.db.file.unclean = meta.Get([]byte(metaClean)) == nil
		w.db.file.installation = string(meta.Get([]byte(metaName)))
		floor, err := strconv.ParseUint(string(meta.Get([]byte(metaFloor))), 10, 64)
		if err == nil {
			w.db.epochs.floor = floor
		}
		version, err = strconv.Atoi(string(meta.Get([]byte(metaSchema))))
		if err != nil || version < 1 {
			return fmt.Errorf("%w: %w: schema %q", core.ErrDamaged, errForeign, meta.Get([]byte(metaSchema)))
		}
		return nil
	})
	return version, err
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
