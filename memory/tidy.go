package memory

import (
	"context"
	"time"
)

// tidyPause is how long the file is left alone after it was written anew in the
// background: whoever writes waits meanwhile, and people may ask to be forgotten
// as often as they like.
const tidyPause = 10 * time.Minute

// Tidy lets the file be written anew in the background, so that no trace of what
// was forgotten is left in it: soon, but not again and again, and at the latest
// when the database is closed. It returns at once.
func (db *DB) Tidy() {
	db.untidy.Store(true)
	select {
	case db.tidying <- struct{}{}:
	default:
	}
}

// traces reports whether a former life left traces of what was forgotten.
func (db *DB) traces() (left bool) {
	_ = db.view(context.Background(), func(v *view) error { // what cannot be read is told elsewhere
		left = v.bucket(bucketMeta).Get([]byte(metaUntidy)) != nil
		return nil
	})
	return left
}

// startTidying writes the file anew when Tidy was called, until ctx ends.
func (db *DB) startTidying(ctx context.Context) {
	db.work.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-db.tidying:
			}
			db.tidy(ctx)
			select {
			case <-ctx.Done():
				return
			case <-time.After(tidyPause):
			}
			if db.untidy.Load() {
				db.Tidy() // it failed, or somebody was forgotten meanwhile
			}
		}
	})
}

// tidy writes the file anew if that is still to be done.
func (db *DB) tidy(ctx context.Context) {
	if !db.untidy.Swap(false) {
		return
	}
	if _, _, err := db.Compact(ctx); err != nil && ctx.Err() == nil {
		db.untidy.Store(true)
		db.log.Error("traces of what was forgotten stay in the file until the next time", "file", db.file, "error", err)
	}
}
