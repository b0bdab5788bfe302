package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/epochs"
)

func TestRateLimits(t *testing.T) {
	var w world
	now := noon
	r := NewRuntime(Options{Clock: func() time.Time { return now }})
	s := w.catalogue(t, w.act("dice", func(a *core.Action) { a.RateLimit = core.RateLimit{Count: 2, Per: time.Minute} }))
	ann, bob := by(core.RankMember), by(core.RankMember)
	bob.Authors[0].ID = "2"
	const often = "1 dice skipped: dice was used too often; try again in "
	for i, test := range []struct {
		who  Requester
		at   time.Duration
		want string
	}{
		{ann, 0, "1 dice done"}, {ann, 10 * time.Second, "1 dice done"}, {ann, 20 * time.Second, often + "40 seconds"},
		{bob, 20 * time.Second, "1 dice done"}, {by(0, 0), 30 * time.Second, often + "30 seconds"},
		{ann, 60 * time.Second, "1 dice done"}, {ann, 61 * time.Second, often + "9 seconds"}, {bob, 61 * time.Second, "1 dice done"},
	} {
		now = noon.Add(test.at)
		done := run(t, r, newJournal().job(s, test.who, step("dice", `{}`)))
		if got := describe(done)[0]; got != test.want {
			t.Errorf("call %d: got %s, want %s", i, got, test.want)
		}
	}
}

// TestUsedElsewhere: uses in another process count towards a rate limit.
func TestUsedElsewhere(t *testing.T) {
	var w world
	s := w.catalogue(t, w.act("dice", func(a *core.Action) { a.RateLimit = core.RateLimit{Count: 2, Per: time.Minute} }), w.act("free"))
	var both [2]*Runtime
	announced := 0
	for i := range both {
		announce := func(by core.Path, action string) {
			announced++
			both[1-i].Used(by, action)
		}
		both[i] = NewRuntime(Options{Clock: func() time.Time { return noon }, Used: announce})
	}
	ann, bob := by(core.RankMember), by(core.RankMember)
	bob.Authors[0].ID = "2"
	for i, test := range []struct {
		who  Requester
		name string
		want string
	}{
		{ann, "dice", "1 dice done"}, {ann, "dice", "1 dice done"},
		{ann, "dice", "1 dice skipped: dice was used too often; try again in 1 minute"},
		{ann, "free", "1 free done"}, {bob, "dice", "1 dice done"},
	} {
		done := run(t, both[i%2], newJournal().job(s, test.who, step(test.name, `{}`)))
		if got := describe(done)[0]; got != test.want {
			t.Errorf("call %d: got %s, want %s", i, got, test.want)
		}
	}
	if announced != 3 {
		t.Errorf("%d uses were announced, want 3", announced)
	}
}

