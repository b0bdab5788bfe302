package bolt

import (
	"os"
	"slices"

	"go.etcd.io/bbolt"

	"synthbot/memory/kv"
	"synthbot/memory/rescue"
)

// fillPercent is how full pages get. bbolt's default of one half needs nearly twice the space where a bucket
// grows at the ends of ranges.
const fillPercent = 0.95

type tx struct {
	*bbolt.Tx
	file    *File
	changed changes // see File
}

func (t *tx) Buckets() (names []string) {
	_ = t.ForEach(func(name []byte, _ *bbolt.Bucket) error { // it fails with its function only
		names = append(names, string(name))
		return nil
	})
	return names
}

func (t *tx) Bucket(name string) kv.Bucket {
	b := t.Tx.Bucket([]byte(name))
	switch {
	case b == nil:
		return nil
	case !slices.Contains(t.file.options.Scattered, name):
		b.FillPercent = fillPercent
	}
	if t.changed != nil {
		return recordedBucket{bucket{b}, name, t.changed}
	}
	return bucket{b}
}

func (t *tx) MakeBucket(name string) error {
	_, err := t.CreateBucketIfNotExists([]byte(name))
	return err
}

func (t *tx) DropBucket(name string) error {
	if t.Tx.Bucket([]byte(name)) == nil {
		return nil
	}
	return t.DeleteBucket([]byte(name))
}

type bucket struct{ *bbolt.Bucket }

func (b bucket) Cursor(_, _ []byte) kv.Cursor { return cursor{b.Bucket.Cursor()} }

type cursor struct{ *bbolt.Cursor }

func (c cursor) Before(key []byte) (k, v []byte) {
	if key == nil {
		return c.Last()
	}
	k, _ = c.Seek(key)
	if k == nil {
		return c.Last()
	}
	return c.Prev()
}

type recordedBucket struct {
	bucket
	name    string
	changed changes
}

func (b recordedBucket) Put(key, value []byte) error {
	b.changed[pairKey{b.name, string(key)}] = true
	return b.bucket.Put(key, value)
}

func (b recordedBucket) Delete(key []byte) error {
	b.changed[pairKey{b.name, string(key)}] = true
	return b.bucket.Delete(key)
}

type view struct {
	tx
	handle *os.File
}

func (v *view) End() { _ = v.Rollback() } // of a view, it cannot fail

// CheckPages reports what is wrong with the tree of every bucket. bbolt's own check must not run while somebody writes:
// it reads the list of free pages that the writer changes, and a fault ends the process.
func (v *view) CheckPages() []error {
	root := uint64(v.Cursor().Bucket().Root())
	return rescue.At(v.handle, v.Size(), int64(v.DB().Info().PageSize), root).Check()
}
