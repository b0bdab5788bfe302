package engine

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/llm"
)

// serveOrder queues calls behind a running one, and returns the order in which they were served. Each call is
// named by the letters of the users who caused it.
func serveOrder(t *testing.T, size int, first string, calls ...string) string {
	q := newQueue(size)
	enter := func(who string) func() {
		var people []core.Path
		for _, letter := range who {
			people = append(people, core.MustPath("x/@user/"+string(letter)))
		}
		release, err := q.acquire(t.Context(), people, nil)
		if err != nil {
			t.Error(err)
		}
		return release
	}
	release := enter(first)
	var mu sync.Mutex
	var served []string
	var all sync.WaitGroup
	for _, who := range calls {
		all.Go(func() {
			release := enter(who)
			mu.Lock()
			served = append(served, who)
			mu.Unlock()
			time.Sleep(time.Second)
			release()
		})
		synctest.Wait()
	}
	release()
	all.Wait()
	if len(q.waiting)+len(q.running)+len(q.served) != 0 {
		t.Errorf("the queue is not empty: %v, %v, %v", q.waiting, q.running, q.served)
	}
	return strings.Join(served, " ")
}

func TestQueueServesPersonByPerson(t *testing.T) {
	for name, tc := range map[string]struct {
		first string
		calls []string
		want  string
	}{
		"one person":   {"a", []string{"a", "a", "a"}, "a a a"},
		"another":      {"a", []string{"a", "a", "a", "b"}, "b a a a"},
		"by age":       {"a", []string{"c", "b", "d"}, "c b d"},
		"in turn":      {"a", []string{"a", "a", "b", "b", "c"}, "b c a b a"},
		"the bot":      {"a", []string{"a", "a", ""}, " a a"},
		"several":      {"a", []string{"a", "ab", "a"}, "ab a a"},
		"several, too": {"a", []string{"ab", "b", "a"}, "ab b a"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if got := serveOrder(t, 1, tc.first, tc.calls...); got != tc.want {
					t.Errorf("served %q, want %q", got, tc.want)
				}
			})
		})
	}
}

// TestQueueStarvesNobody checks that a waiting call is served although other users' calls keep arriving.
func TestQueueStarvesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		served, free := make(chan string), make(chan struct{})
		ask := func(who string) {
			go func() {
				release, err := q.acquire(ctx, by(who).People, nil)
				if err != nil {
					return
				}
				defer release()
				served <- who
				<-free
			}()
			synctest.Wait()
		}
		ask("a")
		<-served
		ask("a")
		ask("b")
		next, calls := "c", 0 // the user who asks while the current call runs
		for who := ""; who != "a" && calls < 10; calls++ {
			free <- struct{}{}
			who = <-served
			ask(next)
			next = who
		}
		if calls > 3 {
			t.Errorf("%d calls of others were served before", calls)
		}
		cancel()
		synctest.Wait() // all but one have ended
		free <- struct{}{}
	})
}

func TestQueueOfTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, running, most := newQueue(2), 0, 0
		var mu sync.Mutex
		var all sync.WaitGroup
		began := time.Now()
		for range 10 {
			all.Go(func() {
				release, err := q.acquire(t.Context(), nil, nil)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				running--
				mu.Unlock()
				release()
			})
		}
		all.Wait()
		if most != 2 || time.Since(began) != 5*time.Second {
			t.Errorf("got %d calls at the same time, %v", most, time.Since(began))
		}
	})
}

// TestQueueIsLeft checks that a call that is cancelled while it waits takes no slot, even at the moment when it
// is served.
func TestQueueIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		gone := errors.New("gone")
		for range 100 {
			release, err := q.acquire(t.Context(), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			var waits sync.WaitGroup
			waits.Go(func() {
				if release, err := q.acquire(ctx, nil, nil); err == nil {
					release()
				} else if err != gone {
					t.Error(err)
				}
			})
			synctest.Wait()
			waits.Go(release)
			cancel(gone)
			waits.Wait()
		}
		if len(q.running)+len(q.waiting) != 0 {
			t.Errorf("%d calls run and %d wait, want none", len(q.running), len(q.waiting))
		}
	})
}

// TestManyCallsOfOnePerson checks that, with one slot and a user who asks in sixty places, another user waits
// for at most one other call.
func TestManyCallsOfOnePerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const one = 300 * time.Millisecond
		m := &script{name: "model", steps: []func(context.Context) (llm.Answer, error){func(ctx context.Context) (llm.Answer, error) {
			time.Sleep(one)
			return says("model")(ctx)
		}}}
		c := chainOf(true)
		c.links = []*link{newLink("model", m, 1, Options{}.withDefaults())}
		var all sync.WaitGroup
		ask := func(who string) { all.Go(func() { c.Ask(t.Context(), by(who)) }) }
		for range 60 {
			ask("1")
		}
		synctest.Wait()
		for range 3 {
			began := time.Now()
			if _, err := c.Ask(t.Context(), by("2")); err != nil || time.Since(began) > 2*one {
				t.Errorf("the other user waited %v, %v", time.Since(began), err)
			}
			time.Sleep(one / 2)
		}
		all.Wait()
		if len(m.calls) != 63 {
			t.Errorf("got %d calls", len(m.calls))
		}
	})
}

// TestWaitingForADeadEngine checks that waiting calls do not ask an engine that was disabled before their turn.
func TestWaitingForADeadEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &script{name: "model", steps: []func(context.Context) (llm.Answer, error){func(ctx context.Context) (llm.Answer, error) {
			time.Sleep(time.Minute)
			return fails(llm.ErrorRetryLater, 0, errTimeout)(ctx)
		}}}
		l := newLink("model", m, 1, Options{}.withDefaults())
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() { l.ask(t.Context(), by(string(rune('a'+i)))) })
		}
		all.Wait()
		if len(m.calls) != tripAfter {
			t.Errorf("got %d calls to a failing engine", len(m.calls))
		}
	})
}

// TestQueueServesWhoWaitsBehind checks that a busy user's call is served early enough for the users who wrote
// in the same place and wait behind it.
func TestQueueServesWhoWaitsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		jay, mia, zed := core.MustPath("x/@user/j"), core.MustPath("x/@user/m"), core.MustPath("x/@user/z")
		var mu sync.Mutex
		var served, waits []string
		var all sync.WaitGroup
		call := func(name string, who core.Path, behind func() []core.Path) {
			all.Go(func() {
				release, err := q.acquire(t.Context(), []core.Path{who}, behind)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				served = append(served, name)
				mu.Unlock()
				time.Sleep(time.Second)
				release()
			})
			synctest.Wait()
		}
		for _, name := range []string{"one", "two", "three"} {
			call(name, jay, nil)
		}
		call("the one before mia", jay, func() (list []core.Path) {
			mu.Lock()
			defer mu.Unlock()
			for range waits {
				list = append(list, mia)
			}
			return list
		})
		call("four", jay, nil)
		mu.Lock()
		waits = []string{"mia"}
		mu.Unlock()
		time.Sleep(1500 * time.Millisecond) // the call before mia's has been served
		call("zed's", zed, nil)
		all.Wait()
		if got := strings.Join(served, " "); got != "one the one before mia zed's two three four" {
			t.Error(got)
		}
	})
}
