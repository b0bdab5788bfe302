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

// held runs a plan with a step that needs a confirmation and one that depends on it.
func held(t *testing.T, w *world, r *Runtime) (*Snapshot, Job) {
	t.Helper()
	s := w.catalogue(t, w.act("receipt", func(a *core.Action) { a.DependsOn = []string{"transfer"} }))
	j := newJournal()
	job := j.job(s, by(core.RankMember), step("transfer", `{"n":5}`), step("receipt", `{}`), step("web_search", `{}`))
	done := run(t, r, job)
	wantLines(t, "held", describe(done), []string{"1 transfer pending", "2 receipt pending", "3 web_search done"})
	if done[0].Held == nil || done[0].Held.Question != "Do transfer\nn: 5" || done[1].Held.On != 1 {
		t.Fatalf("held: %+v, %+v", done[0].Held, done[1].Held)
	}
	if rec := j.disk[done[0].Key]; rec.Progress != core.ProgressPending {
		t.Fatalf("the record says %q, want %q", rec.Progress, core.ProgressPending)
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
		wantLines(t, test.name, describe(done), test.done)
		wantLines(t, test.name+" calls", w.did(), test.calls)
		for _, agreed := range []bool{true, false} { // pressed again
			done, err = r.Resume(t.Context(), job, 1, Answer{Agreed: agreed})
			if err != nil {
				t.Fatal(err)
			}
			wantLines(t, test.name+" again", describe(done), test.done)
		}
		wantLines(t, test.name+" twice, calls", w.did(), nil)
	}
}

// TestConfirmationChecksPermissionAgain: a confirmed step needs the permission that applies at the
// confirmation.
func TestConfirmationChecksPermissionAgain(t *testing.T) {
	var w world
	r := NewRuntime(Options{})
	s, job := held(t, &w, r)
	job.Snapshot = s.With(Policy{Rules: []Rule{{Actions: []string{"transfer"}, Permission: core.PermissionAdmins}}})
	done, err := r.Resume(t.Context(), job, 1, yes)
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, "done", describe(done), []string{"1 transfer skipped: transfer is not open to the user who asked for it", "2 receipt skipped: receipt needs transfer to succeed first"})
}

func TestConfirmationAfterACrash(t *testing.T) {
	var w world
	r := NewRuntime(Options{})
	_, job := held(t, &w, r)
	j := &cutJournal{journal: job.Journal.(*journal), left: 2} // dies after the records taken and started
	job.Journal = j
	if _, err := r.Resume(t.Context(), job, 1, yes); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	wantLines(t, "calls", w.did(), []string{`transfer{"n":5}`})
	job.Journal = j.crash()
	done, err := r.Resume(t.Context(), job, 1, yes)
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, "done", describe(done), []string{
		"1 transfer unknown: it is not known whether this was done: the bot was stopped in the middle", "2 receipt skipped: receipt needs transfer to succeed first",
	})
	wantLines(t, "calls after the restart", w.did(), nil)
}

// TestModelAsksForConfirmation: a plan may ask for a confirmation of any step, if the turn has one
// user.
func TestModelAsksForConfirmation(t *testing.T) {
	var w world
	s := w.catalogue(t)
	j := newJournal()
	job := j.job(s, by(core.RankMember), step("web_search", `{}`, func(s *core.Step) { s.Confirm = true }))
	wantLines(t, "one person", describe(run(t, NewRuntime(Options{}), job)), []string{"1 web_search pending"})
	if len(j.disk) != 1 {
		t.Error("the question was not journalled before it was asked")
	}
	job = newJournal().job(s, by(core.RankBot), step("web_search", `{}`, func(s *core.Step) { s.Confirm = true }))
	wantLines(t, "the bot", describe(run(t, NewRuntime(Options{}), job)), []string{"1 web_search skipped: web_search must be confirmed, and no single person asked for it"})
}

func TestHeldExpires(t *testing.T) {
	h := Held{Who: by(core.RankMember), Expires: noon}
	if h.Expired(noon.Add(-1)) || !h.Expired(noon) || (&Held{On: 1}).Expired(noon) {
		t.Error("a question must expire at its time, and a dependent step never")
	}
}

