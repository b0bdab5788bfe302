package memory

import (
	"bytes"
	"context"
	"iter"
	"time"

	"synthbot/core"
)

// Limits of one step of a long change: a view's, and a transaction's, which
// everybody who writes meanwhile has to wait for.
const (
	sweepLook  = 20000 // pairs looked at
	sweepWrite = 500   // pairs changed
	sweepTime  = 5 * time.Millisecond
)

// sweep goes through the pairs of a bucket from start to end, which may be nil,
// in small steps: those that match are handed to change, in transactions that
// others share. What is added meanwhile may be missed.
func sweep(ctx context.Context, db *DB, bucket string, start, end []byte,
	match func(k, v []byte) bool, change func(t *tx, k, v []byte)) error {
	for more := true; more; {
		keys, next, err := look(ctx, db, bucket, start, end, match)
		if err != nil {
			return err
		}
		err = changeAll(ctx, db, keys, func(t *tx, k []byte) {
			// It may have changed since it was looked at.
			v := bytes.Clone(t.bucket(bucket).Get(k))
			if has(t.bucket(bucket), k) && match(k, v) {
				change(t, k, v)
			}
		})
		if err != nil {
			return err
		}
		start, more = next, next != nil
	}
	return nil
}

// changeAll calls change for each of many things, in as many transactions as it
// takes for none of them to last long. A transaction that fails is tried again, so
// change may see a thing twice.
func changeAll[T any](ctx context.Context, db *DB, all []T, change func(*tx, T)) error {
	for len(all) > 0 {
		done := 0
		err := db.write(ctx, &job{run: func(t *tx) error {
			done = 0
			for start := time.Now(); done < min(len(all), sweepWrite); done++ {
				if done > 0 && time.Since(start) > sweepTime {
					break
				}
				change(t, all[done])
			}
			return nil
		}})
		if err != nil {
			return err
		}
		all = all[done:]
	}
	return nil
}

// look collects the keys of one step, and where the next one begins; nil at the
// end.
func look(ctx context.Context, db *DB, bucket string, start, end []byte,
	match func(k, v []byte) bool) (keys [][]byte, next []byte, err error) {
	err = db.view(ctx, func(v *view) error {
		return db.file.guard(func() error {
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

// remove takes an entry out of its log. Its id stays known. The time of the head
// stays, even if the entry was the newest: see newestTimes.
func (t *tx) remove(p place, seq uint64) {
	key := seqKey(p.key, seq)
	if t.bucket(bucketLog).Get(key) == nil {
		return
	}
	t.bucket(bucketLog).Delete(key)
	t.bucket(bucketDue).Delete(key)
	t.head(p.key).count--
}

// newestTimes sets the times of places' heads to those of their newest entries,
// after entries were removed. It looks in a view, since a cursor cannot go back in
// a transaction that has deleted; a place that changed since then is left alone.
func newestTimes(ctx context.Context, db *DB, places iter.Seq[core.Path]) error {
	seen, times := make(map[string]head), make(map[string]time.Time)
	err := db.view(ctx, func(v *view) error {
		for path := range places {
			key := placeKey(path)
			h, ok := v.readHead(key)
			last := v.tail(path, key)
			if ok && last.step() && !h.time.Equal(last.at.Message.Time) {
				seen[string(key)], times[string(key)] = h, last.at.Message.Time
			}
		}
		return nil
	})
	if err != nil || len(seen) == 0 {
		return err
	}
	return db.write(ctx, &job{run: func(t *tx) error {
		for key, before := range seen {
			h := t.head([]byte(key))
			if h.last == before.last && h.count == before.count {
				h.time = times[key]
			}
		}
		return nil
	}})
}

// headsBelow lists the places at or below root with their heads.
func (t *tx) headsBelow(root core.Path) map[core.Path]head {
	heads := make(map[core.Path]head)
	for path, value := range t.places(root) {
		heads[path] = t.headOf(placeKey(path), value)
	}
	return heads
}
