package action

import (
	"context"
	"errors"
	"testing"
	"time"

	"synthbot/core"
)

// held runs a plan with one step to confirm and one that depends on it.
func held(t *testing.T, w *world, r *Runtime) (*Snapshot, Job) {
	t.Helper()
	s := w.catalogue(t, w.act("receipt", func(a *core.Action) { a.DependsOn = []string{"transfer"} }))
	j := newJournal()
	job := j.job(s, by(core.Member), step("transfer", `{"n":5}`), step("receipt", `{}`), step("web_search", `{}`))
	done := run(t, r, job)
	same2(t, "held", told(done), []string{"1 transfer pending", "2 receipt pending", "3 web_search done"})
	if done[0].Held == nil || done[0].Held.Question != "Do transfer\nn: 5" || done[1].Held.On != 1 {
		t.Fatalf("held: %+v, %+v", done[0].Held, done[1].Held)
	}
	if rec := j.disk[done[0].Key]; rec.Progress != core.Pending {
		t.Fatalf("on disk: %q", rec.Progress)
	}
	if err := j.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.did()
	job.Journal = j.crash()
	job.Plan = core.Plan{}
	return s, job
}

func TestConfirmation(t *testing.T) {
	now := noon
	r := NewRuntime(Options{Clock: func() time.Time { return now }})
	for _, test := range []struct {
		name        string
		agreed      bool
		after       time.Duration
		who         Who
		done, calls []string
	}{
		{"agreed", true, time.Minute, Who{}, []string{"1 transfer done", "2 receipt done"}, []string{`transfer{"n":5}`, "receipt{}"}},
		{"cancelled", false, time.Minute, Who{}, []string{"1 transfer skipped: it was cancelled", "2 receipt skipped: it was cancelled"}, nil},
		{"too late", true, 10 * time.Minute, Who{}, []string{"1 transfer skipped: nobody confirmed it in time", "2 receipt skipped: nobody confirmed it in time"}, nil},
	} {
		var w world
		now = noon
		_, job := held(t, &w, r)
		now = now.Add(test.after)
		job.Who = test.who
		done, err := r.Resume(t.Context(), job, 1, test.agreed)
		if err != nil {
			t.Fatal(err)
		}
		same2(t, test.name, told(done), test.done)
		same2(t, test.name+" calls", w.did(), test.calls)
		done, err = r.Resume(t.Context(), job, 1, true) // pressed twice
		if err != nil {
			t.Fatal(err)
		}
		same2(t, test.name+" twice", told(done), test.done)
		same2(t, test.name+" twice, calls", w.did(), nil)
	}
}

func TestConfirmationAsksAnew(t *testing.T) {
	var w world
	r := NewRuntime(Options{})
	s, job := held(t, &w, r)
	job.Snapshot = s.With(Policy{Rules: []Rule{{Actions: []string{"transfer"}, Permission: core.Admins}}})
	done, err := r.Resume(t.Context(), job, 1, true)
	if err != nil {
		t.Fatal(err)
	}
	same2(t, "done", told(done), []string{"1 transfer skipped: transfer is not open to who asked for it", "2 receipt skipped: receipt needs transfer to succeed first"})
}

func TestConfirmationAfterACrash(t *testing.T) {
	var w world
	r := NewRuntime(Options{})
	_, job := held(t, &w, r)
	j := &cutJournal{journal: job.Journal.(*journal), left: 2} // Taken, started; then the end
	job.Journal = j
	if _, err := r.Resume(t.Context(), job, 1, true); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	same2(t, "calls", w.did(), []string{`transfer{"n":5}`})
	job.Journal = j.crash()
	done, err := r.Resume(t.Context(), job, 1, true)
	if err != nil {
		t.Fatal(err)
	}
	same2(t, "done", told(done), []string{
		"1 transfer unknown: it is not known whether this was done: the bot was stopped in the middle", "2 receipt skipped: receipt needs transfer to succeed first",
	})
	same2(t, "calls of the next life", w.did(), nil)
}

