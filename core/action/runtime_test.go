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
)

func TestExecuteInOrder(t *testing.T) {
	var w world
	s := w.catalogue(t)
	j := newJournal()
	plan, faults := s.Check(core.Plan{Response: "Here you are.", Steps: []core.Step{
		step("web-fetch", `{"n":2}`, func(s *core.Step) { s.Priority = 9 }),
		step("GOOGLE_IT", `{}`, func(s *core.Step) { s.Priority = 1 }),
		step("message", `{"message":"one"}`, func(s *core.Step) { s.Priority = 8 }),
	}}, by(core.RankMember))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	job := j.job(s, by(core.RankMember), plan.Steps...)
	done := run(t, NewRuntime(Options{}), job)
	wantLines(t, "calls", w.did(), []string{
		"telegram/-100/7: Here you are.", "telegram/-100/7: one", `web_search{}`, `web_fetch{"n":2}`,
	})
	wantLines(t, "done", describe(done), []string{
		"1 message_telegram done", "4 message_telegram done", "3 web_search done", "2 web_fetch done",
	})
}

func TestExecuteGoesOnAfterACrash(t *testing.T) {
	var w world
	s := w.catalogue(t, w.act("once"), w.act("again", func(a *core.Action) { a.Idempotent = true }))
	j := newJournal()
	job := j.job(s, by(core.RankMember), step("web_search", `{}`), step("once", `{}`), step("again", `{}`))
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
					rec.Progress = core.ProgressStarted
					after.disk[k] = rec
				} else if k.Step > test.at {
					delete(after.disk, k)
				}
			}
			job.Journal = after
			wantLines(t, "done", describe(run(t, r, job)), test.done)
			wantLines(t, "calls", w.did(), test.calls)
		})
	}
}

