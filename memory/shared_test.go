package memory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/epochs"
	"synthbot/memory/kv"
)

// TestProcessesStart: several processes can create the tables of an empty database at once. They
// agree on its name, and each sees what the others store.
func TestProcessesStart(t *testing.T) {
	t.Setenv(onPostgres, coretest.StartPostgres(t).URL)
	dir := t.TempDir()
	all := make([]*DB, 4)
	var starting sync.WaitGroup
	for i := range all {
		starting.Go(func() { all[i] = openWith(t, dir, Options{SkipCheck: true}) })
	}
	starting.Wait()
	for i, db := range all {
		if db.Installation() == "" || db.Installation() != all[0].Installation() {
			t.Errorf("two names: %q and %q", db.Installation(), all[0].Installation())
		}
		add(t, db, message(group, fmt.Sprint("m", i), fmt.Sprint("text ", i)))
		save(t, db, core.Fact{Text: fmt.Sprintf("tea number %d", i), Origin: group})
	}
	for _, db := range all {
		if got := texts(t, db, group); len(got) != len(all) {
			t.Errorf("unexpected texts %q", got)
		}
		if found := recall(t, db, core.FactQuery{Text: "tea", See: []core.Path{group}, N: 8}); len(found) != len(all) {
			t.Errorf("unexpected number of memories: %d", len(found))
		}
	}
}

// TestForgottenByAnotherProcess: a process cannot store what it read of a user before or while
// another process forgot them. It can store what it reads later.
func TestForgottenByAnotherProcess(t *testing.T) {
	t.Setenv(onPostgres, coretest.StartPostgres(t).URL)
	dir := t.TempDir()
	begun, goOn, jobs := make(chan bool), make(chan bool), 0
	here := openWith(t, dir, Options{SkipCheck: true})
	there := openWith(t, dir, Options{SkipCheck: true, BeforeJob: func(job string) {
		if !strings.HasPrefix(job, "forget") {
			return
		}
		if jobs++; jobs == 3 { // after the announcement and the muting of turns
			close(begun)
			<-goOn
		}
	}})
	add(t, here, asks("j", "1000"), asks("a", "ann"))
	person, err := group.Person("1000")
	if err != nil {
		t.Fatal(err)
	}
	began := epochs.With(t.Context(), here.Epoch())
	about := func(text string) core.Fact {
		return core.Fact{Text: text, Origin: group, By: person, About: []core.Path{person}}
	}
	if _, err := here.SaveFact(began, about("they like tea")); err != nil {
		t.Fatal(err)
	}
	over := make(chan error)
	go func() { over <- there.Forget(t.Context(), person) }()
	<-begun
	for name, ctx := range map[string]context.Context{
		"before": began, "meanwhile": epochs.With(t.Context(), here.Epoch()),
	} {
		if _, err := here.SaveFact(ctx, about("they like milk")); !errors.Is(err, core.ErrForgotten) {
			t.Errorf("a memory of a user who is being forgotten, read %s: unexpected error %v", name, err)
		}
	}
	close(goOn)
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	if _, err := here.SaveFact(began, about("they like coffee")); !errors.Is(err, core.ErrForgotten) {
		t.Errorf("a memory of a forgotten user: unexpected error %v", err)
	}
	if found := recall(t, here, core.FactQuery{Text: "tea coffee milk", See: []core.Path{group}}); len(found) > 0 {
		t.Errorf("memories were not deleted: %v", found)
	}
	add(t, here, message(group, "b", "hello")) // this write learns of the request at the latest
	later := epochs.With(t.Context(), here.Epoch())
	if _, err := here.SaveFact(later, about("they like water")); err != nil {
		t.Errorf("a memory of a user who came back: unexpected error %v", err)
	}
	if got := texts(t, here, group); !slices.Equal(got, []string{"ann asks", "hello"}) {
		t.Errorf("%q", got)
	}
}

// TestForgottenByTwoProcesses: if two processes forget a user at the same time, others store nothing of the user until
// both have finished, also if one of them ends early and is continued.
func TestForgottenByTwoProcesses(t *testing.T) {
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprint("dies ", dies), func(t *testing.T) {
			t.Setenv(onPostgres, coretest.StartPostgres(t).URL)
			dir := t.TempDir()
			o := Options{SkipCheck: true, Server: ServerConfig{Lease: 2 * time.Second}}
			here := openWith(t, dir, o)
			begun, goOn, jobs := make(chan bool), make(chan bool), 0
			o.BeforeJob = func(job string) {
				if !strings.HasPrefix(job, "forget") {
					return
				}
				if jobs++; jobs == 3 { // after the announcement and the muting of turns
					close(begun)
					<-goOn
				}
			}
			slow := openWith(t, dir, o)
			o.BeforeJob = nil
			fast := openWith(t, dir, o)
			add(t, here, asks("j", "1000"), asks("a", "ann"))
			person, err := group.Person("1000")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			over := make(chan error)
			go func() { over <- slow.Forget(ctx, person) }()
			<-begun
			if err := fast.Forget(t.Context(), person); err != nil {
				t.Fatal(err)
			}
			add(t, here, message(group, "b", "hello")) // this write learns of it at the latest
			save := func() error {
				ctx := epochs.With(t.Context(), here.Epoch())
				_, err := here.SaveFact(ctx, core.Fact{Text: "tea", Origin: group, By: person, About: []core.Path{person}})
				return err
			}
			if err := save(); !errors.Is(err, core.ErrForgotten) {
				t.Errorf("a memory while one process still forgets: unexpected error %v", err)
			}
			if !isForgetting(t, here) {
				t.Error("the plan is deleted while one process still forgets")
			}
			if dies {
				cancel()
			}
			close(goOn)
			if err := <-over; (err != nil) != dies {
				t.Fatal(err)
			}
			if dies {
				if err := slow.Close(); err != nil {
					t.Fatal(err)
				}
			}
			for isForgetting(t, here) {
				time.Sleep(20 * time.Millisecond)
			}
			add(t, here, message(group, "c", "hello"))
			if err := save(); err != nil {
				t.Errorf("a memory of a user who came back: unexpected error %v", err)
			}
		})
	}
}

