package action

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"synthbot/core"
)

// held runs a plan with one step to confirm and one that depends on it.
func held(t *testing.T, w *world, r *Runtime) (*Snapshot, Job) {
	t.Helper()
	s := w.catalogue(t, w.act("receipt", func(a *core.Action) { a.DependsOn = []string{"transfer"} }))
	j := newJournal()
	job := j.job(s, by(core.RankMember), step("transfer", `{"n":5}`), step("receipt", `{}`), step("web_search", `{}`))
	done := run(t, r, job)
	same2(t, "held", told(done), []string{"1 transfer pending", "2 receipt pending", "3 web_search done"})
	if done[0].Held == nil || done[0].Held.Question != "Do transfer\nn: 5" || done[1].Held.On != 1 {
		t.Fatalf("held: %+v, %+v", done[0].Held, done[1].Held)
	}
	if rec := j.disk[done[0].Key]; rec.Progress != core.ProgressPending {
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

var yes = Answer{Agreed: true}

func TestConfirmation(t *testing.T) {
	now := noon
	r := NewRuntime(Options{Clock: func() time.Time { return now }})
	for _, test := range []struct {
		name        string
		agreed      bool
		after       time.Duration
		who         Requester
		done, calls []string
	}{
		{"agreed", true, time.Minute, Requester{}, []string{"1 transfer done", "2 receipt done"}, []string{`transfer{"n":5}`, "receipt{}"}},
		{"cancelled", false, time.Minute, Requester{}, []string{"1 transfer skipped: it was cancelled", "2 receipt skipped: it was cancelled"}, nil},
		{"not asked", false, 10 * time.Minute, Requester{}, []string{
			"1 transfer skipped: the question could not be asked: too long", "2 receipt skipped: the question could not be asked: too long",
		}, nil},
		{"too late", true, 10 * time.Minute, Requester{}, []string{"1 transfer skipped: nobody answered in time", "2 receipt skipped: nobody answered in time"}, nil},
	} {
		var w world
		now = noon
		_, job := held(t, &w, r)
		now = now.Add(test.after)
		job.Who = test.who
		if test.name == "not asked" {
			key := core.Key{Turn: job.Turn, Round: 1, Step: 1}
			r, _ := job.Journal.Find(key)
			h, err := ReadHeld(r)
			if err != nil {
				t.Fatal(err)
			}
			_, h.Unasked = UserText(core.Errorf(core.Broken, "too long"))
			r.Data = core.JSON(h)
			job.Journal.Later(r)
		}
		done, err := r.Resume(t.Context(), job, 1, Answer{Agreed: test.agreed})
		if err != nil {
			t.Fatal(err)
		}
		same2(t, test.name, told(done), test.done)
		same2(t, test.name+" calls", w.did(), test.calls)
		for _, agreed := range []bool{true, false} { // pressed again
			done, err = r.Resume(t.Context(), job, 1, Answer{Agreed: agreed})
			if err != nil {
				t.Fatal(err)
			}
			same2(t, test.name+" again", told(done), test.done)
		}
		same2(t, test.name+" twice, calls", w.did(), nil)
	}
}

func TestConfirmationAsksAnew(t *testing.T) {
	var w world
	r := NewRuntime(Options{})
	s, job := held(t, &w, r)
	job.Snapshot = s.With(Policy{Rules: []Rule{{Actions: []string{"transfer"}, Permission: core.PermissionAdmins}}})
	done, err := r.Resume(t.Context(), job, 1, yes)
	if err != nil {
		t.Fatal(err)
	}
	same2(t, "done", told(done), []string{"1 transfer skipped: transfer is not open to the user who asked for it", "2 receipt skipped: receipt needs transfer to succeed first"})
}

func TestConfirmationAfterACrash(t *testing.T) {
	var w world
	r := NewRuntime(Options{})
	_, job := held(t, &w, r)
	j := &cutJournal{journal: job.Journal.(*journal), left: 2} // Taken, started; then the end
	job.Journal = j
	if _, err := r.Resume(t.Context(), job, 1, yes); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	same2(t, "calls", w.did(), []string{`transfer{"n":5}`})
	job.Journal = j.crash()
	done, err := r.Resume(t.Context(), job, 1, yes)
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
	job := j.job(s, by(core.RankMember), step("web_search", `{}`, func(s *core.Step) { s.Confirm = true }))
	same2(t, "one person", told(run(t, NewRuntime(Options{}), job)), []string{"1 web_search pending"})
	if len(j.disk) != 1 {
		t.Error("the question is not on disk before it is asked")
	}
	job = newJournal().job(s, by(core.RankBot), step("web_search", `{}`, func(s *core.Step) { s.Confirm = true }))
	same2(t, "the bot", told(run(t, NewRuntime(Options{}), job)), []string{"1 web_search skipped: web_search must be confirmed, and no single person asked for it"})
}

func TestWhoMayConfirm(t *testing.T) {
	h := Held{Who: by(core.RankMember), Expires: noon}
	for who, want := range map[core.Author]bool{{ID: "1"}: true, {ID: "2"}: false, {ID: "2", Rank: core.RankModerator}: false, {ID: "2", Rank: core.RankAdmin}: true, {}: false} {
		if h.MayDecide(who) != want {
			t.Errorf("%+v: %v", who, !want)
		}
	}
	if h.Expired(noon.Add(-1)) || !h.Expired(noon) || (&Held{On: 1}).Expired(noon) {
		t.Error("expires at the wrong time")
	}
}

func TestResumeOfNothing(t *testing.T) {
	var w world
	s := w.catalogue(t)
	job := newJournal().job(s, by(core.RankMember), step("web_search", `{}`))
	if _, err := NewRuntime(Options{}).Resume(t.Context(), job, 1, yes); !errors.Is(err, errNotHeld) {
		t.Errorf("err = %v", err)
	}
	run(t, NewRuntime(Options{}), job)
	if _, err := NewRuntime(Options{}).Resume(t.Context(), job, 1, yes); !errors.Is(err, errNotHeld) {
		t.Errorf("err = %v", err)
	}
	j := newJournal()
	key := core.Key{Turn: job.Turn, Round: 1, Step: 1}
	j.disk[key] = core.Record{Key: key, Progress: core.ProgressPending, Data: json.RawMessage(`{"step":5}`)}
	job.Journal = j
	_, err := NewRuntime(Options{}).Resume(context.Background(), job, 1, yes)
	if err == nil || errors.Is(err, errNotHeld) {
		t.Errorf("err = %v", err)
	}
}

// TestAHeldStepIsLeftToWhoTookItUp: the turn that asked may be taken up again
// after a crash, while the confirmed step is already on its way.
func TestAHeldStepIsLeftToWhoTookItUp(t *testing.T) {
	for n, progress := range map[uint16]core.Progress{
		1: core.ProgressPending, 2: core.ProgressStarted, 3: core.ProgressTaken, 4: core.ProgressStarted,
	} {
		var w world
		r := NewRuntime(Options{})
		_, job := held(t, &w, r)
		j := job.Journal.(*journal)
		want := maps.Clone(j.disk)
		for k, rec := range j.disk {
			if k.Step == 1 && n != 4 || k.Step == 2 && n > 2 { // of the last one only the step that depends on it
				rec.Progress = progress
				j.disk[k], want[k] = rec, rec
			}
		}
		job.Plan.Steps = []core.Step{step("transfer", `{"n":5}`), step("receipt", `{}`), step("web_search", `{}`)}
		same2(t, string(progress), told(run(t, r, job)), []string{"1 transfer pending", "2 receipt pending", "3 web_search done"})
		same2(t, "calls", w.did(), nil)
		for step := range uint16(2) {
			key := core.Key{Turn: job.Turn, Round: 1, Step: step + 1}
			if rec, _ := j.Find(key); rec.Progress != want[key].Progress || string(rec.Data) != string(want[key].Data) {
				t.Errorf("%s %s became %s %s", want[key].Progress, want[key].Data, rec.Progress, rec.Data)
			}
		}
	}
}

// TestOnlyOnePersonMayConfirm: the one person who asked, and admins; nobody is nobody.
func TestOnlyOnePersonMayConfirm(t *testing.T) {
	anonymous := Requester{Path: here, Authors: []core.Author{{}}}
	for _, tc := range []struct {
		asked Requester
		by    core.Author
		may   bool
	}{
		{by(core.RankMember), core.Author{ID: "1"}, true},
		{by(core.RankMember), core.Author{ID: "2"}, false},
		{by(core.RankMember), core.Author{ID: "2", Rank: core.RankModerator}, false},
		{by(core.RankMember), core.Author{ID: "2", Rank: core.RankAdmin}, true},
		{by(core.RankMember, core.RankMember), core.Author{ID: "1"}, false},
		{by(), core.Author{}, false},
		{anonymous, core.Author{}, false},
		{anonymous, core.Author{ID: "1"}, false},
	} {
		if got := (&Held{Who: tc.asked}).MayDecide(tc.by); got != tc.may {
			t.Errorf("%+v may confirm what %+v asked for: %v", tc.by, tc.asked.Authors, got)
		}
	}
}

// TestResumeGoesOnWithTheRound: what was done in the round counts for a step that is
// confirmed later, and what follows from it gets a place of its own.
func TestResumeGoesOnWithTheRound(t *testing.T) {
	var w world
	s := w.catalogue(t, w.act("fails", func(a *core.Action) {
		a.Confirm = true
		a.Do = func(context.Context, core.Call) (core.Result, error) {
			return core.Result{}, core.Errorf(core.Broken, "no luck")
		}
	}))
	when := func(field, value string) core.Condition {
		return core.Condition{Field: field, Operator: "eq", Value: json.RawMessage(value)}
	}
	sorry := step("message_telegram", `{"text":"sorry","interface_path":"telegram/-100/7"}`)
	j := newJournal()
	job := j.job(s, by(0),
		step("fails", `{}`, func(s *core.Step) {
			s.Fallback, s.Priority = &sorry, 1
			s.Conditions = []core.Condition{when("results.web_search.n", "1"), when("context.topic", `"tea"`)}
		}),
		step("web_search", `{}`), step("transfer", `{}`))
	job.Plan.Context.Topic = "tea"
	same2(t, "asked", told(run(t, NewRuntime(Options{}), job)), []string{"2 web_search done", "3 transfer pending", "1 fails pending"})
	for step, topic := range map[uint16]string{1: "tea", 3: ""} { // who asks for no conditions needs no context
		record, _ := j.Find(core.Key{Turn: job.Turn, Round: 1, Step: step})
		if h, err := ReadHeld(record); err != nil || h.Context.Topic != topic {
			t.Errorf("step %d is held with %+v, %v", step, h, err)
		}
	}
	job.Plan = core.Plan{}
	done, err := NewRuntime(Options{}).Resume(t.Context(), job, 1, yes)
	if err != nil {
		t.Fatal(err)
	}
	same2(t, "confirmed", told(done), []string{"1 fails failed: no luck", "4 message_telegram done for 1"})
	same2(t, "calls", w.did(), []string{"web_search{}", "telegram/-100/7: sorry"})
}

// TestResumeCannotBeWritten: what cannot be taken up on disk is not done.
func TestResumeCannotBeWritten(t *testing.T) {
	var w world
	r := NewRuntime(Options{})
	_, job := held(t, &w, r)
	job.Journal.(*journal).fail = core.ErrUnwritten
	if done, err := r.Resume(t.Context(), job, 1, yes); !errors.Is(err, core.ErrUnwritten) {
		t.Errorf("%q, %v", told(done), err)
	}
	same2(t, "calls", w.did(), nil)
}

// TestResumeOfALongRound: the last step of the longest round waits like any other.
func TestResumeOfALongRound(t *testing.T) {
	var w world
	s := w.catalogue(t, w.act("receipt", func(a *core.Action) { a.DependsOn = []string{"transfer"} }))
	plan := append([]core.Step{step("transfer", `{}`)}, slices.Repeat([]core.Step{step("dice", `{}`)}, maxNumber-2)...)
	job := newJournal().job(s, by(0), append(plan, step("receipt", `{}`))...)
	run(t, NewRuntime(Options{}), job)
	done, err := NewRuntime(Options{}).Resume(t.Context(), job, 1, yes)
	if err != nil {
		t.Fatal(err)
	}
	same2(t, "done", told(done), []string{"1 transfer done", "200 receipt done"})
}

// TestResumeAfterAReload: an action that is gone is skipped, and what a former action
// asked for that is gone may be anybody's wish.
func TestResumeAfterAReload(t *testing.T) {
	var w world
	s := w.catalogue(t, w.act("erase", func(a *core.Action) { a.Effects, a.DependsOn = core.EffectChanges, []string{"transfer"} }))
	j := newJournal()
	job := j.job(s, by(0))
	hold := func(n uint16, h Held) {
		h.Who, h.Asked, h.Expires = by(0), noon, time.Now().Add(time.Hour)
		h.Action = h.Step.Type
		key := core.Key{Turn: job.Turn, Round: 1, Step: n}
		j.Later(core.Record{Key: key, Progress: core.ProgressPending, Data: core.JSON(h)})
	}
	hold(1, Held{Step: step("transfer", `{}`)})
	hold(2, Held{Step: step("erase", `{}`), On: 1, Way: []string{"gone"}})
	hold(3, Held{Step: step("gone", `{}`)})
	for n, want := range map[uint16][]string{1: {"1 transfer done", "2 erase pending"}, 3: {"3 gone skipped: gone is no longer available"}} {
		done, err := NewRuntime(Options{}).Resume(t.Context(), job, n, yes)
		if err != nil {
			t.Fatal(err)
		}
		same2(t, "done", told(done), want)
	}
}

// TestCancelledAfterACrash: a step that was taken up and not begun is let go.
func TestCancelledAfterACrash(t *testing.T) {
	var w world
	r := NewRuntime(Options{})
	_, job := held(t, &w, r)
	j := &cutJournal{journal: job.Journal.(*journal), left: 1} // Taken; then the end
	job.Journal = j
	if _, err := r.Resume(t.Context(), job, 1, yes); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	job.Journal = j.crash()
	done, err := r.Resume(t.Context(), job, 1, Answer{})
	if err != nil {
		t.Fatal(err)
	}
	same2(t, "done", told(done), []string{"1 transfer skipped: it was cancelled", "2 receipt skipped: it was cancelled"})
	same2(t, "calls", w.did(), nil)
}

// TestResumeKnowsWhatFailed: what waits for two steps does not run if one of them failed,
// and what waits for a step that waits is taken up with it.
func TestResumeKnowsWhatFailed(t *testing.T) {
	var w world
	on := func(names ...string) func(*core.Action) { return func(a *core.Action) { a.DependsOn = names } }
	s := w.catalogue(t, w.failing("fails"), w.act("both", on("transfer", "fails")), w.act("receipt", on("transfer")), w.act("thanks", on("receipt")))
	job := newJournal().job(s, by(0), step("transfer", `{}`), step("fails", `{}`), step("both", `{}`), step("receipt", `{}`), step("thanks", `{}`))
	same2(t, "asked", told(run(t, NewRuntime(Options{}), job)),
		[]string{"1 transfer pending", "2 fails failed: no luck", "3 both pending", "4 receipt pending", "5 thanks pending"})
	done, err := NewRuntime(Options{}).Resume(t.Context(), job, 1, yes)
	if err != nil {
		t.Fatal(err)
	}
	same2(t, "confirmed", told(done), []string{"1 transfer done", "3 both skipped: both needs fails to succeed first", "4 receipt done", "5 thanks done"})
}
