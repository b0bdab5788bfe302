package memory

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
)

// blockable is a database whose writer blocks on jobs of some names, and what was
// said to be stuck.
type blockable struct {
	*DB
	block atomic.Pointer[string] // what the names begin with
	free  chan struct{}
	stuck chan string
}

func openBlockable(t *testing.T, dir string) *blockable {
	t.Helper()
	b := &blockable{free: make(chan struct{}), stuck: make(chan string, 1)}
	var err error
	b.DB, err = Open(dir, Options{
		Patience: time.Minute,
		Stuck:    func(job string) { b.stuck <- job },
		Fault: func(job string) {
			if begins := b.block.Load(); begins != nil && strings.HasPrefix(job, *begins) {
				<-b.free
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// end lets the writer go on and closes the database.
func (b *blockable) end(t *testing.T) {
	t.Helper()
	b.block.Store(nil)
	close(b.free)
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func ptr(s string) *string { return &s }

// TestStuckJobIsSetAside: a job that blocks the writer is reported with its name, and
// refused for a day after the third time; everything else goes on.
func TestStuckJobIsSetAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		for range stuckLimit {
			b := openBlockable(t, dir)
			add(t, b.DB, message(kitchen, "", "hello"))
			if got := b.Aside(); len(got) > 0 {
				t.Errorf("set aside: %q", got)
			}
			b.block.Store(ptr("forget"))
			ctx, cancel := context.WithCancel(context.Background())
			go b.Forget(ctx, kitchen)
			if job := <-b.stuck; job != "forget "+kitchen.String() {
				t.Errorf("stuck with %q", job)
			}
			if err := pulse(b.DB); err == nil {
				t.Error("a pulse beside a stuck job")
			}
			cancel()
			synctest.Wait()
			b.end(t)
		}
		b := openBlockable(t, dir)
		if err := b.Forget(t.Context(), kitchen); !errors.Is(err, ErrAside) {
			t.Errorf("forget: %v", err)
		}
		if err := b.Forget(t.Context(), alone); err != nil {
			t.Errorf("forget another place: %v", err)
		}
		if _, err := os.Stat(b.file + stuckSuffix); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the names of jobs stay when somebody is forgotten: %v", err)
		}
		if err := b.blame("another job"); err != nil {
			t.Fatal(err)
		}
		add(t, b.DB, message(kitchen, "", "and more"))
		if err := pulse(b.DB); err != nil {
			t.Errorf("pulse: %v", err)
		}
		time.Sleep(stuckAge + time.Second)
		if err := b.Forget(t.Context(), kitchen); err != nil {
			t.Errorf("forget on the next day: %v", err)
		}
		b.end(t)
		b = openBlockable(t, dir)
		if _, err := os.Stat(b.file + stuckSuffix); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the count stays: %v", err)
		}
		b.end(t)
	})
}

// TestNobodyRepeatsWhatIsSetAside: an event that is refused is one that can never be
// taken in, and a turn whose records are refused can end without them.
func TestNobodyRepeatsWhatIsSetAside(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	add(t, db, message(kitchen, "1", "hello"))
	turn := core.TurnID{Path: kitchen, Seq: 1}
	for _, job := range []string{"message 2 in " + kitchen.String(), "turn " + turn.String()} {
		for range stuckLimit {
			if err := db.blame(job); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, dir)
	opening := core.Record{Key: core.Key{Turn: turn}, Progress: core.Started}
	for what, b := range map[string]*core.Batch{
		"an event":        {Append: []core.Entry{message(kitchen, "2", "again")}},
		"a turn":          {Journal: []core.Record{opening}},
		"a turn's end":    {Journal: []core.Record{opening}, Answered: []core.TurnID{turn}},
		"a command's":     {Journal: []core.Record{opening}, Settled: []core.TurnID{turn}},
		"an answer's end": {Journal: []core.Record{opening}, Append: []core.Entry{message(kitchen, "3", "bye")}, Answered: []core.TurnID{turn}},
	} {
		if err := db.Commit(t.Context(), b); !errors.Is(err, ErrAside) || !errors.Is(err, core.ErrBadEvent) {
			t.Errorf("%s: %v", what, err)
		}
	}
	add(t, db, message(kitchen, "4", "another one"))
	if err := db.Commit(t.Context(), &core.Batch{Answered: []core.TurnID{turn}}); err != nil {
		t.Errorf("the end of the turn alone: %v", err)
	}
}

func pulse(db *DB) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return db.Pulse(ctx)
}

// TestLongWorkIsNotStuck: the disk may take much longer than a job, and a queue that
// is never empty is progress.
func TestLongWorkIsNotStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openBlockable(t, t.TempDir())
		d := faulty(t, b.DB)
		d.write = func(buf []byte, at int64) (int, error) {
			if isMeta(at) {
				time.Sleep(4 * time.Minute)
			}
			return b.handle.WriteAt(buf, at)
		}
		done := make(chan error, 1)
		go func() { done <- commitN(b.DB, 1) }()
		synctest.Wait()
		if err := pulse(b.DB); err != nil {
			t.Errorf("pulse beside a slow disk: %v", err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		d.write = nil
		if err := b.write(t.Context(), &job{alone: func() error { time.Sleep(4 * time.Minute); return nil }}); err != nil {
			t.Error(err)
		}
		select {
		case job := <-b.stuck:
			t.Errorf("stuck with %q", job)
		default:
		}
		b.end(t)
	})
}

// TestPulseCommits: a pulse needs a transaction that commits.
func TestPulseCommits(t *testing.T) {
	db := open(t, t.TempDir())
	before := transactions(t, db)
	if err := pulse(db); err != nil {
		t.Fatal(err)
	}
	if transactions(t, db) == before {
		t.Error("nothing was committed")
	}
	d := faulty(t, db)
	d.write = func([]byte, int64) (int, error) { return 0, os.ErrPermission }
	if err := pulse(db); err == nil || errors.Is(err, core.ErrFull) {
		t.Errorf("with a disk that cannot be written: %v", err)
	}
	d.write = nil
}
