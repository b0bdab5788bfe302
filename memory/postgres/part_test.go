package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/loop"
)

// TestAssign: however processes come, go and change what they want, each part has one process that
// wants it, processes with the same wishes have equally many parts of each kind, and no part moves
// without need.
func TestAssign(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var parts []string
		for i := range rapid.IntRange(0, 20).Draw(t, "parts") {
			kind := rapid.SampledFrom([]string{"discord", "plugin", "telegram"}).Draw(t, "kind")
			parts = append(parts, fmt.Sprintf("%s %02d", kind, i))
		}
		owners, living := make(map[string]int64), []int64{}
		for round := range rapid.IntRange(1, 8).Draw(t, "rounds") {
			if len(living) > 0 && rapid.Bool().Draw(t, "one ends") {
				gone := rapid.SampledFrom(living).Draw(t, "gone")
				living = slices.DeleteFunc(living, func(id int64) bool { return id == gone })
				maps.DeleteFunc(owners, func(_ string, id int64) bool { return id == gone })
			} else {
				living = append(living, int64(round+1))
			}
			wants := make(map[int64][]string)
			for _, id := range living {
				wants[id] = parts
			}
			target := assign(wants, owners)
			if len(living) == 0 {
				continue
			}
			counts := make(map[string]map[int64]int)
			for _, name := range parts {
				kind, _, _ := strings.Cut(name, " ")
				if !slices.Contains(living, target[name]) {
					t.Fatalf("%q is assigned to worker %d of %v", name, target[name], living)
				}
				if counts[kind] == nil {
					counts[kind] = make(map[int64]int)
				}
				counts[kind][target[name]]++
			}
			for kind, of := range counts {
				n := 0
				for _, k := range of {
					n += k
				}
				moved, owned := 0, make(map[int64]int)
				for name, id := range owners {
					if strings.HasPrefix(name, kind+" ") {
						owned[id]++
						if target[name] != id {
							moved++
						}
					}
				}
				surplus := 0
				for _, id := range living {
					if of[id] != n/len(living) && of[id] != (n+len(living)-1)/len(living) {
						t.Fatalf("%s: unequal shares %v for %v", kind, of, living)
					}
					surplus += max(0, owned[id]-of[id])
				}
				if moved != surplus {
					t.Fatalf("%s: %d parts move, want %d", kind, moved, surplus)
				}
			}
			again := assign(wants, target)
			if !maps.Equal(again, target) {
				t.Fatalf("assigning %v again gave %v", target, again)
			}
			owners = target
		}
	})
}

// TestAssignToThoseWhoWant: a part that no process wants is not assigned.
func TestAssignToThoseWhoWant(t *testing.T) {
	wants := map[int64][]string{1: {"telegram a", "telegram b", "telegram c"}, 2: {"telegram a"}}
	target := assign(wants, map[string]int64{"telegram a": 2, "telegram b": 2})
	want := map[string]int64{"telegram a": 2, "telegram b": 1, "telegram c": 1}
	if !maps.Equal(target, want) {
		t.Errorf("unexpected assignment %v", target)
	}
}

// owning is a process that works on parts until it is stopped.
type owning struct {
	*DB
	stop context.CancelFunc
	all  sync.WaitGroup
}

// log records which process works on which part, and checks each change.
type log struct {
	t       *testing.T
	mu      sync.Mutex
	workers map[string]string // by part
	changed chan struct{}
}

func (l *log) note(part, worker string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if other := l.workers[part]; other != "" && worker != "" {
		l.t.Errorf("%s began to work on %q while %s still does", worker, part, other)
	}
	l.workers[part] = worker
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// await waits until the processes own that many parts each.
func (l *log) await(what string, counts ...int) {
	l.t.Helper()
	late := time.After(coretest.Patience)
	for {
		l.mu.Lock()
		of := make(map[string]int)
		for _, worker := range l.workers {
			if worker != "" {
				of[worker]++
			}
		}
		got := slices.Sorted(maps.Values(of))
		l.mu.Unlock()
		if slices.Equal(got, counts) {
			return
		}
		select {
		case <-l.changed:
		case <-late:
			l.t.Fatalf("%s: %v, not %v", what, of, counts)
		}
	}
}

func (l *log) start(url, name string, lease time.Duration, parts []string) *owning {
	db := openWith(l.t, url, Options{Worker: name, Lease: lease})
	ctx, stop := context.WithCancel(context.Background())
	o := &owning{DB: db, stop: stop}
	for _, part := range parts {
		o.all.Go(func() {
			err := db.Claim(ctx, part, func(ctx context.Context) error {
				l.note(part, name)
				<-ctx.Done()
				l.note(part, "")
				return nil
			})
			if err != nil {
				l.t.Error(err)
			}
		})
	}
	l.t.Cleanup(func() { stop(); o.all.Wait() })
	return o
}

// renewing lets processes renew their leases again and again, as if these were short, until stop is called.
func renewing(all ...*owning) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var over sync.WaitGroup
	over.Go(func() {
		loop.Repeat(ctx, nil, func() time.Duration {
			for _, o := range all {
				loop.Notify(o.parts.recheck)
			}
			return 50 * time.Millisecond
		})
	})
	return func() { cancel(); over.Wait() }
}

