package memory

import (
	"bytes"
	"context"
	"time"
)

// Limits of one step of a long change, for which other writers wait.
const (
	maxSweepReads = 20000 // pairs read in one view
	maxStepWrites = 750   // pairs written, each perhaps in a page of its own
	maxStepTime   = 5 * time.Millisecond
)

// sweep reads the pairs of a bucket from start to end, which may be nil, in small steps, and calls change for those
// that match, in short transactions. A nil match matches all pairs. It may miss pairs that are added meanwhile.
func sweep(ctx context.Context, db *DB, bucket string, start, end []byte,
	match func(k, v []byte) bool, change func(t *tx, k, v []byte)) error {
	if match == nil {
		match = func(_, _ []byte) bool { return true }
	}
	for more := true; more; {
		more = false
		find := func(v *view) (keys [][]byte) {
			looked := 0
			for k, value := range v.bucket(bucket).pairs(start, end) {
				if looked++; looked > maxSweepReads {
					start, more = bytes.Clone(k), true
					break
				}
				if match(k, value) {
					keys = append(keys, bytes.Clone(k))
				}
			}
			return keys
		}
		err := changeFound(ctx, db, find, func(t *tx, k []byte) {
			// It may have changed since it was read.
			v := bytes.Clone(t.bucket(bucket).Get(k))
			if hasKey(t.bucket(bucket), k) && match(k, v) {
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

// changeFound calls change for what find finds in a view, as changeAll does.
func changeFound[T any](ctx context.Context, db *DB, find func(*view) []T, change func(*tx, T)) error {
	var all []T
	if err := db.read(ctx, func(v *view) { all = find(v) }); err != nil {
		return err
	}
	return changeAll(ctx, db, all, change)
}

// changeAll calls change for each of many things, in short transactions; again if one fails and is tried again.
func changeAll[T any](ctx context.Context, db *DB, all []T, change func(*tx, T)) error {
	for len(all) > 0 {
		done := 0
		err := db.update(ctx, func(t *tx) {
			done = 0
			start, before := time.Now(), t.writes
			for done < len(all) {
				change(t, all[done])
				done++
				writes := t.writes - before + len(t.heads) // which are written at the end
				if time.Since(start) > db.stepTime || writes > maxStepWrites {
					break
				}
			}
		})
		if err != nil {
			return err
		}
		all = all[done:]
	}
	return nil
}