// TestMutedByAnotherProcess: a turn that answers a user whom another process forgets ends without
// its answer. The next turn in the place is not muted.
func TestMutedByAnotherProcess(t *testing.T) {
	t.Setenv(onPostgres, coretest.StartPostgres(t).URL)
	dir := t.TempDir()
	here, there := openWith(t, dir, Options{SkipCheck: true}), openWith(t, dir, Options{SkipCheck: true})
	add(t, here, asks("j", "1000"), asks("a", "ann"))
	began := epochs.With(t.Context(), here.Epoch())
	if err := here.Commit(began, &core.Batch{Journal: []core.Record{opens(group, 1)}}); err != nil {
		t.Fatal(err)
	}
	forgetUser(t, there, "1000")
	if err := here.Commit(began, lastBatch(1, "for Jay")); err != nil {
		t.Error(err)
	}
	if err := here.Commit(epochs.With(t.Context(), here.Epoch()), lastBatch(2, "for Ann")); err != nil {
		t.Error(err)
	}
	if got := texts(t, here, group); !slices.Equal(got, []string{"ann asks", "", "for Ann"}) {
		t.Errorf("%q", got)
	}
}

// TestContinuedByAnotherProcess: if a process ends while it forgets a user, another running process
// continues, and older quotes of the user are not stored from then on.
func TestContinuedByAnotherProcess(t *testing.T) {
	t.Setenv(onPostgres, coretest.StartPostgres(t).URL)
	dir := t.TempDir()
	broken := errors.New("broken")
	jobs := 0
	o := Options{SkipCheck: true, Server: ServerConfig{Lease: 2 * time.Second}}
	here := openWith(t, dir, o)
	o.Log = slog.New(slog.DiscardHandler)
	there := openWith(t, dir, o)
	add(t, here, asks("j", "1000"), asks("a", "ann"))
	there.writer.beforeJob = func(_ *tx, j *job) {
		if jobs++; strings.HasPrefix(j.name, "forget") && jobs > 1 {
			panic(&kv.Fault{Err: broken})
		}
	}
	person, err := group.Person("1000")
	if err != nil {
		t.Fatal(err)
	}
	if err := there.Forget(t.Context(), person); !errors.Is(err, broken) {
		t.Errorf("the interrupted Forget: unexpected result %v", err)
	}
	if err := there.Close(); err != nil {
		t.Fatal(err)
	}
	for slices.Contains(texts(t, here, group), "1000 asks") {
		time.Sleep(20 * time.Millisecond)
	}
	err = here.read(t.Context(), func(v *view) {
		if !v.forgotten().isOlder(person, time.Unix(1, 0)) {
			t.Error("the request to be forgotten is not stored")
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// TestCrashesOfTheServer: what was stored before a crash of the server is there afterwards, once.
func TestCrashesOfTheServer(t *testing.T) {
	server := coretest.StartPostgres(t)
	t.Setenv(onPostgres, server.URL)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var talking sync.WaitGroup
	stored := make([]map[string]bool, 40)
	dir := t.TempDir()
	all := []*DB{openWith(t, dir, Options{SkipCheck: true}), openWith(t, dir, Options{SkipCheck: true})}
	placeOf := func(i int) core.Path { return core.MustPath(fmt.Sprintf("telegram/%d", i)) }
	for i := range stored {
		stored[i] = make(map[string]bool)
		talking.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				id := fmt.Sprint("m", n)
				for ctx.Err() == nil {
					b := &core.Batch{Append: []core.Entry{message(placeOf(i), id, "words")}}
					if all[i%len(all)].Commit(ctx, b) == nil {
						stored[i][id] = true
						break
					}
				}
			}
		})
	}
	for range coretest.Sample(3, 1) {
		time.Sleep(time.Second + rand.N(500*time.Millisecond))
		server.Crash()
		server.Start()
	}
	time.Sleep(time.Second)
	cancel()
	talking.Wait()
	total := 0
	err := all[0].View(t.Context(), func(v core.View) error {
		for i, ids := range stored {
			total += len(ids)
			for id := range ids {
				if _, ok, err := v.Entry(placeOf(i), id); !ok || err != nil {
					t.Errorf("message %s of %s: found %v, %v", id, placeOf(i), ok, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d messages", total)
}
