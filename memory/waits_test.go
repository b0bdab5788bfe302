package memory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/passage"
)

// Limits of one step of a long operation, for which other writers wait.
const (
	stepLooks = 5_000                 // cursors: one for each pair that is read or written
	stepPages = 1_000                 // pages that are written
	stepTime  = 50 * time.Millisecond // of CPU time
)

// TestWritersHardlyWait: long operations run in small steps. The log shows how long a writer and a
// reader wait meanwhile, how long the same takes with plain bbolt in another file, and the CPU time
// of the longest step. -v runs the full size, and -huge ten times as much.
func TestWritersHardlyWait(t *testing.T) {
	if watched {
		t.Skip("skipped: the race detector changes what is measured")
	}
	n, places := coretest.Sample(10_000, 1_200), coretest.Sample(40_000, 1_200)
	if *huge {
		n, places = 100_000, 40_000
	}
	backup := func(_ context.Context, db *DB) error { _, err := db.WriteTo(io.Discard); return err }
	forget := func(path core.Path) func(context.Context, *DB) error {
		return func(ctx context.Context, db *DB) error { return db.Forget(ctx, path) }
	}
	lines := func(t *testing.T, db *DB) { talk(t, db, "x", n) }
	for _, large := range []struct {
		name string
		fill func(*testing.T, *DB)
		do   func(context.Context, *DB) error
	}{
		{"nothing", lines, func(context.Context, *DB) error {
			time.Sleep(coretest.Sample(time.Second, time.Millisecond))
			return nil
		}},
		{"backup", lines, backup},
		{"compaction", lines, compacted},
		{"compaction and backup", lines, func(ctx context.Context, db *DB) error {
			done := make(chan error)
			go func() { done <- backup(ctx, db) }()
			return errors.Join(compacted(ctx, db), <-done)
		}},
		{"retention", lines, func(ctx context.Context, db *DB) error {
			return db.Prune(ctx, Config{Keep: []Retention{{Path: alone, Age: time.Hour}}})
		}},
		{"erasing a person", lines, forget(jay)},
		{"erasing a place", lines, forget(alone)},
		{"erasing everything", lines, forget(core.Path{})},
		{"erasing memories", func(t *testing.T, db *DB) { wordy(t, db, n/20) }, forget(jay)},
		{"erasing a person among many places", func(t *testing.T, db *DB) { scattered(t, db, places, core.Author{}) }, forget(jay)},
		{"erasing a person among moved places", func(t *testing.T, db *DB) { moved(t, db, coretest.Sample(n, 600)) }, forget(jay)},
		{"erasing moved places", func(t *testing.T, db *DB) { moved(t, db, coretest.Sample(n, 600)) }, forget(core.MustPath("chat/new"))},
		{"erasing the last lines of many places", func(t *testing.T, db *DB) {
			scattered(t, db, places/2, core.Author{})
			scattered(t, db, places/2, core.Author{ID: "2000"})
		}, forget(ann)},
		{"reading documents", func(*testing.T, *DB) {}, func(ctx context.Context, db *DB) error {
			return readMany(ctx, db, coretest.Sample(n/20, 15))
		}},
		{"erasing places", func(t *testing.T, db *DB) { scattered(t, db, n/100, core.Author{}) }, forget(core.MustPath("chat/far"))},
	} {
		t.Run(large.name, func(t *testing.T) {
			spent := time.Hour
			for range 3 { // retries, since a busy machine slows some steps
				db := openWith(t, t.TempDir(), Options{Clock: func() time.Time { return day.Add(1000 * time.Hour) }})
				large.fill(t, db)
				boltOf(db).NoSync = coretest.Sample(0, 1) == 1
				s := watchSteps(db)
				w := waits(t, db, func() error { return large.do(t.Context(), db) })
				t.Logf("%6.0f ms; waits: writers %v, plain bbolt %v, readers %v; %d steps, at most %.1f ms of the processor, %d pages, %d looks",
					ms(w.took), w.writes, w.plain, w.reads, s.n, ms(s.spent), s.pages, s.looks)
				if s.looks > stepLooks || s.pages > stepPages {
					t.Errorf("a step makes %d cursors and writes %d pages, which is too much", s.looks, s.pages)
				}
				spent = min(spent, s.spent)
				if spent <= stepTime {
					return
				}
			}
			t.Errorf("a step takes %v of CPU time, which is too much", spent)
		})
	}
}

func compacted(ctx context.Context, db *DB) error {
	_, _, err := db.Compact(ctx)
	return err
}

// wordy saves n memories of many words.
func wordy(t *testing.T, db *DB, n int) {
	t.Helper()
	for k := range n {
		var text strings.Builder
		for w := range 30 {
			fmt.Fprintf(&text, "word%d ", (k*7919+w*104729)%30011)
		}
		save(t, db, core.Fact{Text: text.String(), Origin: alone, By: jay})
	}
}

