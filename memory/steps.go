package memory

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"synthbot/core"
)

// Limits of one step of a long change, for which other writers wait.
const (
	maxSweepReads  = 20000 // pairs read in one view
	maxSweepWrites = 500   // pairs changed in one transaction
	maxStepTime    = 5 * time.Millisecond
)

// sweep goes through the pairs of a bucket from start to end, which may be nil, in small
// steps, and calls change for those that match, in transactions shared with others. It may
// miss pairs that are added meanwhile.
func sweep(ctx context.Context, db *DB, bucket string, start, end []byte,
	match func(k, v []byte) bool, change func(t *tx, k, v []byte)) error {
	for more := true; more; {
		var keys [][]byte
		more = false
		err := db.view(ctx, func(v *view) error {
			looked := 0
			for k, value := range v.bucket(bucket).pairs(start, end) {
				if looked++; looked > maxSweepReads || len(keys) == maxSweepWrites {
					start, more = bytes.Clone(k), true
					break
				}
				if match(k, value) {
					keys = append(keys, bytes.Clone(k))
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		err = changeAll(ctx, db, keys, func(t *tx, k []byte) {
			// It may have changed since it was read.
			v := bytes.Clone(t.bucket(bucket).Get(k))
			if has(t.bucket(bucket), k) && match(k, v) {
				change(t, k, v)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// deleteWhere deletes the pairs that match, as sweep does.
func deleteWhere(ctx context.Context, db *DB, bucket string, start, end []byte, match func(k, v []byte) bool) error {
	return sweep(ctx, db, bucket, start, end, match, func(t *tx, k, _ []byte) { t.bucket(bucket).Delete(k) })
}

// changeAll calls change for each of many things, in short transactions. If one fails and is
// tried again, change is called again.
func changeAll[T any](ctx context.Context, db *DB, all []T, change func(*tx, T)) error {
	for len(all) > 0 {
		done := 0
		err := db.update(ctx, func(t *tx) {
			done = 0
			for start := time.Now(); done < min(len(all), maxSweepWrites); done++ {
				if done > 0 && time.Since(start) > db.stepTime {
					break
				}
				change(t, all[done])
			}
		})
		if err != nil {
			return err
		}
		all = all[done:]
	}
	return nil
}

// remove deletes an entry. Its id stays known. The time of the head stays, even if the entry
// was the newest: see correctHeadTimes.
func (t *tx) remove(place []byte, seq uint64) {
	key := seqKey(place, seq)
	if t.bucket(bucketLog).Get(key) == nil {
		return
	}
	t.head(place).count-- // before: a head that cannot be read is counted anew
	t.bucket(bucketLog).Delete(key)
	t.bucket(bucketDue).Delete(key)
}

// correctHeadTimes sets the times of places' heads to those of their newest entries, after
// entries were deleted. It reads in a view, since a cursor cannot go back in a transaction
// that has deleted. A place that changed since then is skipped.
func correctHeadTimes(ctx context.Context, db *DB, places iter.Seq[core.Path]) error {
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
	if err != nil {
		return err
	}
	return changeAll(ctx, db, slices.Collect(maps.Keys(seen)), func(t *tx, key string) {
		h, before := t.head([]byte(key)), seen[key]
		if h.last == before.last && h.count == before.count {
			h.time = times[key]
		}
	})
}
