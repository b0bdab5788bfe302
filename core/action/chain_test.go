package action

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"synthbot/core"
)

// asks returns an undoable action whose result asks for the steps in next.
func (w *world) asks(name string, next ...core.Step) core.Action {
	return w.act(name, func(a *core.Action) {
		a.Do = func(context.Context, core.Call) (core.Result, error) {
			w.note("%s", name)
			return core.Result{Next: next}, nil
		}
		a.Undo = func(context.Context, core.Call, core.Result) error {
			w.note("undo %s", name)
			return nil
		}
	})
}

// failing returns an action that always fails.
func (w *world) failing(name string) core.Action {
	return w.act(name, func(a *core.Action) {
		a.Do = func(context.Context, core.Call) (core.Result, error) {
			w.note("%s", name)
			return core.Result{}, core.Errorf(core.Broken, "no luck")
		}
	})
}

func TestConsequences(t *testing.T) {
	var w world
	s := w.catalogue(t,
		w.asks("a", step("B", `{}`), step("c", `{}`, func(s *core.Step) { s.Priority = 9 }), step("ban", `{}`), step("nix", `{}`), step("web_search", `{"n":"x"}`)),
		w.asks("b", step("a", `{}`)), w.asks("c"),
		w.asks("d1", step("d2", `{}`)), w.asks("d2", step("d3", `{}`)), w.asks("d3", step("d4", `{}`)), w.asks("d4", step("d5", `{}`)),
		w.asks("d5", step("d6", `{}`)), w.asks("d6"),
		w.asks("self", step("self", `{}`)),
	)
	for _, test := range []struct {
		name string
		want []string
	}{
		{"a", []string{"1 a done", "2 c done for 1", "3 b done for 1"}}, // forbidden, unknown, invalid and circular steps are left out
		{"d1", []string{"1 d1 done", "2 d2 done for 1", "3 d3 done for 2", "4 d4 done for 3", "5 d5 done for 4"}},
		{"self", []string{"1 self done"}},
	} {
		wantLines(t, test.name, describe(run(t, NewRuntime(Options{}), newJournal().job(s, by(core.RankMember), step(test.name, `{}`)))), test.want)
	}
}

func TestFallbacks(t *testing.T) {
	var w world
	s := w.catalogue(t, w.failing("fails"), w.failing("fails_too"))
	chain := step("fails", `{}`, func(s *core.Step) {
		second := step("fails_too", `{}`, func(s *core.Step) { third := step("message", `{"text":"sorry"}`); s.Fallback = &third })
		s.Fallback = &second
	})
	plan, faults := s.Check(core.Plan{Steps: []core.Step{chain, step("web_search", `{}`)}}, by(core.RankMember))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	j := newJournal()
	job := j.job(s, by(core.RankMember), plan.Steps...)
	lines := []string{"1 fails failed: no luck", "3 fails_too failed for 1: no luck", "4 message_telegram done for 3", "2 web_search done"}

	wantLines(t, "done", describe(run(t, NewRuntime(Options{}), job)), lines)
	wantLines(t, "calls", w.did(), []string{"fails", "fails_too", "telegram/-100/7: sorry", "web_search{}"})
	if err := j.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	job.Journal = j.crash()
	wantLines(t, "after a restart", describe(run(t, NewRuntime(Options{}), job)), lines)
	wantLines(t, "calls after a restart", w.did(), nil)
}

// TestUnitSurvivesCrashes cuts off the journal after each write of a unit and then continues with a
// new runtime: nothing is undone twice, and the unit always ends as failed.
func TestUnitSurvivesCrashes(t *testing.T) {
	unit := []core.Step{in("u", step("one", `{}`)), in("u", step("two", `{}`)), in("u", step("fails", `{}`))}
	again := func(a core.Action) core.Action { a.Idempotent = true; return a }
	for cut := 1; ; cut++ {
		var w world
		s := w.catalogue(t, again(w.asks("one")), again(w.asks("two")), again(w.failing("fails")))
		j := &cutJournal{journal: newJournal(), left: cut}
		job := j.job(s, by(core.RankMember), append(unit[:len(unit):len(unit)], step("web_search", `{}`))...)
		job.Journal = j
		_, err := NewRuntime(Options{}).Execute(t.Context(), job)
		first := w.did()
		if err == nil {
			if cut < 6 {
				t.Fatalf("the unit took only %d writes, want at least 6", cut)
			}
			if j.left < 0 {
				t.Errorf("cut %d: Execute did not return the journal's error", cut)
			}
			return
		}
		job.Journal = j.crash()
		done := run(t, NewRuntime(Options{}), job)
		undone := make(map[string]int)
		for _, c := range append(first, w.did()...) {
			undone[c]++
		}
		for _, name := range []string{"undo one", "undo two"} {
			if undone[name] > 1 {
				t.Errorf("cut %d: %s ran %d times, want at most once", cut, name, undone[name])
			}
		}
		for _, d := range done {
			if d.Action != "web_search" && d.Progress != core.ProgressFailed && d.Progress != core.ProgressUnknown || d.Action == "web_search" && d.Progress != core.ProgressDone {
				t.Errorf("cut %d: unexpected outcome %q", cut, describe(done))
			}
		}
	}
}

var errCut = errors.New("cut")

// cutJournal fails permanently after left writes.
type cutJournal struct {
	*journal
	left int
}

func (j *cutJournal) Write(ctx context.Context, records ...core.Record) error {
	if j.left--; j.left < 0 {
		return errCut
	}
	return j.journal.Write(ctx, records...)
}

