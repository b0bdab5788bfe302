package memory

import (
	"context"
	"time"
)

const (
	traceHour    = 4               // of the day, in which the file is rewritten
	traceTimeout = 5 * time.Second // for rewriting the file on Close
)

// hasTraces reports whether traces of what was forgotten are left in the file.
func hasTraces(db *DB) (left bool) {
	_ = db.view(context.Background(), func(v *view) error { // errors are reported elsewhere
		left = v.bucket(bucketMeta).Get([]byte(metaTraces)) != nil
		return nil
	})
	return left
}

// startTraceRemoval rewrites the file after the start and every night, until ctx ends, if it
// has traces of what was forgotten.
func (db *DB) startTraceRemoval(ctx context.Context) {
	due, started := hasTraces(db), false
	db.repeat(ctx, nil, func(ctx context.Context) time.Duration {
		if started {
			due = db.clock().Hour() == traceHour
		}
		started = true
		if due {
			db.removeTraces(ctx)
		}
		return time.Hour / 2
	})
}

// removeTraces rewrites the file if it has traces.
func (db *DB) removeTraces(ctx context.Context) {
	if !hasTraces(db) {
		return
	}
	if _, _, err := db.Compact(ctx); err != nil && ctx.Err() == nil {
		db.log.Error("traces of what was forgotten stay in the file until the next night",
			"file", db.file.name, "err", err)
	}
}
