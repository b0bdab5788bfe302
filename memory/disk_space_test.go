package memory

import (
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/llm"
)

// TestOnFull: OnFull is called once when the disk fills and once when it has room again, which is
// found without a write. No acknowledged message is lost.
func TestOnFull(t *testing.T) {
	var mu sync.Mutex
	var calls []bool
	full := func(full bool) {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, full)
	}
	reported := func() (since []bool) {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		since, calls = calls, nil
		return since
	}
	bubble(t, Options{OnFull: full}, func(t *testing.T, _ string, db *DB) {
		d := interceptWrites(t, db)
		if err := commitN(db, 1); err != nil {
			t.Fatal(err)
		}
		want(t, "calls of OnFull with room on the disk", reported(), nil)
		var space int64 // bytes that can still be written
		limited := func(buf []byte, at int64) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			if space < int64(len(buf)) && !isMeta(at) {
				return 0, syscall.ENOSPC
			}
			return handleOf(db).WriteAt(buf, at)
		}
		d.onWrite(limited)
		for n := 2; n < 5; n++ {
			if err := commitN(db, n); !errors.Is(err, core.ErrFull) {
				t.Errorf("message %d: %v, want core.ErrFull", n, err)
			}
		}
		want(t, "calls of OnFull when the disk filled", reported(), []bool{true})
		time.Sleep(10 * probePause)
		want(t, "calls of OnFull while the disk stays full", reported(), nil)
		holds(t, db, []int{1})
		mu.Lock()
		space = 2 * minProbe
		mu.Unlock()
		time.Sleep(2 * probePause)
		want(t, "calls of OnFull when there was room again", reported(), []bool{false})
		if err := commitN(db, 2); err != nil {
			t.Error(err)
		}
		mu.Lock()
		space = 0
		mu.Unlock()
		if err := commitN(db, 3); !errors.Is(err, core.ErrFull) {
			t.Errorf("got %v, want core.ErrFull", err)
		}
		want(t, "calls when it filled again", reported(), []bool{true})
		mu.Lock()
		space = 1 << 40
		mu.Unlock()
		time.Sleep(2 * probePause)
		want(t, "calls of OnFull at the end", reported(), []bool{false})
		holds(t, db, []int{1, 2})
		want(t, "the size of the next probe", db.space.size.Load(), 0)
		err := db.view(t.Context(), func(v *view) error {
			want(t, "the probe", v.bucket(bucketMeta).Get([]byte(metaProbe)), nil)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestRoomForALargeBatch: the disk counts as full until it has room for the batch that failed.
func TestRoomForALargeBatch(t *testing.T) {
	var mu sync.Mutex
	var calls []bool
	bubble(t, Options{OnFull: func(full bool) { mu.Lock(); calls = append(calls, full); mu.Unlock() }},
		func(t *testing.T, _ string, db *DB) {
			d := interceptWrites(t, db)
			d.onWrite(func(buf []byte, at int64) (int, error) {
				if len(buf) > 1<<19 {
					return 0, syscall.ENOSPC
				}
				return handleOf(db).WriteAt(buf, at)
			})
			large := message(kitchen, "large", strings.Repeat("x", 1<<20))
			if err := db.Commit(t.Context(), &core.Batch{Append: []core.Entry{large}}); !errors.Is(err, core.ErrFull) {
				t.Errorf("got %v, want core.ErrFull", err)
			}
			time.Sleep(5 * probePause)
			synctest.Wait()
			mu.Lock()
			want(t, "calls", calls, []bool{true})
			mu.Unlock()
		})
}

// TestWhatAFullDiskTakes: on a full disk, deletions and usage records are still written.
func TestWhatAFullDiskTakes(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, _ string, db *DB) {
		items := db.Items("quiz")
		item := core.Item{Path: kitchen, Key: "k", Version: core.AnyVersion, Value: []byte("1")}
		if _, err := items.Put(t.Context(), item); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // for the reserve to be made
		d := interceptWrites(t, db)
		d.onWrite(func(buf []byte, at int64) (int, error) {
			if _, err := os.Stat(db.space.reserve()); err == nil {
				return 0, syscall.ENOSPC
			}
			return handleOf(db).WriteAt(buf, at)
		})
		if _, err := items.Put(t.Context(), item); !errors.Is(err, core.ErrFull) {
			t.Errorf("got %v, want core.ErrFull", err)
		}
		use := Use{Day: "2026-11-20", Person: kitchen, Engine: "e", Calls: 1, Usage: llm.Usage{In: 10}}
		if err := <-db.AddUse(use); err != nil {
			t.Errorf("recording a use: unexpected error %v", err)
		}
		uses, err := db.Uses(t.Context(), use.Day, use.Day)
		if err != nil {
			t.Fatal(err)
		}
		want(t, "used", uses, []Use{use})
		item.Value = nil
		if _, err := items.Put(t.Context(), item); err != nil {
			t.Errorf("a deletion: unexpected error %v", err)
		}
		if _, ok, err := items.Get(t.Context(), kitchen, "k"); ok || err != nil {
			t.Errorf("the item was not deleted: %t, %v", ok, err)
		}
	})
}

// TestNoRoomWithoutAReserve: without a reserve, a full disk also refuses the end of a turn.
func TestNoRoomWithoutAReserve(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, _ string, db *DB) {
		synctest.Wait()
		if err := os.Remove(db.space.reserve()); err != nil {
			t.Fatal(err)
		}
		d := interceptWrites(t, db)
		d.onWrite(func([]byte, int64) (int, error) { return 0, syscall.ENOSPC })
		end := &core.Batch{Finishing: true, Append: []core.Entry{message(kitchen, "end", "bye")}}
		if err := db.Commit(t.Context(), end); !errors.Is(err, core.ErrFull) {
			t.Errorf("got %v, want core.ErrFull", err)
		}
		d.onWrite(nil)
		time.Sleep(2 * probePause)
	})
}