// TestUsedElsewhereForHours: uses in other processes count for the whole period of the limit, even
// if this process has not used the action.
func TestUsedElsewhereForHours(t *testing.T) {
	var w world
	now := noon
	s := w.catalogue(t, w.act("dice", func(a *core.Action) { a.RateLimit = core.RateLimit{Count: 2, Per: 12 * time.Hour} }))
	r := NewRuntime(Options{Clock: func() time.Time { return now }})
	ann := by(core.RankMember)
	person, err := here.Person(ann.Authors[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r.Used(person, "dice")
		now = now.Add(2 * time.Hour)
	}
	done := run(t, r, newJournal().job(s, ann, step("dice", `{}`)))
	if got := describe(done)[0]; !strings.Contains(got, "was used too often") {
		t.Errorf("got %s, want the use refused", got)
	}
}

func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w world
		slow := func(b core.Busy) func(*core.Action) {
			return func(a *core.Action) {
				a.Busy = b
				a.Do = func(_ context.Context, c core.Call) (core.Result, error) {
					w.note("begin %s", c.Author.ID)
					time.Sleep(time.Second)
					w.note("end %s", c.Author.ID)
					return core.Result{}, nil
				}
			}
		}
		s := w.catalogue(t, w.act("queues", slow(core.BusyQueue)), w.act("refuses", slow(core.BusyRefuse)))
		r := NewRuntime(Options{})
		both := func(name string, a, b Requester) (second []StepResult) {
			first := make(chan struct{})
			go func() {
				defer close(first)
				if _, err := r.Execute(t.Context(), newJournal().job(s, a, step(name, `{}`))); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
			second = run(t, r, newJournal().job(s, b, step(name, `{}`)))
			<-first
			return second
		}
		ann, bob := by(core.RankMember), by(core.RankMember)
		bob.Authors[0].ID = "2"
		wantLines(t, "queue", describe(both("queues", ann, ann)), []string{"1 queues done"})
		wantLines(t, "queue calls", w.did(), []string{"begin 1", "end 1", "begin 1", "end 1"})
		both("queues", ann, bob)
		if calls := w.did(); calls[1] != "begin 2" {
			t.Errorf("another user's call had to wait: %q", calls)
		}
		wantLines(t, "refuse", describe(both("refuses", ann, ann)), []string{"1 refuses skipped: refuses is still working on the last request"})
		wantLines(t, "refuse calls", w.did(), []string{"begin 1", "end 1"})
		wantLines(t, "refuse both", describe(both("refuses", bob, by(0, 0))), []string{"1 refuses skipped: refuses is still working on the last request"})
		wantLines(t, "the other one", describe(run(t, r, newJournal().job(s, ann, step("refuses", `{}`)))), []string{"1 refuses done"})
		if len(r.locks.last) != 0 {
			t.Error("locks were not released")
		}
	})
}

func TestCache(t *testing.T) {
	var w world
	now := noon
	r := NewRuntime(Options{Clock: func() time.Time { return now }})
	s := w.catalogue(t, w.act("weather", func(a *core.Action) { a.Cache = time.Hour }))
	bob, elsewhere, both, shares := by(core.RankMember), by(core.RankMember), by(0, 0), by(0)
	shares.Sees = []core.Path{shares.Path, core.MustPath("telegram/1")}
	slices.Reverse(both.Authors)
	bob.Authors[0].ID = "2"
	elsewhere.Path = core.MustPath("telegram/1")
	for i, test := range []struct {
		who     Requester
		payload string
		at      time.Duration
		epoch   uint64
		called  int
	}{
		{by(0), `{"n":1}`, 0, 0, 1}, {by(0), `{"n":1}`, time.Minute, 0, 0}, {by(0), `{"n":2}`, time.Minute, 0, 1},
		{bob, `{"n":1}`, time.Minute, 0, 1}, {elsewhere, `{"n":1}`, time.Minute, 0, 1},
		{by(0), `{"n":1}`, time.Minute, 1, 1}, // the epoch changes when a user is forgotten
		{by(0, 0), `{"n":1}`, time.Minute, 0, 1}, {both, `{"n":1}`, time.Minute, 0, 0},
		{shares, `{"n":1}`, time.Minute, 0, 1}, // it may see another place
		{by(core.RankModerator), `{"n":1}`, time.Minute, 0, 1}, {by(0), `{"n":1}`, time.Minute, 0, 0},
		{by(0), `{"n":1}`, time.Hour, 0, 1},
	} {
		now = noon.Add(test.at)
		job := newJournal().job(s, test.who, step("weather", test.payload))
		done, err := r.Execute(epochs.With(t.Context(), test.epoch), job)
		if err != nil {
			t.Fatal(err)
		}
		if string(done[0].Output) != `{"n":1}` || len(w.did()) != test.called {
			t.Errorf("call %d: unexpected output %s or number of calls", i, done[0].Output)
		}
	}
	ask := func(i int) {
		who := by(core.RankMember)
		who.Authors[0].ID = time.Duration(i).String()
		run(t, r, newJournal().job(s, who, step("weather", `{}`)))
	}
	for i := range 2 * maxCached {
		ask(i)
	}
	w.did()
	ask(2*maxCached - 1)
	if n := len(w.did()); n != 0 {
		t.Error("the latest result is not cached")
	}
	ask(maxCached - 1)
	if n := len(w.did()); n != 1 {
		t.Errorf("more than %d results are cached", maxCached)
	}
	r.Forget()
	ask(2*maxCached - 1)
	if n := len(w.did()); n != 1 {
		t.Error("Forget kept a cached result")
	}
}