// readMany stores n documents of ten passages.
func readMany(ctx context.Context, db *DB, n int) error {
	for k := range n {
		d := passage.Document{Name: fmt.Sprint(k), Stamp: "1", Language: "en"}
		for p := range 10 {
			var text strings.Builder
			for w := range 100 {
				fmt.Fprintf(&text, "word%d ", (k*7919+p*1299709+w*104729)%30011)
			}
			d.Passages = append(d.Passages, passage.Passage{Text: text.String()})
		}
		if err := Passages(db).PutDocuments(ctx, "manual", d); err != nil {
			return err
		}
	}
	return nil
}

// scattered adds a message of a user in each of n places.
func scattered(t *testing.T, db *DB, n int, by core.Author) {
	t.Helper()
	b := &core.Batch{}
	for k := range n {
		e := message(core.MustPath(fmt.Sprint("chat/far/", k)), "1"+by.ID, "x")
		e.Message.Author, e.Message.Time = by, day.Add(time.Duration(len(by.ID)))
		b.Append = append(b.Append, e)
	}
	if err := db.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// moved moves n places, some with a running turn.
func moved(t *testing.T, db *DB, n int) {
	t.Helper()
	scattered(t, db, n, core.Author{ID: "2000"})
	b := &core.Batch{}
	for k := range n {
		from := core.MustPath(fmt.Sprint("chat/far/", k))
		b.Change = append(b.Change, core.Event{Kind: core.KindMigration,
			Message: core.Message{Path: from}, To: core.MustPath(fmt.Sprint("chat/new/", k))})
		if k%10 == 0 {
			b.Journal = append(b.Journal, opens(from, 1))
		}
		if len(b.Change) == 100 || k == n-1 {
			if err := db.Commit(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			b = &core.Batch{}
		}
	}
}

// stepsDone are the number of steps of a long operation and the largest values of one.
type stepsDone struct {
	n            int
	looks, pages int64
	spent        time.Duration // of CPU time, by the writer
}

// watchSteps records the steps of long operations. The result may be read after the operation and
// one more write.
func watchSteps(db *DB) *stepsDone {
	s := &stepsDone{}
	current, large := 0, false
	note := func(t *tx, j *job) {
		name, _, _ := strings.Cut(j.name, " ")
		b := boltTx(t)
		large = large && b.ID() == current || slices.Contains([]string{"forget", "retention", "documents"}, name)
		if b.ID() == current {
			return
		}
		current = b.ID()
		runtime.LockOSThread()
		before := spentHere()
		b.OnCommit(func() {
			defer runtime.UnlockOSThread()
			if !large {
				return
			}
			stats := b.Stats()
			s.n++
			s.looks, s.pages = max(s.looks, stats.GetCursorCount()), max(s.pages, stats.GetPageCount())
			s.spent = max(s.spent, spentHere()-before)
		})
	}
	_ = db.update(context.Background(), func(*tx) { db.writer.beforeJob = note }) // only the writer may set it
	return s
}

// spentHere returns the CPU time of this thread, or 0 if unknown.
func spentHere() time.Duration {
	const thread = 1 // RUSAGE_THREAD on Linux
	var use syscall.Rusage
	if syscall.Getrusage(thread, &use) != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }

// waited are sorted durations.
type waited []time.Duration

func (w waited) String() string {
	if len(w) == 0 {
		return "not measured"
	}
	return fmt.Sprintf("%.1f ms (1 %% %.1f, one %.1f)", ms(w[len(w)/2]), ms(w[len(w)*99/100]), ms(w[len(w)-1]))
}

type waiting struct {
	writes, plain, reads waited
	took                 time.Duration
}

// waits measures how long single writes and reads, and a writer of another file, wait during a long
// operation.
func waits(t *testing.T, db *DB, do func() error) (w waiting) {
	t.Helper()
	stop := make(chan struct{})
	var all sync.WaitGroup
	repeat := func(w *waited, f func(n int)) {
		all.Go(func() {
			for n := 0; ; n++ {
				*w = append(*w, timed(func() { f(n) }))
				select {
				case <-stop:
					slices.Sort(*w)
					return
				default:
				}
			}
		})
	}
	repeat(&w.writes, func(n int) { add(t, db, message(kitchen, fmt.Sprint("new", n), "x")) })
	if coretest.Sample(1, 0) == 1 {
		plain, leave := rawStore(t)
		defer leave()
		repeat(&w.plain, func(int) { plain(1) })
		repeat(&w.reads, func(int) {
			if err := db.read(t.Context(), func(v *view) { v.Last(kitchen, 20) }); err != nil {
				t.Error(err)
			}
		})
	}
	w.took = timed(func() {
		if err := do(); err != nil {
			t.Error(err)
		}
	})
	close(stop)
	all.Wait()
	return w
}