// TestTheNameIsWrittenWhenThereIsRoom: a file without an installation name that is opened on a full
// disk gets one at once and stores it later.
func TestTheNameIsWrittenWhenThereIsRoom(t *testing.T) {
	dir := t.TempDir()
	old := open(t, dir)
	err := old.write(t.Context(), &job{run: func(t *tx) error {
		t.bucket(bucketMeta).Delete([]byte(metaName))
		return nil
	}})
	if err = errors.Join(err, old.Close()); err != nil {
		t.Fatal(err)
	}
	db := newDB(old.engine.name, Options{})
	if err := openEngine(db, Options{}); err != nil {
		t.Fatal(err)
	}
	d := interceptWrites(t, db)
	d.onWrite(func([]byte, int64) (int, error) { return 0, syscall.ENOSPC })
	if err := db.prepare(Options{}); err != nil {
		t.Fatal(err)
	}
	name := db.Installation()
	if len(name) < 20 {
		t.Errorf("the name is %q, want at least 20 characters", name)
	}
	d.onWrite(nil)
	if err := errors.Join(db.writer.transact(func(*tx) error { return nil }), db.engine.Close()); err != nil {
		t.Fatal(err)
	}
	want(t, "the name after a restart", open(t, dir).Installation(), name)
}

// TestAFullDiskIsNotTried: while the disk is full, what needs room is refused without trying;
// deletions and ends of turns are tried.
func TestAFullDiskIsNotTried(t *testing.T) {
	db := open(t, t.TempDir())
	item := core.Item{Path: kitchen, Key: "k", Version: core.AnyVersion, Value: []byte("1")}
	if _, err := db.Items("quiz").Put(t.Context(), item); err != nil {
		t.Fatal(err)
	}
	db.space.full.Store(true)
	_, err := db.SaveFact(t.Context(), core.Fact{Text: "tea", Origin: kitchen})
	_, err2 := db.Items("quiz").Put(t.Context(), item)
	for what, err := range map[string]error{
		"a fact": err, "an item": err2, "a message": commitN(db, 1),
		"an end": db.Commit(t.Context(), &core.Batch{Answered: []core.TurnID{{Path: kitchen, Seq: 1}}}),
	} {
		if !errors.Is(err, core.ErrFull) {
			t.Errorf("%s: got %v, want core.ErrFull", what, err)
		}
	}
	item.Value = nil
	if _, err := db.Items("quiz").Put(t.Context(), item); err != nil {
		t.Errorf("a deletion: unexpected error %v", err)
	}
	finishing := &core.Batch{Finishing: true, Append: []core.Entry{message(kitchen, "end", "bye")}}
	if err := errors.Join(db.Commit(t.Context(), finishing), <-db.AddUse(Use{Day: "2026-11-20", Engine: "e"})); err != nil {
		t.Errorf("the end of a turn: unexpected error %v", err)
	}
	db.space.full.Store(false)
}
