package memory

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
)

// spentInAll returns the CPU time of this process.
func spentInAll(t *testing.T) time.Duration {
	t.Helper()
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		t.Skip(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

type operation struct {
	name string
	do   func(db *DB, n int) (entries int, err error)
}

// TestLongLogs compares a log with one a hundred times as long: appending, reading and deleting
// take at most a few times as much CPU time for each entry. -v shows the times, and -huge uses logs
// of 10,000 and 1,000,000 entries.
func TestLongLogs(t *testing.T) {
	short := coretest.Sample(1_000, 100)
	if *huge {
		short = 10_000
	}
	some := coretest.Sample(500, 100)
	operations := []operation{
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
	var slow []string
	for range 3 { // retries, since caches are cold on a busy machine
		slow = nil
		few, many := costs(t, operations, short), costs(t, operations, 100*short)
		for i, op := range operations {
			ratio := many[i].Seconds() / few[i].Seconds()
			line := fmt.Sprintf("%-25s %8v for each of %d entries, %8v of %d: %.1f times as much",
				op.name, few[i], short, many[i], 100*short, ratio)
			t.Log(line)
			if ratio > 5 {
				slow = append(slow, line)
			}
		}
		if slow == nil {
			return
		}
	}
	t.Error(strings.Join(slow, "\n"))
}

// costs returns the CPU time of each operation for an entry in a log of n entries.
func costs(t *testing.T, operations []operation, n int) (spent []time.Duration) {
	t.Helper()
	db := open(t, t.TempDir())
	talk(t, db, "x", n)
	for _, op := range operations {
		before := spentInAll(t)
		entries, err := op.do(db, n)
		if err != nil {
			t.Fatalf("%s: %v", op.name, err)
		}
		spent = append(spent, (spentInAll(t)-before)/time.Duration(entries))
	}
	if left := len(everything(t, db)[alone]); left > 0 {
		t.Errorf("%d entries were not deleted", left)
	}
	return spent
}
