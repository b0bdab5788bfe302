package action

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
)

func TestRateLimits(t *testing.T) {
	var w world
	now := noon
	r := NewRuntime(Options{Clock: func() time.Time { return now }})
	s := w.catalogue(t, w.act("dice", func(a *core.Action) { a.RateLimit = core.RateLimit{Count: 2, Per: time.Minute} }))
	ann, bob := by(core.Member), by(core.Member)
	bob.Authors[0].ID = "2"
	const often = "1 dice skipped: dice was used too often; try again in "
	for i, test := range []struct {
		who  Who
		at   time.Duration
		want string
	}{
		{ann, 0, "1 dice done"}, {ann, 10 * time.Second, "1 dice done"}, {ann, 20 * time.Second, often + "40s"},
		{bob, 20 * time.Second, "1 dice done"}, {by(0, 0), 30 * time.Second, often + "30s"},
		{ann, 60 * time.Second, "1 dice done"}, {ann, 61 * time.Second, often + "9s"}, {bob, 61 * time.Second, "1 dice done"},
	} {
		now = noon.Add(test.at)
		done := run(t, r, newJournal().job(s, test.who, step("dice", `{}`)))
		if got := told(done)[0]; got != test.want {
			t.Errorf("%d: %s, want %s", i, got, test.want)
		}
	}
}

func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w world
		slow := func(b core.Busy) func(*core.Action) {
			return func(a *core.Action) {
				a.Busy = b
				a.Do = func(ctx context.Context, c core.Call) (core.Result, error) {
					w.note("begin %s", c.Author.ID)
					sleep(ctx, time.Second)
					w.note("end %s", c.Author.ID)
					return core.Result{}, nil
				}
			}
		}
		s := w.catalogue(t, w.act("queues", slow(core.Queue)), w.act("refuses", slow(core.Refuse)))
		r := NewRuntime(Options{})
		both := func(name string, a, b Who) (second []Done) {
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
		ann, bob := by(core.Member), by(core.Member)
		bob.Authors[0].ID = "2"
		same2(t, "queue", told(both("queues", ann, ann)), []string{"1 queues done"})
		same2(t, "queue calls", w.did(), []string{"begin 1", "end 1", "begin 1", "end 1"})
		both("queues", ann, bob)
		if calls := w.did(); calls[1] != "begin 2" {
			t.Errorf("two people wait for each other: %q", calls)
		}
		same2(t, "refuse", told(both("refuses", ann, ann)), []string{"1 refuses skipped: refuses is still at work on the last request"})
		same2(t, "refuse calls", w.did(), []string{"begin 1", "end 1"})
		if len(r.locks.held) != 0 {
			t.Error("locks left over")
		}
	})
}

func TestCache(t *testing.T) {
	var w world
	now := noon
	r := NewRuntime(Options{Clock: func() time.Time { return now }})
	s := w.catalogue(t, w.act("weather", func(a *core.Action) { a.Cache = time.Hour }))
	bob, elsewhere, later := by(core.Member), by(core.Member), by(core.Member)
	bob.Authors[0].ID = "2"
	later.Epoch = 1 // somebody was forgotten
	elsewhere.Path = core.MustPath("telegram/1")
	for i, test := range []struct {
		who     Who
		payload string
		at      time.Duration
		called  int
	}{
		{by(0), `{"n":1}`, 0, 1}, {by(0), `{"n":1}`, time.Minute, 0}, {by(0), `{"n":2}`, time.Minute, 1}, {bob, `{"n":1}`, time.Minute, 1},
		{elsewhere, `{"n":1}`, time.Minute, 1}, {later, `{"n":1}`, time.Minute, 1}, {by(0), `{"n":1}`, time.Hour, 1},
	} {
		now = noon.Add(test.at)
		done := run(t, r, newJournal().job(s, test.who, step("weather", test.payload)))
		if string(done[0].Output) != `{"n":1}` || len(w.did()) != test.called {
			t.Errorf("%d: output %s", i, done[0].Output)
		}
	}
	for i := range 2 * maxCached {
		who := by(core.Member)
		who.Authors[0].ID = time.Duration(i).String()
		run(t, r, newJournal().job(s, who, step("weather", `{}`)))
	}
	if n := len(r.cache.entries); n > maxCached {
		t.Errorf("%d results are kept", n)
	}
}