func TestResumeOfNothing(t *testing.T) {
	var w world
	s := w.catalogue(t)
	job := newJournal().job(s, by(core.RankMember), step("web_search", `{}`))
	if _, err := NewRuntime(Options{}).Resume(t.Context(), job, 1, yes); !errors.Is(err, errNotHeld) {
		t.Errorf("unexpected error %v", err)
	}
	run(t, NewRuntime(Options{}), job)
	if _, err := NewRuntime(Options{}).Resume(t.Context(), job, 1, yes); !errors.Is(err, errNotHeld) {
		t.Errorf("unexpected error %v", err)
	}
	j := newJournal()
	key := core.Key{Turn: job.Turn, Round: 1, Step: 1}
	j.disk[key] = core.Record{Key: key, Progress: core.ProgressPending, Data: json.RawMessage(`{"step":5}`)}
	job.Journal = j
	_, err := NewRuntime(Options{}).Resume(context.Background(), job, 1, yes)
	if err == nil || errors.Is(err, errNotHeld) {
		t.Errorf("unexpected error %v", err)
	}
}

// TestExecuteLeavesHeldSteps: a turn that is retried after a crash does not touch a held step,
// which may already have been confirmed.
func TestExecuteLeavesHeldSteps(t *testing.T) {
	for n, progress := range map[uint16]core.Progress{
		1: core.ProgressPending, 2: core.ProgressStarted, 3: core.ProgressTaken, 4: core.ProgressStarted,
	} {
		var w world
		r := NewRuntime(Options{})
		_, job := held(t, &w, r)
		j := job.Journal.(*journal)
		want := maps.Clone(j.disk)
		for k, rec := range j.disk {
			if k.Step == 1 && n != 4 || k.Step == 2 && n > 2 { // in case 4 only the dependent step
				rec.Progress = progress
				j.disk[k], want[k] = rec, rec
			}
		}
		job.Plan.Steps = []core.Step{step("transfer", `{"n":5}`), step("receipt", `{}`), step("web_search", `{}`)}
		wantLines(t, string(progress), describe(run(t, r, job)), []string{"1 transfer pending", "2 receipt pending", "3 web_search done"})
		wantLines(t, "calls", w.did(), nil)
		for step := range uint16(2) {
			key := core.Key{Turn: job.Turn, Round: 1, Step: step + 1}
			if rec, _ := j.Find(key); rec.Progress != want[key].Progress || string(rec.Data) != string(want[key].Data) {
				t.Errorf("record %s %s became %s %s", want[key].Progress, want[key].Data, rec.Progress, rec.Data)
			}
		}
	}
}

// TestWhoMayConfirm: only the one user who asked, and admins, may confirm. Users without an id may
// not. Moderators may confirm what was asked in the name of their place.
func TestWhoMayConfirm(t *testing.T) {
	anonymous := Requester{Path: here, Authors: []core.Author{{}}}
	place := func(channel core.Channel, rank core.Rank) Requester {
		return Requester{Path: here, Authors: []core.Author{{ID: "-100", Rank: rank, Channel: channel}}}
	}
	for _, tc := range []struct {
		asked Requester
		by    core.Author
		may   bool
	}{
		{place(core.ChannelLinked, core.RankModerator), core.Author{ID: "1", Rank: core.RankModerator}, true},
		{place(core.ChannelLinked, core.RankModerator), core.Author{ID: "1"}, false},
		{place(core.ChannelLinked, core.RankModerator), core.Author{ID: "-100"}, true},
		{place(core.ChannelLinked, core.RankAdmin), core.Author{ID: "1", Rank: core.RankModerator}, false},
		{place(core.ChannelLinked, core.RankMember), core.Author{ID: "1", Rank: core.RankModerator}, false},
		{place(core.ChannelOther, core.RankModerator), core.Author{ID: "1", Rank: core.RankModerator}, false},
		{place("", core.RankModerator), core.Author{ID: "1", Rank: core.RankModerator}, false},
		{by(core.RankMember), core.Author{ID: "1"}, true},
		{by(core.RankMember), core.Author{ID: "2"}, false},
		{by(core.RankMember), core.Author{ID: "2", Rank: core.RankModerator}, false},
		{by(core.RankMember), core.Author{ID: "2", Rank: core.RankAdmin}, true},
		{by(core.RankMember), core.Author{}, false},
		{by(core.RankMember, core.RankMember), core.Author{ID: "1"}, false},
		{by(), core.Author{}, false},
		{anonymous, core.Author{}, false},
		{anonymous, core.Author{ID: "1"}, false},
	} {
		if got := (&Held{Who: tc.asked}).MayDecide(tc.by); got != tc.may {
			t.Errorf("%+v may confirm for %+v: got %v, want %v", tc.by, tc.asked.Authors, got, tc.may)
		}
	}
}

