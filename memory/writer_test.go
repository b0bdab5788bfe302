package memory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.etcd.io/bbolt"

	"synthbot/core"
)

// hold blocks the writer until letGo is called, so that jobs queue up.
func hold(db *DB) (letGo func()) {
	busy, free := make(chan struct{}), make(chan struct{})
	begun := sync.OnceFunc(func() { close(busy) }) // the job runs again if another one fails
	go db.write(context.Background(), &job{run: func(*tx) error { begun(); <-free; return nil }})
	<-busy
	return sync.OnceFunc(func() { close(free) })
}

// boltTransaction is the part of bbolt.Tx that tests use.
type boltTransaction interface {
	ID() int
	DeleteBucket(name []byte) error
	OnCommit(func())
	Stats() bbolt.TxStats
	Check(...bbolt.CheckOption) <-chan error
}

// boltBucket returns the statistics of a bucket.
func boltBucket(v *view, name string) interface{ Stats() bbolt.BucketStats } {
	return v.bucket(name).Bucket.(interface{ Stats() bbolt.BucketStats })
}

func boltTx(t *tx) boltTransaction {
	return t.Tx.(boltTransaction)
}

// transactions returns the number of commits of a database.
func transactions(t testing.TB, db *DB) (id int) {
	t.Helper()
	if err := db.view(context.Background(), func(v *view) error { id = boltTx(&v.tx).ID(); return nil }); err != nil {
		t.Fatal(err)
	}
	return id
}

func TestJobsShareACommit(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, _ string, db *DB) {
		before := transactions(t, db)
		letGo := hold(db)
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() { add(t, db, message(kitchen, fmt.Sprint(i), "x")) })
		}
		synctest.Wait()
		letGo()
		all.Wait()
		if n := transactions(t, db) - before; n != 1 {
			t.Errorf("200 batches took %d commits, want only that of hold", n)
		}
	})
}

func TestAFailingJobFailsAlone(t *testing.T) {
	bubble(t, Options{Log: slog.New(slog.DiscardHandler)}, func(t *testing.T, _ string, db *DB) {
		letGo := hold(db)
		mine := errors.New("mine")
		var all sync.WaitGroup
		for i := range 30 {
			all.Go(func() { add(t, db, message(kitchen, fmt.Sprint(i), "x")) })
		}
		for i, bad := range []struct {
			run  func(*tx) error
			want error
		}{
			{func(*tx) error { return mine }, mine},
			{func(*tx) error { panic("in a job") }, core.ErrDamaged},
			{func(t *tx) error {
				b := &core.Batch{Append: []core.Entry{message(kitchen, "half", "half")}}
				w, _ := prepareBatch(b)
				return errors.Join(w.run(t), mine)
			}, mine},
		} {
			all.Go(func() {
				if err := db.write(context.Background(), &job{run: bad.run}); !errors.Is(err, bad.want) {
					t.Errorf("bad job %d: got %v, want %v", i, err, bad.want)
				}
			})
		}
		synctest.Wait()
		letGo()
		all.Wait()
		db.view(context.Background(), func(v *view) error {
			got, err := v.Last(kitchen, 100)
			if err != nil || len(got) != 30 {
				t.Errorf("%d entries, %v, want 30", len(got), err)
			}
			if _, ok, _ := v.Entry(kitchen, "half"); ok {
				t.Error("the failed job left something in the file")
			}
			return nil
		})
	})
}

// TestLateJobsJoin: a job that arrives during a transaction is written with it, and fails alone.
func TestLateJobsJoin(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, _ string, db *DB) {
		before := transactions(t, db)
		letGo := hold(db)
		var all sync.WaitGroup
		busy, free := make(chan struct{}), make(chan struct{})
		begun := sync.OnceFunc(func() { close(busy) })
		all.Go(func() {
			db.write(t.Context(), &job{run: func(*tx) error { begun(); <-free; return nil }})
		})
		synctest.Wait()
		for i := range 3 {
			all.Go(func() { add(t, db, message(kitchen, fmt.Sprint(i), "x")) })
		}
		synctest.Wait()
		letGo()
		<-busy
		mine := errors.New("mine")
		all.Go(func() { add(t, db, message(kitchen, "late", "x")) })
		all.Go(func() {
			if err := db.write(t.Context(), &job{run: func(*tx) error { return mine }}); !errors.Is(err, mine) {
				t.Errorf("got %v, want %v", err, mine)
			}
		})
		synctest.Wait()
		close(free)
		all.Wait()
		if n := transactions(t, db) - before; n != 1 {
			t.Errorf("%d commits, want only that of hold", n)
		}
		db.view(t.Context(), func(v *view) error {
			if got, err := v.Last(kitchen, 10); err != nil || len(got) != 4 {
				t.Errorf("%d entries, %v, want 4", len(got), err)
			}
			return nil
		})
	})
}