func TestStartedIsOnDiskBeforeDo(t *testing.T) {
	var w world
	j := newJournal()
	s := w.catalogue(t, w.act("look", func(a *core.Action) {
		a.Do = func(_ context.Context, c core.Call) (core.Result, error) {
			if j.disk[c.Key].Progress != core.ProgressStarted {
				t.Error("the start is not on disk before the action runs")
			}
			return core.Result{}, nil
		}
	}))
	run(t, NewRuntime(Options{}), j.job(s, by(core.RankMember), step("look", `{}`)))
	j.fail = errors.New("disk full")
	if _, err := NewRuntime(Options{}).Execute(t.Context(), j.job(s, by(core.RankMember), step("look", `{}`), step("web_search", `{}`))); !errors.Is(err, j.fail) {
		t.Errorf("a failing journal: unexpected error %v", err)
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
		w.act("check_panics", func(a *core.Action) {
			a.Check = func(context.Context, core.Call) error { panic("boo") }
		}),
		w.act("quiet", func(a *core.Action) {
			a.Output = json.RawMessage(`{"type":"object"}`)
			a.Do = func(context.Context, core.Call) (core.Result, error) { return core.Result{}, nil }
		}),
		w.act("babbles", func(a *core.Action) {
			a.Do = func(context.Context, core.Call) (core.Result, error) {
				return core.Result{Output: json.RawMessage(`{`)}, nil
			}
		}),
		w.act("typed_well", func(a *core.Action) {
			a.Output = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
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
		{"typed", "1 typed failed: it was done, but its output does not match its schema"},
		{"typed_well", "1 typed_well done"},
		{"check_panics", "1 check_panics skipped: it did not work"},
		{"quiet", "1 quiet failed: it was done, but its output does not match its schema"},
		{"babbles", "1 babbles failed: it did not work"},
		{"ban", "1 ban skipped: ban is not open to the user who asked for it"},
		{"needs_nothing_done", "1 needs_nothing_done skipped: needs_nothing_done needs broken to succeed first"},
		{"gone", "1 gone skipped: gone is no longer available"},
	}
	for _, test := range tests {
		job := newJournal().job(s, by(core.RankMember), step(test.name, `{}`), step("web_search", `{}`))
		wantLines(t, test.name, describe(run(t, NewRuntime(Options{}), job)), []string{test.want, "2 web_search done"})
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
		fails := func(err error) func(*core.Action) {
			return func(a *core.Action) {
				a.Retries = 2
				a.Do = func(context.Context, core.Call) (core.Result, error) { tries++; return core.Result{}, err }
			}
		}
		ends := func(err error) func(*core.Action) { // returns err after the timeout
			return func(a *core.Action) {
				a.Timeout, a.Retries = time.Second, 2
				a.Do = func(ctx context.Context, _ core.Call) (core.Result, error) {
					tries++
					<-ctx.Done()
					return core.Result{}, err
				}
			}
		}
		s := w.catalogue(t,
			w.act("slow", func(a *core.Action) { a.Do, a.Timeout, a.Retries = hangs, time.Second, 2 }),
			w.act("slow_again", func(a *core.Action) { a.Do, a.Timeout, a.Retries, a.Idempotent = hangs, time.Second, 2, true }),
			w.act("at_last", ends(nil)), w.act("refused_late", ends(core.Errorf(core.Invalid, "no such town"))),
			w.act("away_late", ends(core.Errorf(core.Temporary, "no answer"))), w.act("ended_late", ends(&core.Error{Kind: core.Broken, Err: context.DeadlineExceeded})),
			w.act("cut_late", ends(&core.Error{Kind: core.Broken, Err: context.Canceled})),
			w.act("wrong", fails(core.Errorf(core.Invalid, "no such town"))), w.act("busy", fails(core.Errorf(core.Occupied, "in use"))),
			w.act("busy_long", fails(&core.Error{Kind: core.Occupied, Text: "in use", After: maxPause + 1})),
			w.act("busy_for_a_while", fails(&core.Error{Kind: core.Occupied, Text: "in use", After: maxPause})),
			w.act("soon", func(a *core.Action) {
				a.Retries = 2
				a.Do = func(context.Context, core.Call) (core.Result, error) {
					if tries++; tries < 3 {
						return core.Result{}, core.Errorf(core.Temporary, "busy")
					}
					return core.Result{}, nil
				}
			}),
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
			{"soon", "1 soon done", 3, 0},
			{"at_last", "1 at_last done", 1, time.Second},
			{"refused_late", "1 refused_late failed: no such town", 1, time.Second},
			{"away_late", "1 away_late unknown: it took too long, and it is not known whether it was done", 1, time.Second},
			{"ended_late", "1 ended_late unknown: it took too long, and it is not known whether it was done", 1, time.Second},
			{"cut_late", "1 cut_late unknown: it took too long, and it is not known whether it was done", 1, time.Second},
			{"wrong", "1 wrong failed: no such town", 1, 0},
			{"busy", "1 busy failed: in use", 1, 0},
			{"busy_long", "1 busy_long failed: in use", 1, 0},
			{"busy_for_a_while", "1 busy_for_a_while failed: in use", 3, 60 * time.Second},
		} {
			tries = 0
			start := time.Now()
			r := NewRuntime(Options{})
			done := run(t, r, newJournal().job(s, by(core.RankMember), step(test.name, `{}`)))
			wantLines(t, test.name, describe(done), []string{test.want})
			r.Wait()
			if tries != test.tries || done[0].Outcome.Tries != test.tries || time.Since(start) < test.least {
				t.Errorf("%s: unexpected: %d tries in %v", test.name, tries, time.Since(start))
			}
		}
	})
}

// TestHangingCallIsNotRepeated: a call that hangs is not retried, so that two calls of a step never
// run at once.
func TestHangingCallIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w world
		free := make(chan struct{})
		s := w.catalogue(t, w.act("stuck", func(a *core.Action) {
			a.Idempotent, a.Retries = true, 2
			a.Do = func(context.Context, core.Call) (core.Result, error) {
				w.note("stuck")
				<-free
				return core.Result{}, nil
			}
		}))
		r := NewRuntime(Options{})
		wantLines(t, "done", describe(run(t, r, newJournal().job(s, by(0), step("stuck", `{}`)))), []string{"1 stuck failed: it took too long"})
		wantLines(t, "calls", w.did(), []string{"stuck"})
		close(free)
		r.Wait()
	})
}

