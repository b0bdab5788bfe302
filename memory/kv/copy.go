package kv

import (
	"bytes"
	"fmt"
)

// copyStep is how many bytes of pairs Copy writes in one transaction.
const copyStep = 4 << 20

// Copy copies all buckets of a transaction into an engine that nothing else uses. It writes about 4 MiB
// per transaction. After each one it calls progress, if that is not nil, with the bucket and how many of
// its pairs are copied so far.
func Copy(to Engine, from Tx, progress func(bucket string, pairs int)) error {
	for _, name := range from.Buckets() {
		for s := (slice{bucket: name, more: true}); s.more; {
			var next slice
			err := to.Update(func(t Tx) (err error) {
				next, err = s.copy(t, from.Bucket(name))
				return err
			})
			if err != nil {
				return fmt.Errorf("copy of %s: %w", name, err)
			}
			s = next
			if progress != nil {
				progress(name, s.pairs)
			}
		}
	}
	return nil
}

// slice is how far a bucket is copied.
type slice struct {
	bucket string
	pairs  int    // copied so far
	start  []byte // the next key to copy; nil: the first
	more   bool   // pairs are left
}

// copy copies up to copyStep bytes of pairs, and returns what is left.
func (s slice) copy(t Tx, from Bucket) (next slice, err error) {
	if err := t.MakeBucket(s.bucket); err != nil {
		return s, err
	}
	to, size, c := t.Bucket(s.bucket), 0, from.Cursor(nil, nil)
	for k, v := c.Seek(s.start); k != nil; k, v = c.Next() {
		if size >= copyStep {
			s.start = bytes.Clone(k)
			return s, nil
		}
		if err := to.Put(k, v); err != nil {
			return s, err
		}
		size += len(k) + len(v)
		s.pairs++
	}
	s.more = false
	return s, to.SetSequence(from.Sequence())
}
