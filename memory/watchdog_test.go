package memory

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
)

// blockable is a database whose writer blocks on jobs with certain names, and which records the
// jobs reported as stuck.
type blockable struct {
	*DB
	block atomic.Pointer[string] // prefix of the names
	free  chan struct{}
	stuck chan string
}

func openBlockable(t *testing.T, dir string) *blockable {
	t.Helper()
	b := &blockable{free: make(chan struct{}), stuck: make(chan string, 1)}
	var err error
	b.DB, err = Open(dir, Options{
		Patience: time.Minute,
		OnStuck:  func(job string) { b.stuck <- job },
		BeforeJob: func(job string) {
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

// end unblocks the writer and closes the database.
func (b *blockable) end(t *testing.T) {
	t.Helper()
	b.block.Store(nil)
	close(b.free)
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func ptr(s string) *string { return &s }

// TestStuckJobIsSetAside: a job that blocks the writer is reported by name. After the third time it
// is refused for a day, while everything else works.
func TestStuckJobIsSetAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		for range stuckLimit {
			b := openBlockable(t, dir)
			add(t, b.DB, message(kitchen, "", "hello"))
			if got := b.RefusedJobs(); len(got) > 0 {
				t.Errorf("unexpected refused jobs: %q", got)
			}
			b.block.Store(ptr("forget"))
			ctx, cancel := context.WithCancel(context.Background())
			go b.Forget(ctx, kitchen)
			if job := <-b.stuck; job != "forget "+kitchen.String() {
				t.Errorf("unexpected stuck job %q", job)
			}
			if err := pulse(b.DB); err == nil {
				t.Error("Pulse succeeded beside a stuck job")
			}
			cancel()
			synctest.Wait()
			b.end(t)
		}
		b := openBlockable(t, dir)
		if err := b.Forget(t.Context(), kitchen); !errors.Is(err, ErrRefused) {
			t.Errorf("forgetting: unexpected error %v", err)
		}
		if err := b.Forget(t.Context(), alone); err != nil {
			t.Errorf("forgetting another place: unexpected error %v", err)
		}
		if _, err := os.Stat(b.engine.name + stuckSuffix); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("Forget kept the names of jobs: %v", err)
		}
		if err := b.writer.addBlocked("another job"); err != nil {
			t.Fatal(err)
		}
		add(t, b.DB, message(kitchen, "", "and more"))
		if err := pulse(b.DB); err != nil {
			t.Errorf("Pulse: unexpected error %v", err)
		}
		time.Sleep(stuckAge + time.Second)
		if err := b.Forget(t.Context(), kitchen); err != nil {
			t.Errorf("forgetting on the next day: unexpected error %v", err)
		}
		b.end(t)
		b = openBlockable(t, dir)
		if _, err := os.Stat(b.engine.name + stuckSuffix); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the count was not reset: %v", err)
		}
		b.end(t)
	})
}

// TestNobodyRepeatsWhatIsSetAside: a refused event counts as permanently invalid, and a turn whose
// records are refused can end without them.
func TestNobodyRepeatsWhatIsSetAside(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	add(t, db, message(kitchen, "1", "hello"))
	turn := core.TurnID{Path: kitchen, Seq: 1}
	for _, job := range []string{"message 2 in " + kitchen.String(), "turn " + turn.String()} {
		for range stuckLimit {
			if err := db.writer.addBlocked(job); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, dir)
	opening := core.Record{Key: core.Key{Turn: turn}, Progress: core.ProgressStarted}
	for what, b := range map[string]*core.Batch{
		"an event":        {Append: []core.Entry{message(kitchen, "2", "again")}},
		"a turn":          {Journal: []core.Record{opening}},
		"a turn's end":    {Journal: []core.Record{opening}, Answered: []core.TurnID{turn}},
		"a command's":     {Journal: []core.Record{opening}, Settled: []core.TurnID{turn}},
		"an answer's end": {Journal: []core.Record{opening}, Append: []core.Entry{message(kitchen, "3", "bye")}, Answered: []core.TurnID{turn}},
	} {
		if err := db.Commit(t.Context(), b); !errors.Is(err, ErrRefused) || !errors.Is(err, core.ErrBadEvent) {
			t.Errorf("%s: unexpected error %v", what, err)
		}
	}
	add(t, db, message(kitchen, "4", "another one"))
	if err := db.Commit(t.Context(), &core.Batch{Answered: []core.TurnID{turn}}); err != nil {
		t.Errorf("the end of the turn alone: unexpected error %v", err)
	}
}

func pulse(db *DB) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return db.Pulse(ctx)
}

