package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
)

// longWork returns the operations that take several transactions.
func longWork(t *testing.T) map[string]func(context.Context, *DB) error {
	t.Helper()
	source := open(t, t.TempDir())
	populated(t, source)
	var all bytes.Buffer
	if err := source.Export(t.Context(), &all, core.Path{}); err != nil {
		t.Fatal(err)
	}
	return map[string]func(context.Context, *DB) error{
		"forget a person": func(ctx context.Context, db *DB) error { return db.Forget(ctx, jay) },
		"forget a place":  func(ctx context.Context, db *DB) error { return db.Forget(ctx, group) },
		"forget a moved place": func(ctx context.Context, db *DB) error {
			to := core.MustPath("chat/super")
			err := db.Commit(t.Context(), moves(group, to))
			return errors.Join(err, db.Forget(ctx, to))
		},
		"forget everybody": func(ctx context.Context, db *DB) error { return db.Forget(ctx, core.Path{}) },
		"prune": func(ctx context.Context, db *DB) error {
			return db.Prune(ctx, Config{Messages: 1, Journal: time.Hour})
		},
		"compact": compacted,
		"export":  func(ctx context.Context, db *DB) error { return db.Export(ctx, io.Discard, jay) },
		"import": func(ctx context.Context, db *DB) error {
			_, _, err := db.Import(ctx, strings.NewReader(all.String()), nil)
			return err
		},
	}
}

// TestWorkIsInterrupted: an operation of several transactions returns its context's error after
// whichever transaction it ends.
func TestWorkIsInterrupted(t *testing.T) {
	for name, work := range longWork(t) {
		t.Run(name, func(t *testing.T) {
			transactions, step := int64(2), int64(coretest.Sample(1, 6))
			for last := int64(0); last < transactions; last += step { // 0: not interrupted
				var begun atomic.Int64
				ctx, cancel := context.WithCancel(t.Context())
				now := time.Now().AddDate(2, 0, 0)
				db := openWith(t, t.TempDir(), Options{Clock: func() time.Time {
					if begun.Add(1) == last {
						cancel()
					}
					return now
				}})
				populated(t, db)
				begun.Store(0)
				err := work(ctx, db)
				cancel()
				switch {
				case last == 0 && err != nil:
					t.Fatal(err)
				case last == 0:
					transactions = begun.Load()
				case begun.Load() <= last && err == nil: // the number of transactions depends on their time
				case !errors.Is(err, context.Canceled):
					t.Errorf("after transaction %d of %d: %v, want context.Canceled", last, transactions, err)
				}
				begun.Store(1 << 40)
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestDiskFailsDuringWork: an operation of several transactions returns the disk's error from
// whichever write fails, and can be repeated.
func TestDiskFailsDuringWork(t *testing.T) {
	for name, work := range longWork(t) {
		if name == "export" || name == "compact" {
			continue // one only reads, the other writes to another file
		}
		t.Run(name, func(t *testing.T) {
			commits, step := 2, coretest.Sample(1, 6)
			for last := 0; last < commits; last += step {
				db := openWith(t, t.TempDir(), Options{Clock: func() time.Time { return time.Now().AddDate(2, 0, 0) }})
				populated(t, db)
				d := interceptWrites(t, db)
				begun := 0
				d.onWrite(func(buf []byte, at int64) (int, error) {
					if isMeta(at) {
						begun++
					}
					if last > 0 && begun >= last {
						return 0, syscall.EIO
					}
					return handleOf(db).WriteAt(buf, at)
				})
				err := work(t.Context(), db)
				switch d.onWrite(nil); {
				case last == 0:
					commits = begun
				case !strings.Contains(fmt.Sprint(err), syscall.EIO.Error()):
					t.Errorf("commit %d of %d: %v, want EIO", last, commits, err)
				}
				if err := work(t.Context(), db); err != nil {
					t.Errorf("the second attempt: unexpected error %v", err)
				}
				if name == "forget a person" {
					want(t, fmt.Sprintf("what is left of a private place after commit %d failed", last), remains(t, db, alone), nil)
				}
			}
		})
	}
}

// remains lists the buckets that hold something of a place.
func remains(t *testing.T, db *DB, place core.Path) (left []string) {
	t.Helper()
	err := db.view(t.Context(), func(v *view) error {
		for _, name := range buckets() {
			for range v.bucket(name).prefixed(placeKey(place)) {
				left = append(left, name)
				break
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return left
}