// TestStopWhilePausing: no retry happens once the context has ended.
func TestStopWhilePausing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w world
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s := w.catalogue(t, w.act("busy", func(a *core.Action) {
			a.Retries = 10
			a.Do = func(ctx context.Context, _ core.Call) (core.Result, error) {
				w.note("busy: %v", ctx.Err())
				return core.Result{}, &core.Error{Kind: core.Temporary, After: 25 * time.Second}
			}
		}))
		if _, err := NewRuntime(Options{}).Execute(ctx, newJournal().job(s, by(0), step("busy", `{}`))); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("unexpected error %v", err)
		}
		wantLines(t, "calls", w.did(), slices.Repeat([]string{"busy: <nil>"}, 3))
	})
}

// TestStopAfterSuccess: a step that succeeds while the context ends is recorded as done.
func TestStopAfterSuccess(t *testing.T) {
	var w world
	ctx, cancel := context.WithCancel(t.Context())
	s := w.catalogue(t, w.act("last", func(a *core.Action) {
		a.Do = func(context.Context, core.Call) (core.Result, error) { cancel(); return core.Result{}, nil }
	}))
	j := newJournal()
	done, err := NewRuntime(Options{}).Execute(ctx, j.job(s, by(0), step("last", `{}`), step("web_search", `{}`)))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("unexpected error %v", err)
	}
	wantLines(t, "done", describe(done), []string{"1 last done"})
	r, _ := j.Find(core.Key{Turn: core.TurnID{Path: here, Seq: 1}, Round: 1, Step: 1})
	if r.Progress != core.ProgressDone {
		t.Errorf("the record says %s, want %s", r.Progress, core.ProgressDone)
	}
	wantLines(t, "calls", w.did(), nil)
}

func TestHangingCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w world
		free := make(chan struct{})
		s := w.catalogue(t, w.act("stuck", func(a *core.Action) {
			a.Busy = core.BusyRefuse
			a.Do = func(context.Context, core.Call) (core.Result, error) { <-free; return core.Result{}, nil }
		}))
		r := NewRuntime(Options{})
		job := newJournal().job(s, by(core.RankMember), step("stuck", `{}`), step("web_search", `{}`))
		wantLines(t, "first", describe(run(t, r, job)), []string{"1 stuck unknown: it took too long, and it is not known whether it was done", "2 web_search done"})
		job = newJournal().job(s, by(core.RankMember), step("stuck", `{}`))
		wantLines(t, "second", describe(run(t, r, job)), []string{"1 stuck skipped: stuck is still working on the last request"})
		waited := make(chan struct{})
		go func() {
			defer close(waited)
			r.Wait()
		}()
		synctest.Wait()
		select {
		case <-waited:
			t.Error("Wait returned before the hanging call")
		default:
		}
		close(free)
		<-waited
		job = newJournal().job(s, by(core.RankMember), step("stuck", `{}`))
		wantLines(t, "third", describe(run(t, r, job)), []string{"1 stuck done"})
	})
}

func TestStopWhileRunning(t *testing.T) {
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
		_, err := NewRuntime(Options{}).Execute(ctx, j.job(s, by(core.RankMember), step("long", `{}`), step("web_search", `{}`)))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("unexpected error %v", err)
		}
		rec := j.disk[core.Key{Turn: core.TurnID{Path: here, Seq: 1}, Round: 1, Step: 1}]
		if rec.Progress != core.ProgressStarted {
			t.Errorf("unexpected progress %q in the journal", rec.Progress)
		}
		wantLines(t, "calls", w.did(), nil)
	})
}

