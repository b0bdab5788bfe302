package memory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"synthbot/core"
	"synthbot/memory/bolt"
	"synthbot/memory/kv"
)

// TestCompactWhileItIsRead: an open view does not delay compaction or other readers and writers,
// and keeps its snapshot.
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
		want(t, "open files", holders(t, db.engine.name), 2)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for holders(t, db.engine.name) > 1 { // the old file is closed in the background
	}
	checked := db.Check(t.Context())
	if err := errors.Join(checked, boltCheck(db)); err != nil {
		t.Error(err)
	}
}

// TestCompactALinkedFile: if the database's name is a link, compaction replaces the file that it leads to.
func TestCompactALinkedFile(t *testing.T) {
	dir, target := t.TempDir(), filepath.Join(t.TempDir(), "elsewhere.db")
	link := filepath.Join(dir, FileName)
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	db := furnished(t, dir)
	before := everything(t, db)
	_, _, err := db.Compact(t.Context())
	leadsTo, err2 := os.Readlink(link)
	if err := errors.Join(err, err2, db.Close()); err != nil || leadsTo != target {
		t.Fatalf("the link leads to %q: %v", leadsTo, err)
	}
	if diff := equal(before, everything(t, open(t, dir))); diff != "" {
		t.Error(diff)
	}
	want(t, "files beside the link", files(t, dir), []string{FileName})
	want(t, "files beside the target", files(t, filepath.Dir(target)), []string{filepath.Base(target)})
}

// TestCompactBesideReaders lets views begin and end during compaction, for the race detector.
func TestCompactBesideReaders(t *testing.T) {
	db := furnished(t, t.TempDir())
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					transactions(t, db)
				}
			}
		})
	}
	for range 3 {
		if _, _, err := db.Compact(t.Context()); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	all.Wait()
}

// TestCompactWhileItIsWritten: the copy holds everything that was added, changed, deleted and
// counted meanwhile.
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
					change = core.Event{Kind: core.KindDeletion, Message: core.Message{Path: place},
						Target: fmt.Sprint(n)}
				}
				if err := db.Commit(t.Context(), &core.Batch{Change: []core.Event{change}}); err != nil {
					t.Error(err)
				}
				if f := save(t, db, core.Fact{Text: fmt.Sprint("fact ", n), Origin: place}); n%2 == 0 {
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
	last := save(t, db, core.Fact{Text: "the last", Origin: kitchen})
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

func hasTraces(db *DB) bool { return tracesOf(db) != nil }

// forgetful is an engine that forgets a user before it compacts.
type forgetful struct {
	*bolt.File
	forget func() error
}

func (f forgetful) Compact(ctx context.Context, last func(kv.Tx) error) (before, after int64, err error) {
	if err := f.forget(); err != nil {
		return 0, 0, err
	}
	return f.File.Compact(ctx, last)
}

// TestForgottenWhileCompacting: if a user is forgotten during compaction, the file is copied again
// next time, because the copy may hold traces of them.
func TestForgottenWhileCompacting(t *testing.T) {
	db := furnished(t, t.TempDir())
	populated(t, db)
	file := db.engine.Engine.(*bolt.File)
	db.engine.Engine = forgetful{file, func() error { return db.Forget(t.Context(), jay) }}
	_, _, err := db.Compact(t.Context())
	db.engine.Engine = file
	if err != nil {
		t.Fatal(err)
	}
	want(t, "traces", hasTraces(db), true)
	checkNoTraces(t, db, "JAYSECRET", "1000")
	want(t, "traces", hasTraces(db), false)
}

// TestCommitsAreSyncedAfterCompacting: the copy is written without syncs, but later commits are
// synced.
func TestCommitsAreSyncedAfterCompacting(t *testing.T) {
	db := furnished(t, t.TempDir())
	if _, _, err := db.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := commitN(db, 0); err != nil { // makes room in the file
		t.Fatal(err)
	}
	d := interceptWrites(t, db)
	heal := d.unsynced()
	err := commitN(db, 1)
	heal()
	if err == nil {
		t.Error("a commit that could not be synced was acknowledged")
	}
	if boltOf(db).NoGrowSync {
		t.Error("growing the file is not synced any more")
	}
}

// cancelledByFile is a context that ends once a file exists.
type cancelledByFile struct {
	context.Context
	file string
}

func (c cancelledByFile) Err() error {
	if _, err := os.Stat(c.file); err == nil {
		return context.Canceled
	}
	return c.Context.Err()
}

// TestCompactingIsCancelled: a cancelled compaction leaves nothing behind, and the next one works.
func TestCompactingIsCancelled(t *testing.T) {
	dir := t.TempDir()
	db := furnished(t, dir)
	file := filepath.Join(dir, FileName+bolt.CompactSuffix)
	before := everything(t, db)
	if _, _, err := db.Compact(cancelledByFile{t.Context(), file}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the copy was not deleted: %v", err)
	}
	if *part[map[struct{ bucket, key string }]bool](db, "changed") != nil {
		t.Error("changes are still recorded")
	}
	want(t, "open files", holders(t, file), 0)
	if diff := equal(before, everything(t, db)); diff != "" {
		t.Error(diff)
	}
	if _, _, err := db.Compact(t.Context()); err != nil {
		t.Error(err)
	}
}