// TestResumeGoesOnWithTheRound: a step that is confirmed later sees the results of its round, and
// its follow-up steps get new numbers.
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
	wantLines(t, "asked", describe(run(t, NewRuntime(Options{}), job)), []string{"2 web_search done", "3 transfer pending", "1 fails pending"})
	for step, topic := range map[uint16]string{1: "tea", 3: ""} { // only steps with conditions keep the context
		record, _ := j.Find(core.Key{Turn: job.Turn, Round: 1, Step: step})
		if h, err := ReadHeld(record); err != nil || h.Context.Topic != topic {
			t.Errorf("step %d is held with %+v (%v), want the topic %q", step, h, err, topic)
		}
	}
	job.Plan = core.Plan{}
	done, err := NewRuntime(Options{}).Resume(t.Context(), job, 1, yes)
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, "confirmed", describe(done), []string{"1 fails failed: no luck", "4 message_telegram done for 1"})
	wantLines(t, "calls", w.did(), []string{"web_search{}", "telegram/-100/7: sorry"})
}

// TestResumeCannotBeWritten: a confirmed step does not run if the confirmation cannot be
// journalled.
func TestResumeCannotBeWritten(t *testing.T) {
	var w world
	r := NewRuntime(Options{})
	_, job := held(t, &w, r)
	job.Journal.(*journal).fail = core.ErrUnwritten
	if done, err := r.Resume(t.Context(), job, 1, yes); !errors.Is(err, core.ErrUnwritten) {
		t.Errorf("got %q and error %v, want %v", describe(done), err, core.ErrUnwritten)
	}
	wantLines(t, "calls", w.did(), nil)
}

// TestResumeOfALongRound: the last step of the longest round can depend on a held step.
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
	wantLines(t, "done", describe(done), []string{"1 transfer done", "200 receipt done"})
}

// TestResumeAfterAReload: a held step whose action is gone is skipped. A step that a removed action
// asked for needs a confirmation of its own.
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
		wantLines(t, "done", describe(done), want)
	}
}

// TestCancelledAfterACrash: a confirmed step that had not started before a crash can be cancelled.
func TestCancelledAfterACrash(t *testing.T) {
	var w world
	r := NewRuntime(Options{})
	_, job := held(t, &w, r)
	j := &cutJournal{journal: job.Journal.(*journal), left: 1} // dies after the record taken
	job.Journal = j
	if _, err := r.Resume(t.Context(), job, 1, yes); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	job.Journal = j.crash()
	done, err := r.Resume(t.Context(), job, 1, Answer{})
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, "done", describe(done), []string{"1 transfer skipped: it was cancelled", "2 receipt skipped: it was cancelled"})
	wantLines(t, "calls", w.did(), nil)
}

// TestResumeKnowsWhatFailed: a step that also depends on a failed step is skipped. Steps that
// depend on a held step resume with it.
func TestResumeKnowsWhatFailed(t *testing.T) {
	var w world
	on := func(names ...string) func(*core.Action) { return func(a *core.Action) { a.DependsOn = names } }
	s := w.catalogue(t, w.failing("fails"), w.act("both", on("transfer", "fails")), w.act("receipt", on("transfer")), w.act("thanks", on("receipt")))
	job := newJournal().job(s, by(0), step("transfer", `{}`), step("fails", `{}`), step("both", `{}`), step("receipt", `{}`), step("thanks", `{}`))
	wantLines(t, "asked", describe(run(t, NewRuntime(Options{}), job)),
		[]string{"1 transfer pending", "2 fails failed: no luck", "3 both pending", "4 receipt pending", "5 thanks pending"})
	done, err := NewRuntime(Options{}).Resume(t.Context(), job, 1, yes)
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, "confirmed", describe(done), []string{"1 transfer done", "3 both skipped: both needs fails to succeed first", "4 receipt done", "5 thanks done"})
}
