package memory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"synthbot/core"
)

// TestCompactWhileItIsRead: a view neither keeps compaction from ending nor others from
// reading and writing, and goes on with what it saw.
func TestCompactWhileItIsRead(t *testing.T) {
	db := furnished(t, t.TempDir())
	before := len(everything(t, db))
	err := db.view(t.Context(), func(v *view) error {
		compacted := make(chan error)
		go func() {
			_, _, err := db.Compact(t.Context())
			compacted <- err
		}()
		if err := <-compacted; err != nil {
			return err
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			add(t, db, message(kitchen, "new", "written beside an old view"))
			want(t, "places that others see", len(everything(t, db)), before+1)
		}()
		<-done
		heads, err := v.Places(core.Path{})
		want(t, "places that the view sees", len(heads), before)
		want(t, "open files", len(db.held), 1)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "files that are held", len(db.held), 0)
	checked := db.Check(t.Context())
	if err := errors.Join(checked, boltCheck(db)); err != nil {
		t.Error(err)
	}
}

// TestCompactWhileItIsWritten: all that is added, changed, deleted and counted meanwhile
// is in the copy.
func TestCompactWhileItIsWritten(t *testing.T) {
	db := furnished(t, t.TempDir())
	stop := make(chan struct{})
	var all sync.WaitGroup
	counts := make([]int, 4)
	for w := range counts {
		all.Go(func() {
			place := core.MustPath(fmt.Sprint("busy/", w))
			for n := 0; ; n++ {
				select {
				case <-stop:
					counts[w] = n
					return
				default:
				}
				add(t, db, message(place, fmt.Sprint(n), "as it was said"))
				change := core.Event{Kind: core.KindEdit, Message: message(place, fmt.Sprint(n), fmt.Sprint("edited ", n)).Message}
				if n%3 == 0 {
					change = core.Event{Kind: core.KindDeletion, Message: core.Message{Path: place}, Target: fmt.Sprint(n)}
				}
				if err := db.Commit(t.Context(), &core.Batch{Change: []core.Event{change}}); err != nil {
					t.Error(err)
				}
				if f := save(t, db, Fact{Text: fmt.Sprint("fact ", n), Origin: place}); n%2 == 0 {
					if err := db.DropFact(t.Context(), f.ID, place); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for range 5 {
		if _, _, err := db.Compact(t.Context()); err != nil {
			t.Error(err)
		}
		if err := db.Check(t.Context()); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	all.Wait()
	entries := everything(t, db)
	for w, n := range counts {
		place := core.MustPath(fmt.Sprint("busy/", w))
		want(t, fmt.Sprint(place), len(entries[place]), n)
		for i, e := range entries[place] {
			text := fmt.Sprint("edited ", i)
			if i%3 == 0 {
				text = ""
			}
			want(t, fmt.Sprint(place, " ", i), e.Message.Text, text)
		}
	}
	last := save(t, db, Fact{Text: "the last", Origin: kitchen})
	number, err := factNumber(last.ID)
	total := 1
	for _, n := range counts {
		total += n
	}
	want(t, "numbers of facts", number, uint64(total))
	if err := errors.Join(err, boltCheck(db)); err != nil {
		t.Error(err)
	}
}

// TestForgottenWhileCompacting: who is forgotten while the file is copied may stand in
// the copy, so it is copied once more the next time.
func TestForgottenWhileCompacting(t *testing.T) {
	db := furnished(t, t.TempDir())
	populated(t, db)
	c := &compaction{db: db, ctx: t.Context(), fresh: &DB{file: db.file + compactSuffix, log: db.log}}
	err := db.write(t.Context(), &job{alone: func() error { db.changed = make(changes); return nil }})
	if err == nil {
		err = c.copy()
	}
	if err := errors.Join(err, db.Forget(t.Context(), jay)); err != nil {
		t.Fatal(err)
	}
	err = db.write(t.Context(), &job{alone: func() error { _, _, err := c.finish(); return err }})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "traces", db.traces(), true)
	traces(t, db, "JAYSECRET", "1000")
	want(t, "traces", db.traces(), false)
}

// TestCommitsAreSyncedAfterCompacting: the copy is made without syncs; what is written
// afterwards is not.
func TestCommitsAreSyncedAfterCompacting(t *testing.T) {
	db := furnished(t, t.TempDir())
	if _, _, err := db.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	d := faulty(t, db)
	heal := d.unsynced()
	err := commitN(db, 1)
	heal()
	if err == nil {
		t.Error("a commit that could not be synced was acknowledged")
	}
	if db.bolt.NoGrowSync {
		t.Error("growing is not synced any more")
	}
}

// TestCompactingIsGivenUp: nothing is left of it, and the next one works.
func TestCompactingIsGivenUp(t *testing.T) {
	db := furnished(t, t.TempDir())
	want := everything(t, db)
	letGo := hold(db)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, _, err := db.Compact(ctx)
		done <- err
	}()
	for db.queue.length() < 1 {
	}
	letGo()
	for {
		if _, err := os.Stat(db.file + compactSuffix); err == nil {
			break
		}
	}
	letGo = hold(db)
	cancel()
	letGo()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
	if _, err := os.Stat(db.file + compactSuffix); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the copy is left: %v", err)
	}
	if db.changed != nil {
		t.Error("changes are noted still")
	}
	if diff := equal(want, everything(t, db)); diff != "" {
		t.Error(diff)
	}
	if _, _, err := db.Compact(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestWritersHardlyWait: whatever large is done, who writes meanwhile waits for a small
// part of it. How long they wait is logged; -v shows it, and -huge takes ten times as
// much. On a busy machine the longest
// waits are the machine's, as those beside nothing show.
func TestWritersHardlyWait(t *testing.T) {
	n := 10_000
	if *huge {
		n = 100_000
	}
	db := openWith(t, t.TempDir(), Options{Clock: func() time.Time { return day.Add(1000 * time.Hour) }})
	compact := func() error { _, _, err := db.Compact(t.Context()); return err }
	backup := func() error { _, err := db.WriteTo(io.Discard); return err }
	usual := time.Duration(0)
	for _, large := range []struct {
		name string
		do   func() error
	}{
		{"nothing", func() error {
			for i := range 300 {
				add(t, db, message(group, fmt.Sprint(i), "x"))
			}
			return nil
		}},
		{"backup", backup},
		{"compaction", compact},
		{"compaction and backup", func() error {
			done := make(chan error)
			go func() { done <- backup() }()
			return errors.Join(compact(), <-done)
		}},
		{"retention", func() error {
			return db.Prune(t.Context(), Config{Keep: []Retention{{Path: alone, Age: time.Hour}}})
		}},
		{"erasing a person", func() error { return db.Forget(t.Context(), jay) }},
		{"erasing a place", func() error { return db.Forget(t.Context(), alone) }},
		{"erasing everything", func() error { return db.Forget(t.Context(), core.Path{}) }},
	} {
		if len(everything(t, db)[alone]) == 0 {
			talk(t, db, large.name, n)
		}
		writes, reads, took := waits(t, db, large.do)
		longest := writes[len(writes)-1]
		t.Logf("%-22s of %d entries, %6.0f ms; writers waited %5.1f ms, 1 %% of them %5.1f, the longest %5.1f; readers at most %5.1f", large.name, n,
			ms(took), ms(writes[len(writes)/2]), ms(writes[len(writes)*99/100]), ms(longest), ms(reads[len(reads)-1]))
		if large.name == "nothing" {
			usual = longest
			continue
		}
		if limit := max(took/3, 5*usual, 50*time.Millisecond); longest > limit {
			t.Errorf("%s: %v long in %v nobody could write", large.name, longest, took)
		}
	}
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }

// waits measures how long somebody who writes and somebody who reads have to wait each
// time while something large is done, the longest last.
func waits(t *testing.T, db *DB, do func() error) (writes, reads []time.Duration, took time.Duration) {
	t.Helper()
	stop := make(chan struct{})
	var all sync.WaitGroup
	repeat := func(waited *[]time.Duration, f func(n int)) {
		all.Go(func() {
			for n := 0; ; n++ {
				*waited = append(*waited, timed(func() { f(n) }))
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	name := fmt.Sprint("x", time.Now().UnixNano(), "x")
	repeat(&writes, func(n int) { add(t, db, message(kitchen, fmt.Sprint(name, n), "x")) })
	repeat(&reads, func(int) {
		if err := db.view(t.Context(), func(v *view) error { _, err := v.Last(kitchen, 20); return err }); err != nil {
			t.Error(err)
		}
	})
	took = timed(func() {
		if err := do(); err != nil {
			t.Error(err)
		}
	})
	close(stop)
	all.Wait()
	slices.Sort(writes)
	slices.Sort(reads)
	return writes, reads, took
}