func TestControls(t *testing.T) {
	var w world
	s := w.catalogue(t)
	plan, faults := s.Check(core.Plan{Steps: []core.Step{step("Keep_Talking", ``), step("ignore", ``), step("none", ``)}}, by(core.RankMember))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	done := run(t, NewRuntime(Options{}), newJournal().job(s, by(core.RankMember), plan.Steps...))
	wantLines(t, "done", describe(done), []string{"1 CONTINUE done", "2 IGNORE done", "3 NONE done"})
	often := by(core.RankMember)
	often.Continued = MaxContinue
	done = run(t, NewRuntime(Options{}), newJournal().job(s, often, plan.Steps[0]))
	wantLines(t, "often", describe(done), []string{fmt.Sprintf("1 CONTINUE skipped: %d times in a row are enough", MaxContinue)})
	done = run(t, NewRuntime(Options{}), newJournal().job(s, often, plan.Steps[1]))
	wantLines(t, "often ignored", describe(done), []string{"1 IGNORE done"})
}

// TestAwayIsLater: an action of the turn's own platform ends the turn for a later retry if the
// platform is away, or if the outcome is unknown and the action idempotent. Other actions fail or
// are unknown.
func TestAwayIsLater(t *testing.T) {
	var w world
	fail := core.ErrAway
	act := func(name string, idempotent bool) core.Action {
		return w.act(name, func(a *core.Action) {
			a.Idempotent, a.Permission = idempotent, core.PermissionEveryone
			a.RateLimit = core.RateLimit{Count: 1, Per: time.Hour}
			a.Do = func(context.Context, core.Call) (core.Result, error) { return core.Result{}, fail }
		})
	}
	s, err := Build(
		iface{plug{"telegram", []core.Action{w.message("telegram"), act("photo", true), act("open_topic", false)}}},
		iface{plug{"discord", []core.Action{w.message("discord"), act("sticker", true)}}},
		plug{"tools", []core.Action{act("tell", true)}},
	)
	if err != nil {
		t.Fatal(err)
	}
	s = s.With(Policy{Grants: []Grant{{}}})
	for _, tc := range []struct {
		action string
		err    error
		want   core.Progress // "": the turn ends and is retried
	}{
		{"photo", core.ErrAway, ""}, {"photo", core.ErrUnknownOutcome, ""}, {"tell", core.ErrAway, core.ProgressFailed}, {"tell", core.ErrUnknownOutcome, core.ProgressUnknown},
		{"open_topic", core.ErrAway, core.ProgressFailed}, {"open_topic", core.ErrUnknownOutcome, core.ProgressUnknown},
		{"photo", core.Errorf(core.Unsure, "who knows"), core.ProgressUnknown},
		{"sticker", core.ErrAway, core.ProgressFailed}, {"sticker", core.ErrUnknownOutcome, ""}, // another platform is not waited for if it is away
		{"tell", core.ErrUnwritten, ""},
	} {
		fail = tc.err
		r, job := NewRuntime(Options{}), newJournal().job(s, by(core.RankMember), step(tc.action, `{}`))
		done, err := r.Execute(t.Context(), job)
		switch {
		case tc.want == "" && !errors.Is(err, tc.err), tc.want != "" && (err != nil || done[0].Progress != tc.want):
			t.Errorf("%s, %v: unexpected result %+v, %v", tc.action, tc.err, done, err)
		case tc.want == core.ProgressUnknown && done[0].Outcome.Kind != core.Unsure:
			t.Errorf("%s, %v: got kind %s, want unsure", tc.action, tc.err, done[0].Outcome.Kind)
		}
		if tc.want != "" {
			continue
		}
		fail = nil // the retry does not count towards the rate limit
		if done := run(t, r, job); done[0].Progress != core.ProgressDone {
			t.Errorf("%s was retried as %+v, want it done", tc.action, done)
		}
	}
}

