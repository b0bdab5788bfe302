package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"synthbot/core"
	"synthbot/memory/kv"
)

const (
	traceHour    = 4               // of the day, in which the file is rewritten
	traceTimeout = 5 * time.Second // for rewriting the file on Close
)

// Compact rewrites the file without free space and without traces of deleted data, and returns
// its size before and after. Reading and writing go on meanwhile; writers wait only for the
// last step, which copies the latest changes. The disk must have room for both files.
func (db *DB) Compact(ctx context.Context) (before, after int64, err error) {
	traces := tracesOf(db)
	db.epochs.mu.Lock()
	forgetting := len(db.epochs.inProgress) > 0 // the copy may have traces of them
	db.epochs.mu.Unlock()
	before, after, err = db.engine.Engine.Compact(ctx, func(t kv.Tx) error {
		meta := t.Bucket(bucketMeta)
		if forgetting || !bytes.Equal(meta.Get([]byte(metaTraces)), traces) {
			return nil
		}
		return meta.Delete([]byte(metaTraces))
	})
	if err != nil {
		return 0, 0, fmt.Errorf("compact: %w", db.engine.withName(err))
	}
	return before, after, nil
}

// tracesOf returns the mark of the latest Forget; nil if the file has no traces of forgotten people.
func tracesOf(db *DB) (mark []byte) {
	_ = db.read(context.Background(), func(v *view) { // errors are reported elsewhere
		mark = bytes.Clone(v.bucket(bucketMeta).Get([]byte(metaTraces)))
	})
	return mark
}

// startTraceRemoval removes traces of forgotten people after the start and every night, until ctx ends.
func (db *DB) startTraceRemoval(ctx context.Context) {
	due, started := tracesOf(db) != nil, false
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

func (db *DB) removeTraces(ctx context.Context) {
	if tracesOf(db) == nil {
		return
	}
	if _, _, err := db.Compact(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, core.ErrClosed) {
		db.log.Error("traces of what was forgotten stay in the file until the next night",
			"file", db.engine.name, "err", err)
	}
}
