package memory

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
)

// isForgetting reports whether a Forget has not finished.
func isForgetting(t testing.TB, db *DB) bool {
	t.Helper()
	plans := 0
	err := db.view(context.Background(), func(v *view) error {
		for range v.bucket(bucketMeta).prefixed([]byte(metaForget)) {
			plans++
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return plans > 0
}

// calm returns options with a clock that never moves.
func calm() Options {
	return Options{Clock: func() time.Time { return day }, SkipCheck: true}
}

// mixed adds messages, quotes and answers in random order, and moves a place several times.
func mixed(t *testing.T, db *DB, r *rand.Rand) {
	t.Helper()
	places := []core.Path{group, topic, kitchen, alone, core.MustPath(alone.String() + "/1")}
	supers := []core.Path{group, core.MustPath("chat/s"), core.MustPath("chat/b"), core.MustPath("chat/t"), core.MustPath("chat/a")}
	for n := range 40 {
		place := places[r.IntN(len(places))]
		e := message(place, fmt.Sprint("m", n), fmt.Sprint("words ", n))
		e.Message.Author.ID = fmt.Sprint(1000 * (1 + r.IntN(2)))
		if place == alone {
			e.Message.Author.ID, e.Message.Private = "1000", true
		}
		e.Due = r.IntN(3) == 0
		if r.IntN(3) == 0 {
			quoted := r.IntN(n + 1)
			e.Message.ReplyTo = &core.Quote{ID: fmt.Sprint("r", quoted), Text: fmt.Sprint("reply ", quoted)}
		}
		at := add(t, db, e)[0].Message
		if r.IntN(2) == 0 {
			reply := message(place, fmt.Sprint("r", n), fmt.Sprint("reply ", n))
			reply.Self = true
			b := &core.Batch{Append: []core.Entry{reply}, Answered: []core.TurnID{{Path: at.Path, Seq: at.Seq}}}
			if err := db.Commit(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		if n%10 == 5 && r.IntN(3) > 0 {
			move := core.Event{Kind: core.KindMigration, Message: core.Message{Path: supers[0]}, To: supers[1]}
			supers = supers[1:]
			if err := db.Commit(t.Context(), &core.Batch{Change: []core.Event{move}}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// contents returns all pairs of the file except the marks for a clean stop and for traces.
func contents(t *testing.T, db *DB) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := db.view(t.Context(), func(v *view) error {
		for _, name := range buckets() {
			for k, value := range v.bucket(name).pairs(nil, nil) {
				if name != bucketMeta || string(k) != metaClean && string(k) != metaTraces {
					all[fmt.Sprintf("%s %q", name, k)] = fmt.Sprintf("%q", value)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// deaths forgets a path and returns copies of the file from before each commit: those with a plan
// for the rest, and those from before the plan.
func deaths(t *testing.T, db *DB, path core.Path) (planned, unplanned []string) {
	t.Helper()
	db.stepTime = -1 // each change has a commit of its own
	db.writer.beforeJob = func(_ *tx, j *job) {
		switch {
		case j.name != "forget "+path.String():
		case isForgetting(t, db):
			planned = append(planned, crash(t, db))
		default:
			unplanned = append(unplanned, crash(t, db))
		}
	}
	if err := db.Forget(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	return planned, unplanned
}

// TestForgetIsContinued kills the process before each commit of Forget. After a restart the rest is
// deleted, and the file equals one that was not interrupted.
func TestForgetIsContinued(t *testing.T) {
	seeds := coretest.Sample(5, 1)
	if testing.Short() || watched {
		seeds = 1
	}
	for seed := range seeds {
		for i, path := range []core.Path{jay, group, alone, {}} {
			t.Run(fmt.Sprint(seed, " ", path), func(t *testing.T) {
				db := openWith(t, t.TempDir(), calm())
				populated(t, db)
				mixed(t, db, rand.New(rand.NewPCG(uint64(seed), 0)))
				err := db.update(t.Context(), func(t *tx) {
					unreadable := fmt.Appendf(nil, `{"origin":%q,"by":%q,"text`, alone, t.resolve(group).path)
					t.forgotten().addSalt()
					t.bucket(bucketFacts).Put(binary.BigEndian.AppendUint64(nil, 2), unreadable)
				})
				if err != nil {
					t.Fatal(err)
				}
				planned, unplanned := deaths(t, db, path)
				if len(planned) < 10 {
					t.Errorf("unexpected number of commits: %d", len(planned))
				}
				whole := contents(t, db)
				dead := slices.Concat(unplanned, planned)
				step := coretest.Sample(1, 8)
				for n := (seed + i) % step; n < len(dead); n += step {
					later := openWith(t, dead[n], calm())
					if n < len(unplanned) {
						if err := later.Forget(t.Context(), path); err != nil {
							t.Fatal(err)
						}
					}
					later.starting.Wait()
					want(t, fmt.Sprintf("what is left after a death before commit %d", n), contents(t, later), whole)
				}
			})
		}
	}
}

// TestSaidBeforeForgettingIsContinued: messages that arrive after the restart are kept.
func TestSaidBeforeForgettingIsContinued(t *testing.T) {
	db := openWith(t, t.TempDir(), calm())
	populated(t, db)
	planned, _ := deaths(t, db, jay)
	for _, dir := range planned[:3] {
		later := openWith(t, dir, calm())
		e := message(group, "new", "after the start")
		e.Message.Author.ID, e.Message.Time = "1000", day.Add(time.Hour)
		add(t, later, e)
		later.starting.Wait()
		said := texts(t, later, group)
		want(t, "the last", said[len(said)-1], e.Message.Text)
	}
}

// TestContinuedForgetTakesItsTurn: what an earlier process began to forget is not deleted while this one forgets
// somebody: the end of one would delete the plan of the other.
func TestContinuedForgetTakesItsTurn(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		db := openWith(t, dir, calm())
		if err := db.update(t.Context(), newForgetting(t.Context(), db, jay).storePlan); err != nil {
			t.Fatal(err)
		}
		erase, erased := db.continueForgets(t.Context()), make(chan struct{})
		db.epochs.forgets <- struct{}{}
		go func() {
			defer close(erased)
			erase()
		}()
		synctest.Wait()
		if !isForgetting(t, db) {
			t.Error("it was deleted during another Forget")
		}
		<-db.epochs.forgets
		<-erased
		if isForgetting(t, db) {
			t.Error("it was not deleted after the other Forget")
		}
	})
}

// TestWorkerOfAFile: a plan that was copied from a database of several processes names none of them any more.
func TestWorkerOfAFile(t *testing.T) {
	db := openWith(t, t.TempDir(), calm())
	s := newForgetting(t.Context(), db, jay)
	s.Worker = 7
	defer s.end()
	if err := s.begin(); err != nil {
		t.Fatal(err)
	}
	want(t, "process", s.Worker, 0)
}

// TestForgetsTakeTurns: a Forget waits for another one of its process, until its context ends.
func TestForgetsTakeTurns(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		db := openWith(t, dir, calm())
		populated(t, db)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		db.epochs.forgets <- struct{}{}
		go func() { ended <- db.Forget(ctx, group) }()
		go func() { ended <- db.Forget(t.Context(), jay) }()
		synctest.Wait()
		want(t, "ended meanwhile", len(ended), 0)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the error of the context", err)
		}
		<-db.epochs.forgets
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestForgetIsContinuedInASalvagedFile: salvaging a damaged file does not bring back the users who
// were being forgotten.
func TestForgetIsContinuedInASalvagedFile(t *testing.T) {
	db := openWith(t, t.TempDir(), calm())
	populated(t, db)
	planned, _ := deaths(t, db, jay)
	for _, dir := range []string{planned[0], planned[len(planned)-2]} {
		saved := t.TempDir()
		if _, err := Salvage(saved, filepath.Join(dir, FileName)); err != nil {
			t.Fatal(err)
		}
		later := open(t, saved)
		later.starting.Wait()
		want(t, "people that are being forgotten", len(later.epochs.inProgress), 0)
		want(t, "what is left of a private place", remains(t, later, alone), nil)
		checkNoTraces(t, later, "JAYSECRET", "1000")
	}
}

// TestMovedBeforeForgettingIsContinued: if a place that is half forgotten moves, it is forgotten once at the next
// start, and what is said there later stays.
func TestMovedBeforeForgettingIsContinued(t *testing.T) {
	dir := t.TempDir()
	db := openWith(t, dir, calm())
	populated(t, db)
	db.stepTime = -1 // each change has a commit of its own
	ctx, cancel := context.WithCancel(t.Context())
	jobs := 0
	db.writer.beforeJob = func(*tx, *job) {
		if isForgetting(t, db) {
			jobs++
		}
		if jobs == 3 {
			cancel()
		}
	}
	if err := db.Forget(ctx, group); err == nil {
		t.Fatal("the Forget was not interrupted")
	}
	street := core.MustPath("chat/street")
	move := core.Event{Kind: core.KindMigration, Message: core.Message{Path: group}, To: street}
	if err := db.Commit(t.Context(), &core.Batch{Change: []core.Event{move}}); err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		db = openWith(t, dir, calm())
		db.starting.Wait()
		if isForgetting(t, db) {
			t.Errorf("start %d has not finished the Forget", n)
		}
		if n == 0 {
			want(t, "what is left", texts(t, db, street), nil)
			add(t, db, message(street, "later", "said later"))
		}
	}
	want(t, "what is left", texts(t, db, street), []string{"said later"})
}

// TestForgottenTwice: if a user is forgotten twice at the same time, the second Forget begins when the first has ended:
// they have the same plan.
func TestForgottenTwice(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, _ string, db *DB) {
		e := message(group, "1", "hello")
		e.Message.Author.ID = "1000"
		add(t, db, e)
		var second sync.WaitGroup
		jobs := 0
		db.writer.beforeJob = func(*tx, *job) {
			if jobs++; jobs == 2 {
				second.Go(func() {
					if err := db.Forget(t.Context(), jay); err != nil {
						t.Error(err)
					}
				})
				synctest.Wait()
			}
			db.epochs.mu.Lock()
			defer db.epochs.mu.Unlock()
			if n := db.epochs.inProgress[jay]; n > 1 {
				t.Errorf("%d Forgets of one user in progress", n)
			}
		}
		if err := db.Forget(t.Context(), jay); err != nil {
			t.Fatal(err)
		}
		second.Wait()
		if jobs < 4 {
			t.Errorf("unexpected number of jobs: %d", jobs)
		}
	})
}