// TestOutputs: an output that is too long is cut; other JSON is passed on.
func TestOutputs(t *testing.T) {
	var w world
	output := ""
	s := w.catalogue(t, w.act("look", func(a *core.Action) {
		a.Do = func(context.Context, core.Call) (core.Result, error) {
			return core.Result{Output: json.RawMessage(output)}, nil
		}
	}))
	text := func(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }
	for given, want := range map[string]string{
		"": "", `{"b": 1.0, "a":"<"}`: `{"a":"<","b":1.0}`, "null": "null",
		text(maxOutput):     text(maxOutput),
		text(maxOutput + 1): `{"cut":"\"` + strings.Repeat("x", maxOutput/2-1) + `…"}`,
	} {
		output = given
		done := run(t, NewRuntime(Options{}), newJournal().job(s, by(core.RankMember), step("look", `{}`)))
		if got := string(done[0].Output); got != want || done[0].Progress != core.ProgressDone {
			t.Errorf("%.80s became %.80s, want %.80s", given, got, want)
		}
	}
}

// TestCallFields: a call holds its author (or the lowest rank of several), the messages it answers,
// the places it sees, and when it was planned.
func TestCallFields(t *testing.T) {
	var w world
	var got core.Call
	s := w.catalogue(t, w.act("look", func(a *core.Action) {
		a.Do = func(_ context.Context, c core.Call) (core.Result, error) { got = c; return core.Result{}, nil }
	}))
	j := newJournal()
	many := by(core.RankAdmin, core.RankModerator)
	many.Sees, many.Private = []core.Path{here, core.MustPath("discord/1")}, true
	job := j.job(s, many, step("look", `{}`))
	job.Answers = []string{"41", "42"}
	plan := core.Key{Turn: job.Turn, Round: 1}
	j.Later(core.Record{Key: plan, Progress: core.ProgressAccepted, Time: noon})
	run(t, NewRuntime(Options{}), job)
	if !got.Planned.Equal(noon) || got.Author.ID != "" || got.Author.Rank != core.RankModerator || len(got.Authors) != 2 || len(got.Sees) != 2 ||
		!got.Private || got.Path != here || len(got.Answers) != 2 || got.Key.Step != 1 {
		t.Errorf("unexpected call %+v", got)
	}
	run(t, NewRuntime(Options{}), newJournal().job(s, by(core.RankModerator), step("look", `{}`)))
	if got.Author.ID != "1" || len(got.Sees) != 1 || got.Sees[0] != here || !got.Planned.IsZero() {
		t.Errorf("unexpected call %+v", got)
	}
}

// TestUnreadableRecord: a step whose record cannot be read is not repeated.
func TestUnreadableRecord(t *testing.T) {
	var w world
	s := w.catalogue(t)
	j := newJournal()
	job := j.job(s, by(core.RankMember), step("web_search", `{}`), step("transfer", `{}`))
	for n, p := range map[uint16]core.Progress{1: core.ProgressDone, 2: core.ProgressFailed} {
		key := core.Key{Turn: job.Turn, Round: 1, Step: n}
		j.disk[key] = core.Record{Key: key, Progress: p, Data: json.RawMessage(`{`)}
	}
	wantLines(t, "done", describe(run(t, NewRuntime(Options{}), job)), []string{"1 web_search done: its record cannot be read", "2 transfer failed: its record cannot be read"})
	wantLines(t, "calls", w.did(), nil)
	key := core.Key{Turn: job.Turn, Round: 1, Step: 1}
	j.disk[key] = core.Record{Key: key, Progress: core.ProgressDone, Data: json.RawMessage(`{"action":"web_search","result":5}`)}
	job.Round, job.Plan.Steps = 2, []core.Step{step("web_fetch", `{}`)}
	wantLines(t, "the round after", describe(run(t, NewRuntime(Options{}), job)), []string{"1 web_fetch skipped: web_fetch needs web_search to succeed first"})
}

