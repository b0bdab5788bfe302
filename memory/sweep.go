package memory

import (
	"bytes"
	"context"

	"synthbot/core"
)

// Limits of one step of a sweep: none holds the writer up.
const (
	sweepLook  = 20000 // pairs looked at in one view
	sweepWrite = 500   // pairs changed in one transaction
)

// sweep goes through the pairs of a bucket from start to end, which may be nil,
// in small steps: those that match are handed to change, in transactions that
// others share. What is added meanwhile may be missed.
func (db *DB) sweep(ctx context.Context, bucket string, start, end []byte,
	match func(k, v []byte) bool, change func(t *tx, k, v []byte) error) (changed int, err error) {
	for more := true; more; {
		var keys [][]byte
		keys, start, err = db.look(ctx, bucket, start, end, match)
		if err != nil {
			return changed, err
		}
		more = start != nil
		if len(keys) == 0 {
			continue
		}
		n := 0
		err = db.write(ctx, &job{run: func(t *tx) error {
			n = 0
			for _, k := range keys {
				// It may have changed since it was looked at.
				v := bytes.Clone(t.bucket(bucket).Get(k))
				if v == nil && !has(t.bucket(bucket), k) || !match(k, v) {
					continue
				}
				if err := change(t, k, v); err != nil {
					return err
				}
				n++
			}
			return nil
		}})
		if err != nil {
			return changed, err
		}
		changed += n
	}
	return changed, nil
}

// look collects the keys of one step, and where the next one begins; nil at the
// end.
func (db *DB) look(ctx context.Context, bucket string, start, end []byte, match func(k, v []byte) bool) (keys [][]byte, next []byte, err error) {
	err = db.view(ctx, func(v *view) error {
		return db.guard(func() error {
			looked := 0
			c := v.bucket(bucket).Cursor()
			for k, value := c.Seek(start); below(k, end); k, value = c.Next() {
				if looked++; looked > sweepLook || len(keys) == sweepWrite {
					next = bytes.Clone(k)
					break
				}
				if match(k, value) {
					keys = append(keys, bytes.Clone(k))
				}
			}
			return nil
		})
	})
	return keys, next, err
}

// remove takes an entry out of its log. Its id stays known.
func (t *tx) remove(p place, seq uint64) error {
	key := seqKey(p.key, seq)
	if t.bucket(bucketLog).Get(key) == nil {
		return nil
	}
	if err := t.bucket(bucketLog).Delete(key); err != nil {
		return err
	}
	if err := t.bucket(bucketDue).Delete(key); err != nil {
		return err
	}
	h := t.head(p.key)
	h.count--
	last := t.tail(p.path, p.key)
	if !last.back() {
		return nil
	}
	if _, newest, err := cutSeq(last.key); err != nil || newest > seq {
		return err
	}
	if l, ok := t.readLine(p.path, last.key, last.value); ok {
		h.time = l.Message.Time
	}
	return nil
}

// below lists the places at or below root with their heads.
func (v *view) headsBelow(root core.Path) (map[core.Path]head, error) {
	heads := make(map[core.Path]head)
	from, to := subtree(root)
	c := v.bucket(bucketPlaces).Cursor()
	for k, value := c.Seek(from); below(k, to); k, value = c.Next() {
		path, err := placeOf(k)
		if err != nil {
			return nil, err
		}
		heads[path] = v.headOf(k, value)
	}
	return heads, nil
}