// TestLongWorkIsNotStuck: a slow disk and a queue that is never empty do not count as a stuck job.
func TestLongWorkIsNotStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openBlockable(t, t.TempDir())
		d := interceptWrites(t, b.DB)
		d.onWrite(func(buf []byte, at int64) (int, error) {
			if isMeta(at) {
				time.Sleep(4 * time.Minute)
			}
			return handleOf(b.DB).WriteAt(buf, at)
		})
		done := make(chan error, 1)
		go func() { done <- commitN(b.DB, 1) }()
		synctest.Wait()
		if err := pulse(b.DB); err != nil {
			t.Errorf("Pulse with a slow disk: unexpected error %v", err)
		}
		time.Sleep(patience)
		if err := pulse(b.DB); err == nil || !strings.Contains(err.Error(), "the disk has been busy for") {
			t.Errorf("Pulse with a hanging disk: unexpected error %v", err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		d.onWrite(nil)
		writing := *part[chan struct{}](b.DB, "writing") // as the last step of compaction holds it
		writing <- struct{}{}
		go func() { done <- commitN(b.DB, 2) }()
		time.Sleep(4 * time.Minute)
		<-writing
		if err := <-done; err != nil {
			t.Error(err)
		}
		select {
		case job := <-b.stuck:
			t.Errorf("unexpected stuck job %q", job)
		default:
		}
		b.end(t)
	})
}

// TestPulseCommits: Pulse commits a transaction.
func TestPulseCommits(t *testing.T) {
	db := open(t, t.TempDir())
	before := transactions(t, db)
	if err := pulse(db); err != nil {
		t.Fatal(err)
	}
	if transactions(t, db) == before {
		t.Error("nothing was committed")
	}
	d := interceptWrites(t, db)
	d.onWrite(func([]byte, int64) (int, error) { return 0, os.ErrPermission })
	if err := pulse(db); err == nil || errors.Is(err, core.ErrFull) {
		t.Errorf("Pulse with a failing disk: unexpected error %v", err)
	}
	d.onWrite(nil)
}

// TestWhenAJobIsStuck: a job is reported when its time is up, not earlier or much later, whatever
// ran before it.
func TestWhenAJobIsStuck(t *testing.T) {
	for _, slow := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const patience = time.Minute
			var w watch
			stuck := make(chan string, 2)
			go w.run(t.Context(), patience, func(job string) { stuck <- job })
			time.Sleep(20 * patience) // an idle writer is not stuck
			for range 30 {
				time.Sleep(patience / 2)
				w.set(work{job: "before", busy: true})
			}
			w.set(work{})
			time.Sleep(patience / 2)
			w.set(work{job: "stuck", busy: true, onDisk: slow})
			last := time.Now()
			want(t, "the job", <-stuck, "stuck")
			limit := patience
			if slow {
				limit *= slowFactor
			}
			if took := time.Since(last); took < limit || took > limit+2*patience/watchTicks {
				t.Errorf("slow %t: reported after %v, want %v", slow, took, limit)
			}
			time.Sleep(20 * limit)
			want(t, "reports", len(stuck), 0)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		var w watch
		ctx, cancel := context.WithCancel(t.Context())
		go w.run(ctx, time.Minute, func(string) { t.Error("reported after the end") })
		w.set(work{busy: true})
		want(t, "at work", w.current() == work{busy: true, steps: 1, since: time.Now()}, true)
		w.set(work{busy: true, onDisk: true})
		time.Sleep(30 * time.Second)
		cancel()
		time.Sleep(time.Hour)
	})
}

// TestStuckByDefault: the writer is watched with a default patience.
func TestStuckByDefault(t *testing.T) {
	dir := t.TempDir()
	open(t, dir).Close()
	synctest.Test(t, func(t *testing.T) {
		free, stuck := make(chan struct{}), make(chan string, 1)
		db, err := Open(dir, Options{OnStuck: func(job string) { stuck <- job }})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		go db.write(t.Context(), &job{run: func(*tx) error { <-free; return nil }, name: "mine"})
		want(t, "the job", <-stuck, "mine")
		if took := time.Since(began); took < patience || took > patience+2*patience/watchTicks {
			t.Errorf("reported after %v, want %v", took, patience)
		}
		blamed, err := db.writer.blockedJobs()
		want(t, "noted", blamed, map[string]blockCount{"mine": {Times: 1, Last: time.Now()}})
		close(free)
		if err := errors.Join(err, db.writer.addBlocked(""), db.Close()); err != nil {
			t.Error(err)
		}
		blamed, _ = db.writer.blockedJobs()
		want(t, "noted of no job", len(blamed), 1)
	})
}

// TestStuckJobWithoutReport: without a function to report to, a stuck job is ignored.
func TestStuckJobWithoutReport(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, _ string, db *DB) {
		slow := &job{run: func(*tx) error { time.Sleep(3 * patience); return nil }, name: "slow"}
		if err := db.write(t.Context(), slow); err != nil {
			t.Fatal(err)
		}
		blamed, err := db.writer.blockedJobs()
		want(t, "noted", len(blamed), 0)
		if err != nil {
			t.Error(err)
		}
	})
}

