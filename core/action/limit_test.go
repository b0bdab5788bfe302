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
		if got := told(done)[0]; got != test.want {
			t.Errorf("%d: %s, want %s", i, got, test.want)
		}
	}
}

// TestUsedElsewhere: what a user does in another process counts.
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
		if got := told(done)[0]; got != test.want {
			t.Errorf("%d: %s, want %s", i, got, test.want)
		}
	}
	if announced != 3 {
		t.Errorf("%d uses are announced", announced)
	}
}

// TestUsedElsewhereForHours: what was used in other processes counts for hours also in one that has not used it.
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
	if got := told(done)[0]; !strings.Contains(got, "was used too often") {
		t.Error(got)
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
		same2(t, "queue", told(both("queues", ann, ann)), []string{"1 queues done"})
		same2(t, "queue calls", w.did(), []string{"begin 1", "end 1", "begin 1", "end 1"})
		both("queues", ann, bob)
		if calls := w.did(); calls[1] != "begin 2" {
			t.Errorf("two people wait for each other: %q", calls)
		}
		same2(t, "refuse", told(both("refuses", ann, ann)), []string{"1 refuses skipped: refuses is still working on the last request"})
		same2(t, "refuse calls", w.did(), []string{"begin 1", "end 1"})
		same2(t, "refuse both", told(both("refuses", bob, by(0, 0))), []string{"1 refuses skipped: refuses is still working on the last request"})
		same2(t, "the other one", told(run(t, r, newJournal().job(s, ann, step("refuses", `{}`)))), []string{"1 refuses done"})
		if len(r.locks.last) != 0 {
			t.Error("locks left over")
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
		{by(0), `{"n":1}`, time.Minute, 1, 1}, // somebody was forgotten
		{by(0, 0), `{"n":1}`, time.Minute, 0, 1}, {both, `{"n":1}`, time.Minute, 0, 0},
		{shares, `{"n":1}`, time.Minute, 0, 1}, // it may see another place
		{by(0), `{"n":1}`, time.Hour, 0, 1},
	} {
		now = noon.Add(test.at)
		job := newJournal().job(s, test.who, step("weather", test.payload))
		done, err := r.Execute(epochs.With(t.Context(), test.epoch), job)
		if err != nil {
			t.Fatal(err)
		}
		if string(done[0].Output) != `{"n":1}` || len(w.did()) != test.called {
			t.Errorf("%d: output %s", i, done[0].Output)
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
		t.Error("the latest result is not kept")
	}
	ask(maxCached - 1)
	if n := len(w.did()); n != 1 {
		t.Errorf("more than %d results are kept", maxCached)
	}
	r.Forget()
	ask(2*maxCached - 1)
	if n := len(w.did()); n != 1 {
		t.Error("a result is kept that may concern a user who was forgotten")
	}
}

// TestRatesOfSeveral: a call that several people cause counts for each of them, and
// one that is refused for one of them counts for nobody.
func TestRatesOfSeveral(t *testing.T) {
	var r rates
	d := &Definition{Action: core.Action{Name: "it", RateLimit: core.RateLimit{Count: 1, Per: time.Minute}}}
	take := func(want bool, wait time.Duration, persons ...string) {
		t.Helper()
		if got, ok := r.take(d, persons, noon); ok != want || got != wait {
			t.Errorf("%q: %v, %v", persons, got, ok)
		}
	}
	take(true, 0, "a", "b")
	take(false, time.Minute, "a")
	take(false, time.Minute, "b")
	take(false, time.Minute, "c", "b")
	take(true, 0, "c")
}

// TestCacheKeepsOnlyWhatStandsAlone: a result that asks for further actions is asked
// for again, and so is one of an action that declares no cache.
func TestCacheKeepsOnlyWhatStandsAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		lasts time.Duration
		next  []core.Step
		calls int
	}{
		"kept":     {time.Minute, nil, 1},
		"leads on": {time.Minute, []core.Step{step("dice", `{}`)}, 2},
		"no cache": {0, nil, 2},
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
				t.Errorf("it was called %d times, want %d", calls, tc.calls)
			}
		})
	}
}

