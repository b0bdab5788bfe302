package kv

import (
	"bytes"
	"fmt"
)

const copyStep = 4 << 20

// Copy copies all buckets of a transaction into an engine that nothing else uses. It writes about 4 MiB per
// transaction. After each one it calls progress with the bucket and how many of its pairs are copied so far.
func Copy(to Engine, from Tx, progress func(bucket string, pairs int)) error {
	for _, name := range from.Buckets() {
		pairs := 0
		for start := []byte{}; start != nil; {
			var n int
			var next []byte
			err := to.Update(func(t Tx) (err error) {
				n, next, err = CopySome(t, from, name, start)
				return err
			})
			if err != nil {
				return fmt.Errorf("copy of %s: %w", name, err)
			}
			pairs, start = pairs+n, next
			progress(name, pairs)
		}
	}
	return nil
}

// CopySome copies the pairs of a bucket from a key on, about 4 MiB of them, or the rest and the bucket's
// counter. It returns how many there were, and the key with which to go on; nil: there are no more.
func CopySome(to, from Tx, bucket string, start []byte) (pairs int, next []byte, err error) {
	if err := to.MakeBucket(bucket); err != nil {
		return 0, nil, err
	}
	source, target, size := from.Bucket(bucket), to.Bucket(bucket), 0
	c := source.Cursor(nil, nil)
	for k, v := c.Seek(start); k != nil; k, v = c.Next() {
		if size >= copyStep {
			return pairs, bytes.Clone(k), nil
		}
		if err := target.Put(k, v); err != nil {
			return 0, nil, err
		}
		size += len(k) + len(v)
		pairs++
	}
	return pairs, nil, target.SetSequence(source.Sequence())
}