// TestFileOfBlockedJobs: old counts are dropped, refusals end, and a store starts even if the file
// cannot be read.
func TestFileOfBlockedJobs(t *testing.T) {
	dir := t.TempDir()
	now := day
	with := Options{Clock: func() time.Time { return now }}
	db := openWith(t, dir, with)
	for job, times := range map[string]int{"once": 1, "often": stuckLimit, "too often": stuckLimit + 1} {
		for range times {
			if err := db.writer.addBlocked(job); err != nil {
				t.Fatal(err)
			}
		}
	}
	db.Close()
	now = day.Add(stuckAge)
	db = openWith(t, dir, with)
	want(t, "refused", db.RefusedJobs(), []string{"often", "too often"})
	want(t, "until", db.writer.watch.refused["often"], now)
	run := func(now time.Time) error {
		return db.writer.runJob(&tx{now: now}, &job{name: "often", run: func(*tx) error { return nil }})
	}
	if err := run(now); err != nil {
		t.Errorf("a day later: unexpected error %v", err)
	}
	if err := run(now.Add(-1)); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "often") {
		t.Errorf("just before: unexpected error %v", err)
	}
	db.Close()
	now = now.Add(1)
	db = openWith(t, dir, with)
	want(t, "refused after a day", len(db.RefusedJobs()), 0)
	if err := db.writer.addBlocked("new"); err != nil {
		t.Fatal(err)
	}
	all, err := db.writer.blockedJobs()
	want(t, "kept", all, map[string]blockCount{"new": {Times: 1, Last: now}})
	if err := errors.Join(err, db.Close(), os.WriteFile(db.engine.name+stuckSuffix, []byte("spoilt"), 0o600)); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	with.Log = slog.New(slog.NewTextHandler(&log, nil))
	db = openWith(t, dir, with)
	if err := db.writer.addBlocked("new"); err == nil {
		t.Error("an unreadable file was replaced")
	}
	want(t, "the log tells of it", strings.Contains(log.String(), "the list of jobs that blocked the database cannot be read"), true)
	if err := os.Remove(db.engine.name + stuckSuffix); err != nil {
		t.Fatal(err)
	}
	file := db.engine.name + stuckSuffix
	if err := errors.Join(os.WriteFile(file, nil, 0o600), db.Forget(t.Context(), kitchen)); err != nil {
		t.Fatal(err)
	}
	_, line, ok := strings.Cut(log.String(), "a file is deleted, since somebody is forgotten")
	want(t, "a deletion without an error", ok && !strings.Contains(line, "err="), true)
	if err := errors.Join(db.Forget(t.Context(), kitchen), os.MkdirAll(file+"/x", 0o700)); err != nil {
		t.Fatal(err)
	}
	if db.Forget(t.Context(), kitchen) == nil || db.writer.addBlocked("new") == nil {
		t.Error("a file that cannot be written caused no error")
	}
	if err := os.RemoveAll(db.engine.name + stuckSuffix); err != nil {
		t.Fatal(err)
	}
}

// TestNamesOfJobs: the names of jobs tell an admin what blocks the writer.
func TestNamesOfJobs(t *testing.T) {
	turn := core.TurnID{Path: kitchen, Seq: 7}
	said := message(kitchen, "42", "hello")
	gone := core.Event{Kind: core.KindDeletion, Target: "41", Message: core.Message{Path: kitchen}}
	for name, b := range map[string]*core.Batch{
		"":                                   {States: map[core.Path]core.State{kitchen: {}}},
		"message 42 in house/kitchen":        {Append: []core.Entry{said}, Change: []core.Event{gone}},
		"deletion 41 in house/kitchen":       {Change: []core.Event{gone}, Answered: []core.TurnID{turn}},
		"turn " + turn.String():              {Journal: []core.Record{{Key: core.Key{Turn: turn}}}, Append: []core.Entry{said}},
		"end of turn " + turn.String():       {Answered: []core.TurnID{turn}},
		"end of turn " + turn.String() + " ": {Settled: []core.TurnID{turn}},
	} {
		want(t, name, (&batch{from: b}).jobName(), strings.TrimSpace(name))
	}
	db := open(t, t.TempDir())
	var called []string
	db.writer.beforeJob = func(_ *tx, j *job) { called = append(called, j.name) }
	nothing := func(*tx) error { return nil }
	ctx := withJobName(t.Context(), "work on %d", 5)
	err := errors.Join(db.write(ctx, &job{run: nothing}), db.write(ctx, &job{run: nothing, name: "own"}))
	db.writer.beforeJob = func(*tx, *job) {}
	if err != nil {
		t.Error(err)
	}
	want(t, "called", called, []string{"work on 5", "own"})
}

// TestPulseGivesUp: a pulse that the writer does not reach is withdrawn and names the blocking job.
// On a closed database it fails at once.
func TestPulseGivesUp(t *testing.T) {
	db := open(t, t.TempDir())
	busy, free := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- db.write(t.Context(), &job{run: func(*tx) error { close(busy); <-free; return nil }, name: "mine"})
	}()
	<-busy
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.Pulse(ctx); err == nil || !strings.Contains(err.Error(), `"mine"`) {
		t.Errorf("%v does not name the job", err)
	}
	want(t, "jobs that wait", waitingJobs(db), 0)
	close(free)
	if err := errors.Join(<-done, db.Close()); err != nil {
		t.Fatal(err)
	}
	if err := db.Pulse(t.Context()); !errors.Is(err, core.ErrClosed) {
		t.Errorf("got %v, want core.ErrClosed", err)
	}
}
