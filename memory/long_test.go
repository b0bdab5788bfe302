package memory

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
)

// spentInAll is the processor's time that this process has had.
func spentInAll(t *testing.T) time.Duration {
	t.Helper()
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		t.Skip(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// TestLongLogs compares a log with one that is a hundred times as long: appending, reading
// and deleting take at most a few times as much of the processor for each entry. -v shows
// the times, and -huge takes logs of 10,000 and 1,000,000 entries.
func TestLongLogs(t *testing.T) {
	short := coretest.Sample(1_000, 300)
	if *huge {
		short = 10_000
	}
	const some = 500
	operations := []struct {
		name string
		do   func(db *DB, n int) (entries int, err error)
	}{
		{"append", func(db *DB, n int) (int, error) {
			for k := range some {
				e := message(alone, fmt.Sprint("new", k), "the last words")
				e.Message.Author.ID = "1000"
				add(t, db, e)
			}
			return some, nil
		}},
		{"read the last 50", func(db *DB, n int) (int, error) {
			return 50 * some, db.view(t.Context(), func(v *view) error {
				for range some {
					if _, err := v.Last(alone, 50); err != nil {
						return err
					}
				}
				return nil
			})
		}},
		{"answer", func(db *DB, n int) (int, error) {
			for k := range some {
				answered := []core.TurnID{{Path: alone, Seq: uint64(n - some + k)}}
				if err := db.Commit(t.Context(), &core.Batch{Answered: answered}); err != nil {
					return 0, err
				}
			}
			return some, nil
		}},
		{"delete the oldest half", func(db *DB, n int) (int, error) {
			return n / 2, db.Prune(t.Context(), Config{Messages: n / 2})
		}},
		{"forget the other half", func(db *DB, n int) (int, error) { return n / 2, db.Forget(t.Context(), jay) }},
	}
	spent := make([][]time.Duration, 2)
	for i, n := range []int{short, 100 * short} {
		db := open(t, t.TempDir())
		db.file.bolt.NoSync = true
		talk(t, db, "x", n)
		for _, op := range operations {
			before := spentInAll(t)
			entries, err := op.do(db, n)
			if err != nil {
				t.Fatalf("%s: %v", op.name, err)
			}
			spent[i] = append(spent[i], (spentInAll(t)-before)/time.Duration(entries))
		}
		if left := len(everything(t, db)[alone]); left > 0 {
			t.Errorf("%d entries are left", left)
		}
	}
	for i, op := range operations {
		ratio := spent[1][i].Seconds() / spent[0][i].Seconds()
		t.Logf("%-25s %8v for each of %d entries, %8v of %d: %.1f times as much",
			op.name, spent[0][i], short, spent[1][i], 100*short, ratio)
		if ratio > 5 {
			t.Errorf("%s is %.1f times as slow in a log that is 100 times as long", op.name, ratio)
		}
	}
}