// TestOwn: processes share the parts evenly. One that stops hands its parts over at once: the test ends before
// a lease is renewed, or ends by itself. No part ever has two owners.
func TestOwn(t *testing.T) {
	const lease = 10 * coretest.Patience
	server := coretest.StartPostgres(t)
	parts := []string{"telegram a", "telegram b", "telegram c", "telegram d"}
	l := &log{t: t, workers: make(map[string]string), changed: make(chan struct{}, 1)}
	first := l.start(server.URL, "first", lease, parts)
	l.await("one", 4)
	second := l.start(server.URL, "second", lease, parts)
	third := l.start(server.URL, "third", lease, parts)
	stop := renewing(first, second, third)
	l.await("three", 1, 1, 2)
	stop()
	workers, err := third.Workers(t.Context())
	if err != nil || len(workers) != 3 || workers[0].Name != "first" || workers[2].ID != third.Self() || workers[0].Lease <= 0 {
		t.Errorf("unexpected workers %+v, %v", workers, err)
	}

	first.stop()
	first.all.Wait()
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	l.await("one stops", 2, 2)
}

// TestOwnAfterKill: the parts of a killed process are taken over when its lease ends.
func TestOwnAfterKill(t *testing.T) {
	server := coretest.StartPostgres(t)
	parts := []string{"telegram a", "telegram b"}
	l := &log{t: t, workers: make(map[string]string), changed: make(chan struct{}, 1)}
	killed := l.start(server.URL, "killed", short, parts)
	l.await("one", 2)
	next := l.start(server.URL, "next", short, parts)
	l.await("two", 1, 1)
	freeze(killed.DB) // it stops without telling the others
	l.mu.Lock()
	maps.DeleteFunc(l.workers, func(_, worker string) bool { return worker == "killed" })
	l.mu.Unlock()
	l.await("one is killed", 2)
	if err := put(killed.DB, "late"); !errors.Is(err, core.ErrFenced) {
		t.Errorf("the killed process could write: %v", err)
	}
	workers, err := next.Workers(t.Context())
	if err != nil || len(workers) != 1 || !slices.Equal(workers[0].Parts, parts) {
		t.Errorf("unexpected workers %+v, %v", workers, err)
	}
}

// TestOwnNeverTwice: while processes want and stop wanting parts, and need time to stop, no part
// has two owners, and in the end each has one.
func TestOwnNeverTwice(t *testing.T) {
	server := coretest.StartPostgres(t)
	l := &log{t: t, workers: make(map[string]string), changed: make(chan struct{}, 1)}
	parts := []string{"telegram a", "telegram b", "telegram c", "discord a"}
	var all sync.WaitGroup
	for _, name := range []string{"first", "second", "third"} {
		db := openWith(t, server.URL, Options{Worker: name, Lease: short})
		for _, part := range parts {
			all.Go(func() {
				for range 12 {
					ctx, stop := context.WithTimeout(t.Context(), time.Duration(rand.IntN(300))*time.Millisecond)
					err := db.Claim(ctx, part, func(ctx context.Context) error {
						l.note(part, name)
						<-ctx.Done()
						time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
						l.note(part, "")
						return nil
					})
					stop()
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	l.start(server.URL, "fourth", short, parts)
	l.await("at last", 4)
}

// TestClaimEnds: if the work on a part ends by itself, Claim returns its error and another process
// gets the part.
func TestClaimEnds(t *testing.T) {
	server := coretest.StartPostgres(t)
	one, two := openWith(t, server.URL, Options{}), openWith(t, server.URL, Options{})
	broken := errors.New("broken")
	err := one.Claim(t.Context(), "plugin x", func(context.Context) error { return broken })
	if !errors.Is(err, broken) {
		t.Error(err)
	}
	if err := two.Claim(t.Context(), "plugin x", func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := two.Claim(ctx, "plugin x", func(context.Context) error { return broken }); err != nil {
		t.Error(err)
	}
	if workers, err := one.Workers(t.Context()); err != nil || len(workers) != 2 || len(workers[0].Parts) > 0 {
		t.Errorf("unexpected workers %+v, %v", workers, err)
	}
}

// TestHint: a hint of one process reaches all processes.
func TestHint(t *testing.T) {
	server := coretest.StartPostgres(t)
	heard := make(chan string, 100)
	hear := func(who string) Options {
		return Options{OnHint: func(text string) { heard <- who + ":" + text }}
	}
	one := openWith(t, server.URL, hear("one"))
	openWith(t, server.URL, hear("two"))
	await := func(want ...string) {
		t.Helper()
		for len(want) > 0 {
			select {
			case got := <-heard:
				want = slices.DeleteFunc(want, func(one string) bool { return one == got })
			case <-time.After(coretest.Patience):
				t.Fatalf("the hint %v did not arrive", want)
			}
		}
	}
	await("one:", "two:") // both listen
	text := "wake telegram/" + strings.Repeat("1", 30)
	if err := one.Hint(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	await("one:"+text, "two:"+text)
}
