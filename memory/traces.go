package memory

import (
	"context"
	"time"
)

const (
	tidyHour  = 4               // of the day, in which the file is written anew if it must be
	tidyClose = 5 * time.Second // for the same when the database is closed
)

// traces reports whether traces of what was forgotten are left in the file.
func (db *DB) traces() (left bool) {
	_ = db.view(context.Background(), func(v *view) error { // errors are reported elsewhere
		left = v.bucket(bucketMeta).Get([]byte(metaUntidy)) != nil
		return nil
	})
	return left
}

// startTidying lets the file be written anew, until ctx ends, so that no trace of what
// was forgotten is left in it: after the start, and every night.
func (db *DB) startTidying(ctx context.Context) {
	due := db.traces()
	db.work.Go(func() {
		tick := time.NewTicker(time.Hour)
		defer tick.Stop()
		for ; ; due = db.clock().Hour() == tidyHour {
			if due {
				db.tidy(ctx)
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
}

// tidy writes the file anew if there are traces.
func (db *DB) tidy(ctx context.Context) {
	if !db.traces() {
		return
	}
	if _, _, err := db.Compact(ctx); err != nil && ctx.Err() == nil {
		db.log.Error("traces of what was forgotten stay in the file until the next night",
			"file", db.file.name, "err", err)
	}
}
