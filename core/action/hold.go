package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"synthbot/core"
)

// Held is what the journal keeps of a step that waits, or waited, for a
// person's confirmation: everything that is needed to take it up again. Its
// JSON form reads as an Outcome too.
type Held struct {
	core.Outcome
	Step     core.Step  `json:"step,omitzero"`
	Who      Requester  `json:"who,omitzero"` // who asked for it, and where
	Context  core.State `json:"context,omitzero"`
	Read     Provenance `json:"read,omitzero"`
	Way      []string   `json:"way,omitempty"`
	Question string     `json:"question,omitempty"` // what the person is asked
	Asked    time.Time  `json:"asked,omitzero"`
	Expires  time.Time  `json:"expires,omitzero"`
	On       uint16     `json:"on,omitempty"`      // the step whose confirmation it waits for; 0: its own
	Unasked  string     `json:"unasked,omitempty"` // why the person could not be asked
	Undone   bool       `json:"undone,omitempty"`  // it was done, and taken back
}

// ReadHeld reads the data of a step's record.
func ReadHeld(r core.Record) (*Held, error) {
	var h Held
	if err := json.Unmarshal(r.Data, &h); err != nil {
		return nil, fmt.Errorf("held step of %s: %w", r.Key.Turn, err)
	}
	return &h, nil
}

// MayDecide reports whether a person may confirm or cancel the step: who asked for
// it, or an admin.
func (h *Held) MayDecide(a core.Author) bool {
	who, _ := h.Who.person()
	return a.Rank >= core.RankAdmin || a.ID != "" && a.ID == who.ID
}

// Expired reports whether it is too late to confirm the step.
func (h *Held) Expired(now time.Time) bool { return !h.Expires.IsZero() && !now.Before(h.Expires) }

// Refused notes that the question could not be asked, and why.
func (h *Held) Refused(err error) { _, h.Unasked = worded(err) }

// waited reports whether the step had, or has, to be confirmed.
func (h *Held) waited() bool { return !h.Asked.IsZero() || h.On != 0 }

// hold lets a step wait for its confirmation. why is the reason for it where the
// action and the plan do not ask for one.
func (e *execution) hold(t task, d *Definition, why string) ending {
	switch {
	case t.unit:
		return e.skip(t, core.Errorf(core.Forbidden, "%s must be confirmed, which is not possible inside of a unit", d.Name))
	case !e.Who.canConfirm():
		return e.skip(t, core.Errorf(core.Forbidden, "%s %s", d.Name, unconfirmable))
	}
	text, whole := question(d, &t.step, why)
	if !whole || len(text) > maxAttached || len(text) > MaxQuestion && !e.Attaches {
		return e.skip(t, core.Errorf(core.Forbidden, "%s must be confirmed, and cannot be shown whole", d.Name))
	}
	now := e.Clock()
	h := e.held(t, d)
	h.Question, h.Asked, h.Expires = text, now, now.Add(e.Expire)
	return ending{progress: core.ProgressPending, outcome: h.Outcome, held: h}
}

// holdFor lets a step wait for the confirmation of another one.
func (e *execution) holdFor(t task, d *Definition, on uint16) ending {
	h := e.held(t, d)
	h.On = on
	return ending{progress: core.ProgressPending, outcome: h.Outcome, held: h}
}

func (e *execution) held(t task, d *Definition) *Held {
	h := &Held{Outcome: core.Outcome{Action: d.Name}, Step: t.step, Who: e.Who, Read: e.Read, Way: t.way}
	if len(t.step.Conditions) > 0 {
		h.Context = e.Plan.Context
	}
	return h
}

// data is what a step's record holds: of one that had to be confirmed also what
// it needs to be taken up again.
func (t *task) data(o core.Outcome) any {
	if t.held == nil {
		return o
	}
	h := *t.held
	h.Outcome = o
	return h
}

var errNotHeld = errors.New("no step waits there")

// Resume takes up the step that waits under that number of the job's round, and
// what depends on it, after a person confirmed it (agreed) or did not.
// Permission, conditions and Check are asked anew, with the job's Who, or, where
// that names nobody, with who asked for it. The caller has made sure that the
// person May, and, where it matters that a press counts once, has changed the
// record from Pending to Taken in a transaction of its own. What comes back, and
// what happens after a crash, is as with Execute.
func (r *Runtime) Resume(ctx context.Context, j Job, step uint16, agreed bool) ([]StepResult, error) {
	record, ok := j.Journal.Find(core.Key{Turn: j.Turn, Round: j.Round, Step: step})
	if !ok {
		return nil, fmt.Errorf("%s: %w", j.Turn, errNotHeld)
	}
	h, err := ReadHeld(record)
	if err != nil {
		return nil, err
	}
	if h.Step.Type == "" {
		return nil, fmt.Errorf("%s: %w", j.Turn, errNotHeld)
	}
	if len(j.Who.Authors) == 0 {
		j.Who = h.Who
	}
	j.Plan.Context, j.Read = h.Context, h.Read
	e := r.begin(j, 0)
	waiting := e.catchUp(step)
	if record.Progress == core.ProgressPending {
		agreed = agreed && !h.Expired(r.Clock())
	}
	t := task{number: step, step: h.Step, way: h.Way, agreed: true, held: h}
	switch {
	case !agreed && (record.Progress == core.ProgressPending || record.Progress == core.ProgressTaken):
		return e.abandon(t, waiting), nil
	case record.Progress == core.ProgressPending:
		if err := j.Journal.Write(ctx, e.record(record.Key, core.ProgressTaken, h)); err != nil {
			return nil, err
		}
	}
	return e.goOn(ctx, t, waiting)
}

// goOn performs the confirmed step, then what waited for it.
func (e *execution) goOn(ctx context.Context, t task, waiting []task) ([]StepResult, error) {
	for _, next := range append([]task{t}, waiting...) {
		if _, err := e.perform(ctx, next); err != nil {
			return e.done, err
		}
	}
	return e.done, nil
}

// abandon skips a step that was not confirmed, and what waited for it.
func (e *execution) abandon(t task, waiting []task) []StepResult {
	why := core.Errorf(core.Forbidden, "it was cancelled")
	switch {
	case t.held.Unasked != "":
		why = core.Errorf(core.Forbidden, "the question whether to do it could not be asked: %s", t.held.Unasked)
	case t.held.Expired(e.Clock()):
		why = core.Errorf(core.Forbidden, "nobody confirmed it in time")
	}
	for _, next := range append([]task{t}, waiting...) {
		e.report(next, e.settle(next, e.skip(next, why)))
	}
	return e.done
}

// catchUp takes up what the round has done so far, and returns what waits for
// the step.
func (e *execution) catchUp(step uint16) []task {
	var waiting []task
	for n := uint16(1); n <= maxNumber; n++ {
		r, ok := e.Journal.Find(e.key(n))
		if !ok {
			continue
		}
		e.last = n
		h, err := ReadHeld(r)
		switch {
		case err != nil:
		case h.On == step:
			waiting = append(waiting, task{number: n, step: h.Step, way: h.Way, held: h})
		case r.Progress == core.ProgressDone:
			e.succeeded(h.Outcome)
		}
	}
	return waiting
}