func TestDependenciesOfEarlierRounds(t *testing.T) {
	var w world
	s := w.catalogue(t)
	j := newJournal()
	run(t, NewRuntime(Options{}), j.job(s, by(core.RankMember), step("web_search", `{}`)))
	second := j.job(s, by(core.RankMember), step("web_fetch", `{}`, func(s *core.Step) {
		s.Conditions = []core.Condition{{Field: "results.web_search.n", Operator: "eq", Value: json.RawMessage("1")}}
	}))
	second.Round = 2
	wantLines(t, "done", describe(run(t, NewRuntime(Options{}), second)), []string{"1 web_fetch done"})
}

// TestUndoFails: a step that cannot be undone stays done, and one whose undo fails is unknown.
// Neither prevents the others from being undone.
func TestUndoFails(t *testing.T) {
	var w world
	undo := func(f func() error) func(*core.Action) {
		return func(a *core.Action) { a.Undo = func(context.Context, core.Call, core.Result) error { return f() } }
	}
	s := w.catalogue(t,
		w.asks("one"), w.act("stays"), w.failing("fails"),
		w.act("refuses", undo(func() error { return errors.New("no") })), w.act("panics", undo(func() error { panic("boo") })),
		w.act("after_one", func(a *core.Action) { a.DependsOn = []string{"one"} }),
		w.act("after_stays", func(a *core.Action) { a.DependsOn = []string{"stays"} }),
	)
	const back, unsure = ": it was undone, because another step of its unit failed", ": another step of its unit failed, and it is not known whether this one could be undone"
	j := newJournal()
	done := run(t, NewRuntime(Options{}), j.job(s, by(0), in("u", step("one", `{}`)), in("u", step("stays", `{}`)), in("u", step("refuses", `{}`)),
		in("u", step("panics", `{}`)), in("u", step("fails", `{}`)), step("after_one", `{}`), step("after_stays", `{}`)))
	wantLines(t, "done", describe(done), []string{
		"1 one failed" + back, "2 stays done", "3 refuses unknown" + unsure, "4 panics unknown" + unsure,
		"5 fails failed: no luck", "6 after_one skipped: after_one needs one to succeed first", "7 after_stays done",
	})
	for _, d := range done {
		if r, _ := j.Find(d.Key); r.Progress != d.Progress || d.Progress != core.ProgressDone && d.Output != nil {
			t.Errorf("%s is %s with output %s, but its record says %s", d.Action, d.Progress, d.Output, r.Progress)
		}
	}
}

// TestTheEndOfUndoing: undoing stops when the context ends or the journal fails.
func TestTheEndOfUndoing(t *testing.T) {
	var w world
	ctx, cancel := context.WithCancel(t.Context())
	s := w.catalogue(t, w.asks("one"), w.failing("fails"), w.act("slow", func(a *core.Action) {
		a.Undo = func(ctx context.Context, _ core.Call, _ core.Result) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}
	}))
	unit := []core.Step{in("u", step("one", `{}`)), in("u", step("slow", `{}`)), in("u", step("fails", `{}`))}
	_, err := NewRuntime(Options{}).Execute(ctx, newJournal().job(s, by(0), unit...))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
	cut := newJournal().job(s, by(0), unit...)
	cut.Journal = &cutJournal{journal: newJournal(), left: 3} // fails after the starts of one, slow and fails
	if _, err := NewRuntime(Options{}).Execute(t.Context(), cut); !errors.Is(err, errCut) {
		t.Errorf("got error %v", err)
	}
	for _, c := range w.did() {
		if c == "undo one" {
			t.Error("a step was undone after the end")
		}
	}
}

// TestConsequencesInOrder: the steps that a result asks for run by priority and then in order. A
// failing journal ends the round.
func TestConsequencesInOrder(t *testing.T) {
	var w world
	rank := func(n int) func(*core.Step) { return func(s *core.Step) { s.Priority = n } }
	s := w.catalogue(t, w.asks("a", step("b", `{}`, rank(1)), step("c", `{}`, rank(5)), step("d", `{}`, rank(1)), step("e", `{}`, rank(9))),
		w.asks("b"), w.asks("c"), w.asks("d"), w.asks("e"))
	run(t, NewRuntime(Options{}), newJournal().job(s, by(0), step("a", `{}`)))
	wantLines(t, "calls", w.did(), []string{"a", "e", "c", "b", "d"})
	job := newJournal().job(s, by(0), step("a", `{}`))
	job.Journal = &cutJournal{journal: newJournal(), left: 2}
	if _, err := NewRuntime(Options{}).Execute(t.Context(), job); !errors.Is(err, errCut) {
		t.Errorf("got error %v", err)
	}
	wantLines(t, "calls until the cut", w.did(), []string{"a", "e"})
}

// TestUnitDoesNotWaitForConfirmation: a unit with a step that depends on an unconfirmed step is
// skipped.
func TestUnitDoesNotWaitForConfirmation(t *testing.T) {
	var w world
	s := w.catalogue(t, w.asks("one"), w.act("receipt", func(a *core.Action) { a.DependsOn = []string{"transfer"} }))
	wantLines(t, "done", describe(run(t, NewRuntime(Options{}), newJournal().job(s, by(0), step("transfer", `{}`), in("u", step("one", `{}`)), in("u", step("receipt", `{}`))))), []string{
		"1 transfer pending", "2 one failed: it was undone, because another step of its unit failed", "3 receipt skipped: receipt needs transfer to succeed first",
	})
}