func TestAWaitingBatchIsWithdrawn(t *testing.T) {
	dir := t.TempDir()
	open(t, dir).Close()
	synctest.Test(t, func(t *testing.T) {
		db, err := Open(dir, Options{NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		letGo := hold(db)
		ctx, cancel := context.WithCancel(t.Context())
		answers := make(chan error)
		go func() {
			answers <- db.Commit(ctx, &core.Batch{Append: []core.Entry{message(kitchen, "1", "x")}})
		}()
		synctest.Wait()
		cancel()
		if err := <-answers; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
		letGo()
		db.view(t.Context(), func(v *view) error {
			if got, err := v.Last(kitchen, 9); err != nil || len(got) != 0 {
				t.Errorf("the withdrawn batch was written: %v, %v", got, err)
			}
			return nil
		})
	})
}

// TestABatchThatIsBeingWrittenIsWaitedFor: Commit waits for a batch that is being written although
// its context has ended, since an error would mean that nothing was written.
func TestABatchThatIsBeingWrittenIsWaitedFor(t *testing.T) {
	db := open(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	j := &job{run: func(t *tx) error {
		cancel()
		t.bucket(bucketMeta).Put([]byte("x"), []byte("y"))
		return nil
	}}
	if err := db.write(ctx, j); err != nil {
		t.Errorf("got error %v although the batch was written", err)
	}
}

func TestAPanicInAViewIsAnError(t *testing.T) {
	db := openWith(t, t.TempDir(), Options{Log: slog.New(slog.DiscardHandler)})
	err := db.View(t.Context(), func(core.View) error { panic("in the caller") })
	if err == nil || !strings.Contains(err.Error(), "in the caller") || errors.Is(err, core.ErrDamaged) {
		t.Errorf("unexpected error %v", err)
	}
	add(t, db, message(kitchen, "1", "works still"))
}

func TestViewCannotBeUsedLater(t *testing.T) {
	db := open(t, t.TempDir())
	var kept core.View
	if err := db.View(t.Context(), func(v core.View) error { kept = v; return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := kept.Last(kitchen, 1); !errors.Is(err, errEnded) {
		t.Errorf("got %v, want %v", err, errEnded)
	}
}

func TestTheCleanFlag(t *testing.T) {
	dir := t.TempDir()
	clean := func() bool {
		t.Helper()
		db := open(t, dir)
		defer db.Close()
		return !db.writer.inUse
	}
	if open(t, dir).Close(); !clean() {
		t.Error("closed cleanly, but marked as unclean")
	}
	db := open(t, dir)
	add(t, db, message(kitchen, "1", "x"))
	db.view(t.Context(), func(v *view) error {
		if v.bucket(bucketMeta).Get([]byte(metaClean)) != nil {
			t.Error("marked as clean during a write")
		}
		return nil
	})
	if db.Close(); !clean() {
		t.Error("closed cleanly after a write, but marked as unclean")
	}
}

func TestReactionsAreBounded(t *testing.T) {
	db := open(t, t.TempDir())
	add(t, db, message(kitchen, "1", "x"))
	react := func(person, emoji string) core.Event {
		return core.Event{Kind: core.KindReaction, Target: "1", Data: emoji,
			Message: core.Message{Path: kitchen, Author: core.Author{ID: person}}}
	}
	var events []core.Event
	for i := range maxReactors + 10 {
		events = append(events, react(fmt.Sprint(i), "👍"), react("", fmt.Sprint(i)), react("7", fmt.Sprint(i)))
	}
	events = append(events, react("8", strings.Repeat("x", 1000)))
	if err := db.Commit(t.Context(), &core.Batch{Change: events}); err != nil {
		t.Fatal(err)
	}
	db.view(t.Context(), func(v *view) error {
		l, ok := v.entry(place{path: kitchen, key: placeKey(kitchen)}, 1)
		if !ok || len(l.Reactions) != maxReactions || len(l.reactors) != maxReactors {
			t.Errorf("unexpected: %d reactions by %d users", len(l.Reactions), len(l.reactors))
		}
		return nil
	})
}

// TestUseJoinsACommit: a usage record is written with the next transaction if one comes soon, and
// otherwise a moment later.
func TestUseJoinsACommit(t *testing.T) {
	db := open(t, t.TempDir())
	use := Use{Day: "2026-11-20", Person: core.MustPath("room/kitchen"), Engine: "e", Calls: 1}
	before := transactions(t, db)
	written := db.AddUse(use)
	add(t, db, message(kitchen, "1", "x"))
	select {
	case err := <-written:
		if err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("the use was not written with the message")
	}
	if n := transactions(t, db) - before; n != 1 {
		t.Errorf("%d transactions, want 1", n)
	}
	if err := <-db.AddUse(use); err != nil {
		t.Fatal(err)
	}
	if uses, err := db.Uses(t.Context(), use.Day, use.Day); err != nil || len(uses) != 1 || uses[0].Calls != 2 {
		t.Errorf("unexpected usage %v, %v", uses, err)
	}
}

// waitingJobs returns how many jobs wait for the writer.
func waitingJobs(db *DB) int {
	db.queue.mu.Lock()
	defer db.queue.mu.Unlock()
	return len(db.queue.waiting)
}