// TestUnknownIsRecorded: that nobody knows whether a step was done is journalled, and
// not only said.
func TestUnknownIsRecorded(t *testing.T) {
	var w world
	r := NewRuntime(Options{Clock: func() time.Time { return noon }})
	s := w.catalogue(t, w.act("pay"))
	j := newJournal()
	key := core.Key{Turn: core.TurnID{Path: here, Seq: 1}, Round: 1, Step: 1}
	j.disk[key] = core.Record{Key: key, Progress: core.ProgressStarted, Time: noon}
	run(t, r, j.job(s, by(core.RankMember), step("pay", `{}`)))
	if record, _ := j.Find(key); record.Progress != core.ProgressUnknown {
		t.Errorf("the record says %s", record.Progress)
	}
	for name, want := range map[string]string{
		"gone":             "1 gone unknown: it is not known whether this was done: the bot was stopped in the middle",
		"message_telegram": "1 message_telegram done", // its parts are guarded
	} {
		j.later = nil
		same2(t, name, told(run(t, r, j.job(s, by(core.RankMember), step(name, `{"text":"hi"}`)))), []string{want})
	}
}

// TestCacheMakesRoom: what was used lately stays, and what is not to be kept takes no room.
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
		t.Error("what is not to be kept took room")
	}
	for n := range maxCached {
		kept("weather", n)
		if !kept("weather", 0) {
			t.Fatalf("what is used is dropped after %d others", n)
		}
	}
}

// TestRatesAreForgotten: uses that no limit counts any more take no room, and those that
// one counts stay, however long that is.
func TestRatesAreForgotten(t *testing.T) {
	var r rates
	limited := func(name string, per time.Duration) *Definition {
		return &Definition{Action: core.Action{Name: name, RateLimit: core.RateLimit{Count: 1, Per: per}}}
	}
	month, minute := limited("month", 30*24*time.Hour), limited("minute", time.Minute)
	take := func(d *Definition, person string, after time.Duration, want bool) {
		t.Helper()
		if _, ok := r.take(d, []string{person}, noon.Add(after)); ok != want {
			t.Errorf("%s of %s after %s: %v", d.Name, person, after, ok)
		}
	}
	take(month, "ann", 0, true)
	for i := range 40 * 24 {
		after := time.Duration(i) * time.Hour
		take(minute, "bob", after, true)
		if n := len(r.used[use{"minute", "bob"}]); n != 1 {
			t.Fatalf("%d uses are remembered", n)
		}
		take(minute, fmt.Sprint(i), after, true)
		take(month, "ann", after, i == 30*24)
	}
	if _, ok := r.take(minute, []string{"ann", "bob"}, noon.Add((40*24-1)*time.Hour)); ok {
		t.Error("bob's use is forgotten")
	}
	take(minute, "eve", 80*24*time.Hour, true) // those without uses are dropped
	if n := len(r.used); n > 31*24 {
		t.Errorf("%d people are remembered", n)
	}
}

// TestQueueEndsWithItsTurn: who waits for an action and is cut short leaves the queue.
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
			t.Errorf("%v; the journal holds %v", err, j.disk)
		}
		close(free)
		<-first
		synctest.Wait()
		if len(r.locks.last) != 0 {
			t.Error("locks left over")
		}
		if done := run(t, r, newJournal().job(s, second, step("slow", `{}`))); done[0].Progress != core.ProgressDone {
			t.Errorf("afterwards: %q", told(done))
		}
	})
}

// TestUsersOnce: a user who is twice among the authors counts once, and nobody else counts.
func TestUsersOnce(t *testing.T) {
	who := Requester{Path: by(0).Path, Authors: slices.Repeat(by(0).Authors, 2)}
	want := []string{by(0).users()[0]}
	if got := who.users(); !slices.Equal(got, want) {
		t.Errorf("users are %q, want %q", got, want)
	}
}