// TestRatesOfSeveral: a call by several users counts for each of them. A call that is refused
// because of one of them counts for nobody.
func TestRatesOfSeveral(t *testing.T) {
	r := rates{used: make(map[use][]time.Time)}
	d := &Definition{Action: core.Action{Name: "it", RateLimit: core.RateLimit{Count: 1, Per: time.Minute}}}
	take := func(wait time.Duration, persons ...string) {
		t.Helper()
		if got := r.take(d, persons, noon); got != wait {
			t.Errorf("%q: got %v, want %v", persons, got, wait)
		}
	}
	take(0, "a", "b")
	take(time.Minute, "a")
	take(time.Minute, "b")
	take(time.Minute, "c", "b")
	take(0, "c")
}

// TestCacheSkipsFollowUps: results that ask for further steps are not cached, nor those of actions
// without a cache.
func TestCacheSkipsFollowUps(t *testing.T) {
	for name, tc := range map[string]struct {
		lasts time.Duration
		next  []core.Step
		calls int
	}{
		"kept":      {time.Minute, nil, 1},
		"follow-up": {time.Minute, []core.Step{step("dice", `{}`)}, 2},
		"no cache":  {0, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{}
			calls := 0
			s := w.catalogue(t, w.act("dice"), w.act("it", func(a *core.Action) {
				a.Cache = tc.lasts
				a.Do = func(context.Context, core.Call) (core.Result, error) {
					calls++
					return core.Result{Output: json.RawMessage(`1`), Next: tc.next}, nil
				}
			}))
			r := NewRuntime(Options{Clock: func() time.Time { return noon }})
			for range 2 {
				run(t, r, newJournal().job(s, by(core.RankMember), step("it", `{}`)))
			}
			if calls != tc.calls {
				t.Errorf("called %d times, want %d", calls, tc.calls)
			}
		})
	}
}

// TestUnknownIsRecorded: a step that was interrupted is journalled as unknown.
func TestUnknownIsRecorded(t *testing.T) {
	var w world
	r := NewRuntime(Options{Clock: func() time.Time { return noon }})
	s := w.catalogue(t, w.act("pay"))
	j := newJournal()
	key := core.Key{Turn: core.TurnID{Path: here, Seq: 1}, Round: 1, Step: 1}
	j.disk[key] = core.Record{Key: key, Progress: core.ProgressStarted, Time: noon}
	run(t, r, j.job(s, by(core.RankMember), step("pay", `{}`)))
	if record, _ := j.Find(key); record.Progress != core.ProgressUnknown {
		t.Errorf("the record says %s, want %s", record.Progress, core.ProgressUnknown)
	}
	for name, want := range map[string]string{
		"gone":             "1 gone unknown: it is not known whether this was done: the bot was stopped in the middle",
		"message_telegram": "1 message_telegram done", // messages can be sent again
	} {
		j.later = nil
		wantLines(t, name, describe(run(t, r, j.job(s, by(core.RankMember), step(name, `{"text":"hi"}`)))), []string{want})
	}
}

