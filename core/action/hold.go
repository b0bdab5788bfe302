package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"synthbot/core"
)

// Held is what the journal keeps of a step that waits, or waited, for a user: for a confirmation,
// or for a value that its payload needs. It is all that is needed to do the step later. Its JSON
// form reads as an Outcome, too.
type Held struct {
	core.Outcome
	Step     core.Step  `json:"step,omitzero"`
	Who      Requester  `json:"who,omitzero"` // who asked for it, and where
	Context  core.State `json:"context,omitzero"`
	Read     Provenance `json:"read,omitzero"`
	Way      []string   `json:"way,omitempty"`
	Question string     `json:"question,omitempty"` // what the user is asked
	Asked    time.Time  `json:"asked,omitzero"`
	Expires  time.Time  `json:"expires,omitzero"`
	Asks     int        `json:"asks,omitempty"`    // how many questions the step had before this one
	Form     *Form      `json:"form,omitempty"`    // where the question is for a value, not for a confirmation
	On       uint16     `json:"on,omitempty"`      // the step whose question it waits for; 0: its own
	Unasked  string     `json:"unasked,omitempty"` // why the user could not be asked
	Undone   bool       `json:"undone,omitempty"`  // it was done and then undone
}

// ReadHeld reads the data of a step's record.
func ReadHeld(r core.Record) (*Held, error) {
	var h Held
	if err := json.Unmarshal(r.Data, &h); err != nil {
		return nil, fmt.Errorf("held step of %s: %w", r.Key.Turn, err)
	}
	return &h, nil
}

// MayDecide reports whether a user may confirm or cancel the step: those who asked for it,
// and admins.
func (h *Held) MayDecide(a core.Author) bool {
	who, _ := h.Who.person()
	return a.Rank >= core.RankAdmin || a.ID != "" && a.ID == who.ID
}

// Expired reports whether it is too late to confirm the step.
func (h *Held) Expired(now time.Time) bool { return !h.Expires.IsZero() && !now.Before(h.Expires) }

// Refused notes why the question could not be asked.
func (h *Held) Refused(err error) { _, h.Unasked = userText(err) }

// hold makes a step wait for its confirmation. why is the reason if neither the action nor
// the plan asks for one.
func (e *execution) hold(t task, d *Definition, why string) *StepResult {
	text, whole := e.Snapshot.question(d, &t.step, why)
	refused := ""
	switch {
	case t.unit:
		refused = "must be confirmed, which is not possible inside of a unit"
	case !e.Who.canConfirm():
		refused = unconfirmable
	case !whole || len(text) > maxAttached || len(text) > MaxQuestion && !e.Attaches:
		refused = "must be confirmed, and cannot be shown whole"
	}
	if refused != "" {
		return skipped(t, core.Errorf(core.Forbidden, "%s %s", d.Name, refused))
	}
	r := e.holdFor(t, d, 0)
	e.pose(r.Held, t.held, text)
	return r
}

// pose notes the question that a step waits for. before is the step as it waited before, or nil.
func (r *Runtime) pose(h, before *Held, question string) {
	if before != nil {
		h.Asks = before.Asks + 1
	}
	now := r.Clock()
	h.Question, h.Asked, h.Expires = question, now, now.Add(r.Expire)
}

// holdFor makes a step wait for the question of another one; on is 0 for its own.
func (e *execution) holdFor(t task, d *Definition, on uint16) *StepResult {
	h := &Held{Outcome: core.Outcome{Action: d.Name}, Step: t.step, Who: e.Who, Read: e.Read, Way: t.way, On: on}
	if len(t.step.Conditions) > 0 {
		h.Context = e.Plan.Context
	}
	return pending(h)
}

// data is what a step's record holds: a Held if the step had to be confirmed.
func (t *task) data(o core.Outcome) any {
	if t.held == nil {
		return o
	}
	h := *t.held
	h.Outcome = o
	return h
}

var errNotHeld = errors.New("no step waits there")

// Resume continues the step that waits under that number of the job's round, and what
// depends on it, after a user answered its question. A form that is not complete goes on
// waiting, with its next question. Permission, conditions and Check are asked again, with the
// job's Who, or, if that names nobody, with who asked for the step. The caller has checked
// MayDecide. Results, errors and crashes are as with Execute.
func (r *Runtime) Resume(ctx context.Context, j Job, step uint16, a Answer) ([]StepResult, error) {
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
	isPending := record.Progress == core.ProgressPending
	agreed := a.Agreed && !(isPending && h.Expired(r.Clock()))
	waits := isPending && a.Ask != h.Asks // an earlier attempt took the answer
	if isPending && agreed && !waits && h.Form != nil {
		agreed, waits = e.fill(h, a.Text)
	}
	tasks := []task{{number: step, step: h.Step, way: h.Way, agreed: h.Form == nil, held: h}}
	tasks = append(tasks, e.catchUp(step)...)
	switch {
	case waits:
		e.report(tasks[0], *pending(h))
		return e.results, j.Journal.Write(ctx, e.record(step, core.ProgressPending, h))
	case !agreed && (isPending || record.Progress == core.ProgressTaken):
		why := h.cancelReason(r.Clock())
		for _, t := range tasks {
			e.report(t, e.settle(t, *skipped(t, why)))
		}
		return e.results, nil
	case isPending:
		if err := j.Journal.Write(ctx, e.record(step, core.ProgressTaken, h)); err != nil {
			return nil, err
		}
	}
	for _, t := range tasks {
		if _, err := e.perform(ctx, t); err != nil {
			return e.results, err
		}
	}
	return e.results, nil
}

// cancelReason is why a step that was not confirmed is skipped.
func (h *Held) cancelReason(now time.Time) error {
	switch {
	case h.Unasked != "":
		return core.Errorf(core.Forbidden, "the question could not be asked: %s", h.Unasked)
	case h.Form != nil && h.Form.Misfits >= maxMisfits:
		return core.Errorf(core.Invalid, "no answer to the question fitted")
	case h.Expired(now):
		return core.Errorf(core.Forbidden, "nobody answered in time")
	}
	return core.Errorf(core.Forbidden, "it was cancelled")
}

// catchUp remembers what the round has done so far, and returns what waits for the step.
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