// TestGuard: a step that the turn's guard refuses is skipped without a question.
func TestGuard(t *testing.T) {
	var w world
	rewrites := func(a *core.Action) { a.Effects = core.EffectRewrites }
	asks := func(a *core.Action) { a.Effects, a.Confirm = core.EffectRewrites, true }
	s := w.catalogue(t, w.act("edit", rewrites), w.act("delete", asks), w.act("own", rewrites))
	steps := []core.Step{step("edit", `{}`), step("delete", `{}`), step("own", `{}`), step("web_search", `{}`)}
	job := newJournal().job(s, by(0), steps...)
	job.Guard = func(_ context.Context, d *Definition, c core.Call) error {
		if d.Name == "own" {
			return nil
		}
		return core.Errorf(core.Forbidden, "not by %s", c.Author.Name)
	}
	wantLines(t, "done", describe(run(t, NewRuntime(Options{}), job)),
		[]string{"1 edit skipped: not by Person 1", "2 delete skipped: not by Person 1", "3 own done", "4 web_search done"})
	wantLines(t, "calls", w.did(), []string{`own{}`, `web_search{}`})
}

// TestCheckThatCannotTell: if an action's own check reports that its platform is away or nothing
// can be written, the turn ends and is retried later.
func TestCheckThatCannotTell(t *testing.T) {
	var w world
	var fail error
	s, err := Build(iface{plug{"telegram", []core.Action{w.message("telegram"), w.act("photo", func(a *core.Action) {
		a.Idempotent, a.Check = true, func(context.Context, core.Call) error { return fail }
	})}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, fail = range []error{core.ErrAway, core.ErrUnwritten} {
		if done, err := NewRuntime(Options{}).Execute(t.Context(), newJournal().job(s, by(0), step("photo", `{}`))); !errors.Is(err, fail) || len(done) > 0 {
			t.Errorf("got %q and error %v, want none and %v", describe(done), err, fail)
		}
	}
	fail = errors.New("no")
	wantLines(t, "refused", describe(run(t, NewRuntime(Options{}), newJournal().job(s, by(0), step("photo", `{}`)))), []string{"1 photo skipped: it did not work"})
}

// TestManySteps: a round has at most 200 steps, whatever results ask for, and the last of them
// counts like the others.
func TestManySteps(t *testing.T) {
	var w world
	many := make([]core.Step, 300)
	for i := range many {
		many[i] = step("web_search", `{}`)
	}
	s := w.catalogue(t, w.asks("burst", many...), w.failing("fails"))
	sorry := step("message_telegram", `{"text":"sorry"}`)
	fails := step("fails", `{}`, func(s *core.Step) { s.Fallback, s.Priority = &sorry, 1 })
	done := run(t, NewRuntime(Options{}), newJournal().job(s, by(0), step("burst", `{}`), fails))
	if n := len(done); n != maxNumber || done[n-2].Step != maxNumber || done[n-1].Action != "fails" {
		t.Errorf("%d steps, want %d; the last are %q", n, maxNumber, describe(done[n-2:]))
	}

	j := newJournal()
	plan := slices.Repeat([]core.Step{step("forget", `{"user":"1"}`)}, maxNumber-1)
	run(t, NewRuntime(Options{}), j.job(s, by(0), append(plan, step("web_search", `{}`))...))
	second := j.job(s, by(0), step("web_fetch", `{}`))
	second.Round = 2
	wantLines(t, "the round after", describe(run(t, NewRuntime(Options{}), second)), []string{"1 web_fetch done"})
}

// TestResultsOfEarlierRounds: a dependency is met by a step that succeeded in an earlier round,
// even without output, but not by one that failed.
func TestResultsOfEarlierRounds(t *testing.T) {
	var w world
	s := w.catalogue(t, w.failing("fails"), w.asks("silent"),
		w.act("after_fails", func(a *core.Action) { a.DependsOn = []string{"fails"} }),
		w.act("after_silent", func(a *core.Action) { a.DependsOn = []string{"silent"} }))
	j := newJournal()
	run(t, NewRuntime(Options{}), j.job(s, by(0), step("fails", `{}`), step("silent", `{}`)))
	job := j.job(s, by(0), step("after_fails", `{}`), step("after_silent", `{}`))
	job.Round = 3
	wantLines(t, "done", describe(run(t, NewRuntime(Options{}), job)),
		[]string{"1 after_fails skipped: after_fails needs fails to succeed first", "2 after_silent done"})
}