// TestCacheMakesRoom: the least recently used results are dropped first. Results that are not
// cached take no room.
func TestCacheMakesRoom(t *testing.T) {
	var w world
	r := NewRuntime(Options{Clock: func() time.Time { return noon }})
	s := w.catalogue(t, w.act("weather", func(a *core.Action) { a.Cache = time.Hour }))
	kept := func(name string, n int) bool {
		run(t, r, newJournal().job(s, by(0), step(name, fmt.Sprintf(`{"n":%d}`, n))))
		return len(w.did()) == 0
	}
	kept("weather", 0)
	for n := range maxCached {
		kept("web_search", n)
	}
	if !kept("weather", 0) {
		t.Error("uncached results displaced a cached one")
	}
	for n := range maxCached {
		kept("weather", n)
		if !kept("weather", 0) {
			t.Fatalf("a recently used result was dropped after %d others", n)
		}
	}
}

// TestRatesAreForgotten: uses are remembered only as long as a limit counts them.
func TestRatesAreForgotten(t *testing.T) {
	r := rates{used: make(map[use][]time.Time)}
	limited := func(name string, per time.Duration) *Definition {
		return &Definition{Action: core.Action{Name: name, RateLimit: core.RateLimit{Count: 1, Per: per}}}
	}
	month, minute := limited("month", 30*24*time.Hour), limited("minute", time.Minute)
	take := func(d *Definition, person string, after time.Duration, want bool) {
		t.Helper()
		if wait := r.take(d, []string{person}, noon.Add(after)); (wait == 0) != want {
			t.Errorf("%s of %s after %s: waits %v, want a use: %v", d.Name, person, after, wait, want)
		}
	}
	take(month, "ann", 0, true)
	for i := range 40 * 24 {
		after := time.Duration(i) * time.Hour
		take(minute, "bob", after, true)
		if n := len(r.used[use{"minute", "bob"}]); n != 1 {
			t.Fatalf("%d uses are remembered, want 1", n)
		}
		take(minute, fmt.Sprint(i), after, true)
		take(month, "ann", after, i == 30*24)
	}
	if r.take(minute, []string{"ann", "bob"}, noon.Add((40*24-1)*time.Hour)) == 0 {
		t.Error("bob's use was forgotten")
	}
	take(minute, "eve", 80*24*time.Hour, true) // drops users without counted uses
	if n := len(r.used); n > 31*24 {
		t.Errorf("%d users are remembered, want at most %d", n, 31*24)
	}
}

// TestQueueEndsWithItsTurn: a turn that ends while it waits for a busy action leaves the queue.
func TestQueueEndsWithItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w world
		free := make(chan struct{})
		s := w.catalogue(t, w.act("slow", func(a *core.Action) {
			a.Busy = core.BusyQueue
			a.Do = func(context.Context, core.Call) (core.Result, error) { <-free; return core.Result{}, nil }
		}))
		r := NewRuntime(Options{})
		first := make(chan struct{})
		go func() {
			defer close(first)
			run(t, r, newJournal().job(s, by(0, 0), step("slow", `{}`)))
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		second := by(0)
		second.Authors[0].ID = "2"
		j := newJournal()
		if _, err := r.Execute(ctx, j.job(s, second, step("slow", `{}`), step("web_search", `{}`))); !errors.Is(err, context.DeadlineExceeded) || len(j.disk)+len(j.later) > 0 {
			t.Errorf("got error %v and journal %v, want a timeout and nothing", err, j.disk)
		}
		close(free)
		<-first
		synctest.Wait()
		if len(r.locks.last) != 0 {
			t.Error("locks were not released")
		}
		if done := run(t, r, newJournal().job(s, second, step("slow", `{}`))); done[0].Progress != core.ProgressDone {
			t.Errorf("the next call ended as %q, want it done", describe(done))
		}
	})
}

// TestUsersOnce: a user who is listed twice among the authors counts once.
func TestUsersOnce(t *testing.T) {
	who := Requester{Path: by(0).Path, Authors: slices.Repeat(by(0).Authors, 2)}
	want := []string{by(0).users()[0]}
	if got := who.users(); !slices.Equal(got, want) {
		t.Errorf("users are %q, want %q", got, want)
	}
}
