package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
)

func TestExecuteInOrder(t *testing.T) {
	var w world
	s := w.catalogue(t)
	j := newJournal()
	plan, faults := s.Check(core.Plan{Response: "Here you are.", Steps: []core.Step{
		step("web-fetch", `{"n":2}`, func(s *core.Step) { s.Priority = 9 }),
		step("GOOGLE_IT", `{}`, func(s *core.Step) { s.Priority = 1 }),
		step("message", `{"message":"one"}`, func(s *core.Step) { s.Priority = 8 }),
	}}, by(core.Member))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	job := j.job(s, by(core.Member), plan.Steps...)
	done := run(t, NewRuntime(Options{}), job)
	same2(t, "calls", w.did(), []string{
		"telegram/-100/7: one", "telegram/-100/7: Here you are.", `web_search{}`, `web_fetch{"n":2}`,
	})
	same2(t, "done", told(done), []string{
		"4 message_telegram done", "1 message_telegram done", "3 web_search done", "2 web_fetch done",
	})
}

func TestExecuteGoesOnAfterACrash(t *testing.T) {
	var w world
	s := w.catalogue(t, w.act("once"), w.act("again", func(a *core.Action) { a.Idempotent = true }))
	j := newJournal()
	job := j.job(s, by(core.Member), step("web_search", `{}`), step("once", `{}`), step("again", `{}`))
	r := NewRuntime(Options{})
	run(t, r, job)
	w.did()
	tests := []struct {
		name  string
		at    uint16
		calls []string
		done  []string
	}{
		{"nothing lost", 4, nil, []string{"1 web_search done", "2 once done", "3 again done"}},
		{"in a step that may run again", 3, []string{`again{}`}, []string{"1 web_search done", "2 once done", "3 again done"}},
		{"in a step that may not", 2, []string{`again{}`},
			[]string{"1 web_search done", "2 once unknown: it is not known whether this was done: the bot was stopped in the middle", "3 again done"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if err := j.Write(t.Context()); err != nil {
				t.Fatal(err)
			}
			after := j.crash()
			for k, rec := range after.disk {
				if k.Step == test.at {
					rec.Progress = core.Started
					after.disk[k] = rec
				} else if k.Step > test.at {
					delete(after.disk, k)
				}
			}
			job.Journal = after
			same2(t, "done", told(run(t, r, job)), test.done)
			same2(t, "calls", w.did(), test.calls)
		})
	}
}

func TestStartedIsOnDiskBeforeDo(t *testing.T) {
	var w world
	j := newJournal()
	s := w.catalogue(t, w.act("look", func(a *core.Action) {
		a.Do = func(_ context.Context, c core.Call) (core.Result, error) {
			if j.disk[c.Key].Progress != core.Started {
				t.Error("not started on disk")
			}
			return core.Result{}, nil
		}
	}))
	run(t, NewRuntime(Options{}), j.job(s, by(core.Member), step("look", `{}`)))
	j.fail = errors.New("disk full")
	if _, err := NewRuntime(Options{}).Execute(t.Context(), j.job(s, by(core.Member), step("look", `{}`), step("web_search", `{}`))); !errors.Is(err, j.fail) {
		t.Errorf("a journal that cannot be written: %v", err)
	}
}

func TestExecuteFailures(t *testing.T) {
	var w world
	fails := func(err error) func(*core.Action) {
		return func(a *core.Action) {
			a.Do = func(context.Context, core.Call) (core.Result, error) { return core.Result{}, err }
		}
	}
	s := w.catalogue(t,
		w.act("broken", fails(errors.New("secret detail"))),
		w.act("needs_nothing_done", func(a *core.Action) { a.DependsOn = []string{"broken"} }),
		w.act("worded", fails(core.Errorf(core.Invalid, "no such town"))),
		w.act("panics", func(a *core.Action) {
			a.Do = func(context.Context, core.Call) (core.Result, error) { panic("boo") }
		}),
		w.act("refuses", func(a *core.Action) {
			a.Check = func(context.Context, core.Call) error { return core.Errorf(core.Invalid, "not today") }
		}),
		w.act("typed", func(a *core.Action) {
			a.Output = json.RawMessage(`{"type":"object","properties":{"n":{"type":"string"}},"required":["n"]}`)
		}),
	)
	tests := []struct{ name, want string }{
		{"broken", "1 broken failed: it did not work"},
		{"worded", "1 worded failed: no such town"},
		{"panics", "1 panics failed: it did not work"},
		{"refuses", "1 refuses skipped: not today"},
		{"typed", "1 typed failed: it did not work"},
		{"ban", "1 ban skipped: ban is not open to who asked for it"},
		{"needs_nothing_done", "1 needs_nothing_done skipped: needs_nothing_done needs broken to succeed first"},
		{"gone", "1 gone skipped: gone is not to be had any more"},
	}
	for _, test := range tests {
		job := newJournal().job(s, by(core.Member), step(test.name, `{}`), step("web_search", `{}`))
		same2(t, test.name, told(run(t, NewRuntime(Options{}), job)), []string{test.want, "2 web_search done"})
	}
}

func TestTimeoutAndRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w world
		tries := 0
		hangs := func(ctx context.Context, _ core.Call) (core.Result, error) {
			tries++
			<-ctx.Done()
			return core.Result{}, ctx.Err()
		}
		s := w.catalogue(t,
			w.act("slow", func(a *core.Action) { a.Do, a.Timeout, a.Retries = hangs, time.Second, 2 }),
			w.act("slow_again", func(a *core.Action) { a.Do, a.Timeout, a.Retries, a.Idempotent = hangs, time.Second, 2, true }),
			w.act("later", func(a *core.Action) {
				a.Retries = 3
				a.Do = func(context.Context, core.Call) (core.Result, error) {
					if tries++; tries < 3 {
						return core.Result{}, &core.Error{Kind: core.Temporary, Text: "busy", After: 5 * time.Second}
					}
					return core.Result{}, nil
				}
			}),
		)
		for _, test := range []struct {
			name  string
			want  string
			tries int
			least time.Duration
		}{
			{"slow", "1 slow unknown: it took too long, and it is not known whether it was done", 1, time.Second},
			{"slow_again", "1 slow_again failed: it took too long", 3, 3 * time.Second},
			{"later", "1 later done", 3, 10 * time.Second},
		} {
			tries = 0
			start := time.Now()
			r := NewRuntime(Options{})
			same2(t, test.name, told(run(t, r, newJournal().job(s, by(core.Member), step(test.name, `{}`)))), []string{test.want})
			r.Wait()
			if tries != test.tries || time.Since(start) < test.least {
				t.Errorf("%s: %d tries in %v", test.name, tries, time.Since(start))
			}
		}
	})
}

func TestACallThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w world
		free := make(chan struct{})
		s := w.catalogue(t, w.act("stuck", func(a *core.Action) {
			a.Busy = core.Refuse
			a.Do = func(context.Context, core.Call) (core.Result, error) { <-free; return core.Result{}, nil }
		}))
		r := NewRuntime(Options{})
		job := newJournal().job(s, by(core.Member), step("stuck", `{}`), step("web_search", `{}`))
		same2(t, "first", told(run(t, r, job)), []string{"1 stuck unknown: it took too long, and it is not known whether it was done", "2 web_search done"})
		job = newJournal().job(s, by(core.Member), step("stuck", `{}`))
		same2(t, "second", told(run(t, r, job)), []string{"1 stuck skipped: stuck is still at work on the last request"})
		close(free)
		r.Wait()
	})
}

func TestTheEndOfWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w world
		ctx, cancel := context.WithCancel(t.Context())
		s := w.catalogue(t, w.act("long", func(a *core.Action) {
			a.Do = func(ctx context.Context, _ core.Call) (core.Result, error) {
				cancel()
				<-ctx.Done()
				return core.Result{}, ctx.Err()
			}
		}))
		j := newJournal()
		_, err := NewRuntime(Options{}).Execute(ctx, j.job(s, by(core.Member), step("long", `{}`), step("web_search", `{}`)))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v", err)
		}
		if rec := j.disk[core.Key{Turn: core.TurnID{Path: here, Seq: 1}, Round: 1, Step: 1}]; rec.Progress != core.Started {
			t.Errorf("the journal says %q", rec.Progress)
		}
		same2(t, "calls", w.did(), nil)
	})
}

func TestControls(t *testing.T) {
	var w world
	s := w.catalogue(t)
	plan, faults := s.Check(core.Plan{Steps: []core.Step{step("Keep_Talking", ``), step("ignore", ``), step("none", ``)}}, by(core.Member))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	done := run(t, NewRuntime(Options{}), newJournal().job(s, by(core.Member), plan.Steps...))
	same2(t, "done", told(done), []string{"1 CONTINUE done", "2 IGNORE done", "3 NONE done"})
	often := by(core.Member)
	often.Continued = MaxContinue
	done = run(t, NewRuntime(Options{}), newJournal().job(s, often, plan.Steps[0]))
	same2(t, "often", told(done), []string{fmt.Sprintf("1 CONTINUE skipped: %d times in a row are enough", MaxContinue)})
}

// TestAwayIsLater: whatever a driver sends waits while its platform is away, or when
// nobody knows whether it was sent; what others do has failed.
func TestAwayIsLater(t *testing.T) {
	var w world
	fail := core.ErrAway
	act := func(name string, idempotent bool) core.Action {
		return w.act(name, func(a *core.Action) {
			a.Idempotent, a.Permission, a.RateLimit = idempotent, core.Everyone, core.RateLimit{Count: 1, Per: time.Hour}
			a.Do = func(context.Context, core.Call) (core.Result, error) { return core.Result{}, fail }
		})
	}
	s, err := Build(
		iface{plug{"telegram", []core.Action{w.message("telegram"), act("photo", true), act("open_topic", false)}}},
		plug{"tools", []core.Action{act("tell", true)}},
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		action string
		err    error
		want   core.Progress // "": the turn is broken off
	}{
		{"photo", core.ErrAway, ""}, {"photo", core.ErrUnknownOutcome, ""}, {"tell", core.ErrAway, core.Failed}, {"tell", core.ErrUnknownOutcome, core.Unknown},
		{"open_topic", core.ErrAway, core.Failed}, {"open_topic", core.ErrUnknownOutcome, core.Unknown},
		{"photo", core.Errorf(core.Unsure, "who knows"), core.Unknown},
	} {
		fail = tc.err
		r, job := NewRuntime(Options{}), newJournal().job(s, by(core.Member), step(tc.action, `{}`))
		done, err := r.Execute(t.Context(), job)
		switch {
		case tc.want == "" && !errors.Is(err, tc.err), tc.want != "" && (err != nil || done[0].Progress != tc.want):
			t.Errorf("%s, %v: %+v, %v", tc.action, tc.err, done, err)
		case tc.want == core.Unknown && done[0].Outcome.Kind != core.Unsure:
			t.Errorf("%s, %v: of kind %s", tc.action, tc.err, done[0].Outcome.Kind)
		}
		if tc.want != "" {
			continue
		}
		fail = nil // taken up again, it does not count as another use
		if done := run(t, r, job); done[0].Progress != core.Done {
			t.Errorf("%s, taken up again: %+v", tc.action, done)
		}
	}
}