func TestConfirmationOfTheModelsOwn(t *testing.T) {
	var w world
	s := w.catalogue(t)
	j := newJournal()
	job := j.job(s, by(core.Member), step("web_search", `{}`, func(s *core.Step) { s.Confirm = true }))
	same2(t, "one person", told(run(t, NewRuntime(Options{}), job)), []string{"1 web_search pending"})
	if len(j.disk) != 1 {
		t.Error("the question is not on disk before it is asked")
	}
	job = newJournal().job(s, by(core.Bot), step("web_search", `{}`, func(s *core.Step) { s.Confirm = true }))
	same2(t, "the bot", told(run(t, NewRuntime(Options{}), job)), []string{"1 web_search skipped: web_search must be confirmed, and nobody alone asked for it"})
}

func TestWhoMayConfirm(t *testing.T) {
	h := Held{Who: by(core.Member), Expires: noon}
	for who, want := range map[core.Author]bool{{ID: "1"}: true, {ID: "2"}: false, {ID: "2", Rank: core.Moderator}: false, {ID: "2", Rank: core.Admin}: true, {}: false} {
		if h.May(who) != want {
			t.Errorf("%+v: %v", who, !want)
		}
	}
	if h.Expired(noon.Add(-1)) || !h.Expired(noon) {
		t.Error("expires at the wrong time")
	}
}

func TestResumeOfNothing(t *testing.T) {
	var w world
	s := w.catalogue(t)
	job := newJournal().job(s, by(core.Member), step("web_search", `{}`))
	if _, err := NewRuntime(Options{}).Resume(context.Background(), job, 1, true); !errors.Is(err, errNotHeld) {
		t.Errorf("err = %v", err)
	}
	run(t, NewRuntime(Options{}), job)
	if _, err := NewRuntime(Options{}).Resume(context.Background(), job, 1, true); !errors.Is(err, errNotHeld) {
		t.Errorf("err = %v", err)
	}
}

// TestAHeldStepIsLeftToWhoTookItUp: the turn that asked may be taken up again
// after a crash, while the confirmed step is already on its way.
func TestAHeldStepIsLeftToWhoTookItUp(t *testing.T) {
	for _, progress := range []core.Progress{core.Pending, core.Taken, core.Started} {
		var w world
		r := NewRuntime(Options{})
		_, job := held(t, &w, r)
		j := job.Journal.(*journal)
		for k, rec := range j.disk {
			if k.Step == 1 {
				rec.Progress = progress
				j.disk[k] = rec
			}
		}
		job.Plan.Steps = []core.Step{step("transfer", `{"n":5}`), step("receipt", `{}`), step("web_search", `{}`)}
		same2(t, string(progress), told(run(t, r, job)), []string{"1 transfer pending", "2 receipt pending", "3 web_search done"})
		same2(t, "calls", w.did(), nil)
		if rec, _ := j.Find(core.Key{Turn: job.Turn, Round: 1, Step: 1}); rec.Progress != progress {
			t.Errorf("%s became %s", progress, rec.Progress)
		}
	}
}

// TestOnlyOnePersonMayConfirm: the one person who asked, and admins; nobody is nobody.
func TestOnlyOnePersonMayConfirm(t *testing.T) {
	anonymous := Who{Path: here, Authors: []core.Author{{}}}
	for _, tc := range []struct {
		asked Who
		by    core.Author
		may   bool
	}{
		{by(core.Member), core.Author{ID: "1"}, true},
		{by(core.Member), core.Author{ID: "2"}, false},
		{by(core.Member), core.Author{ID: "2", Rank: core.Moderator}, false},
		{by(core.Member), core.Author{ID: "2", Rank: core.Admin}, true},
		{by(core.Member, core.Member), core.Author{ID: "1"}, false},
		{by(), core.Author{}, false},
		{anonymous, core.Author{}, false},
		{anonymous, core.Author{ID: "1"}, false},
	} {
		if got := (&Held{Who: tc.asked}).May(tc.by); got != tc.may {
			t.Errorf("%+v may confirm what %+v asked for: %v", tc.by, tc.asked.Authors, got)
		}
	}
}
