package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"synthbot/core"
)

// ending is what became of a task.
type ending struct {
	progress core.Progress
	outcome  core.Outcome
	held     *Held // with Pending
	undone   bool  // it was done, and taken back
}

// perform does one step: what its journal says, or else the step itself; then
// what follows from its result, or its fallback.
func (e *execution) perform(ctx context.Context, t task) (settled, error) {
	end, known := e.former(t)
	if !known {
		var err error
		if end, err = e.attempt(ctx, t); err != nil {
			return settled{}, err
		}
	}
	at := e.report(t, end)
	switch {
	case end.progress == core.ProgressDone, end.undone:
		return e.follow(ctx, t, end, at)
	case end.progress == core.ProgressFailed, end.progress == core.ProgressSkipped:
		return e.fallback(ctx, t)
	}
	return settled{}, nil
}

// former returns what a former attempt made of the step, where that is final.
func (e *execution) former(t task) (ending, bool) {
	r, ok := e.Journal.Find(e.key(t.number))
	if !ok {
		return ending{}, false
	}
	var h Held
	if json.Unmarshal(r.Data, &h) != nil {
		h.Outcome = core.Outcome{Action: t.step.Type, Kind: core.Broken, Text: "its record cannot be read"}
	}
	end := ending{progress: r.Progress, outcome: h.Outcome, undone: h.Undone}
	switch r.Progress {
	case core.ProgressPending, core.ProgressTaken, core.ProgressStarted:
		if t.held == nil && h.waited() { // whoever took it up goes on with it
			return ending{progress: core.ProgressPending, outcome: h.Outcome, held: &h}, true
		}
	}
	switch r.Progress {
	case core.ProgressPending, core.ProgressTaken:
		return end, false
	case core.ProgressStarted:
		if d, ok := e.Snapshot.Resolve(t.step.Type); ok && repeatable(d) {
			return end, false
		}
		end = e.unknown(t, "it is not known whether this was done: the bot was stopped in the middle")
		e.Journal.Later(e.record(e.key(t.number), end.progress, t.data(end.outcome)))
	}
	return end, true
}

// repeatable reports whether the action may run again when it is not known
// whether it ran. What a message action sends, its parts guard.
func repeatable(d *Definition) bool { return d.Idempotent || d.IsMessage() }

func (e *execution) unknown(t task, text string) ending {
	return ending{progress: core.ProgressUnknown, outcome: core.Outcome{Action: t.step.Type, Kind: core.Broken, Text: text}}
}

// report notes the ending for the caller, and for the steps that come later.
func (e *execution) report(t task, end ending) int {
	d := StepResult{
		Step: int(t.number), Key: e.key(t.number), Action: end.outcome.Action, Call: t.step, Progress: end.progress,
		Outcome: end.outcome, For: int(t.cause), Held: end.held,
	}
	switch end.progress {
	case core.ProgressDone:
		d.Output = end.outcome.Result.Output
		e.succeeded(end.outcome)
	case core.ProgressPending:
		e.waits[t.step.Type] = t.number
		if end.held.On != 0 {
			e.waits[t.step.Type] = end.held.On
		}
	}
	e.done = append(e.done, d)
	return len(e.done) - 1
}

// attempt does a step that is not done yet, and journals what became of it.
func (e *execution) attempt(ctx context.Context, t task) (ending, error) {
	if _, ok := Control(t.step.Type); ok {
		return e.settle(t, e.control(t)), nil
	}
	d, ok := e.Snapshot.Resolve(t.step.Type)
	if !ok {
		return e.settle(t, e.skip(t, core.Errorf(core.Broken, "%s is not to be had any more", t.step.Type))), nil
	}
	c := e.call(t)
	switch end, stop, err := e.before(ctx, t, d, c); {
	case err != nil:
		return ending{}, err
	case !stop:
		return e.run(ctx, t, d, c)
	case end.progress == core.ProgressPending: // on disk before anybody is asked
		return end, e.Journal.Write(ctx, e.record(e.key(t.number), core.ProgressPending, end.held))
	default:
		return e.settle(t, end), nil
	}
}

// settle journals an ending that nothing was done for.
func (e *execution) settle(t task, end ending) ending {
	e.Journal.Later(e.record(e.key(t.number), end.progress, t.data(end.outcome)))
	if end.progress == core.ProgressSkipped {
		e.log.Info("step skipped", "action", t.step.Type, "reason", end.outcome.Text)
	}
	return end
}

// control passes a built-in on.
func (e *execution) control(t task) ending {
	if t.step.Type == Continue && e.Who.Continued >= MaxContinue {
		return e.skip(t, core.Errorf(core.Forbidden, "%d times in a row are enough", MaxContinue))
	}
	if err := e.unmet(t); err != nil {
		return e.skip(t, err)
	}
	return ending{progress: core.ProgressDone, outcome: core.Outcome{Action: t.step.Type}}
}

func (e *execution) call(t task) core.Call {
	c := core.Call{
		Key: e.key(t.number), Path: e.Who.Path, Private: e.Who.Private, Authors: slices.Clone(e.Who.Authors),
		Payload: slices.Clone(t.step.Payload), Deliveries: e.Journal.Parts(e.key(t.number)),
		Sees: e.Who.Sees, Answers: e.Answers,
	}
	if r, ok := e.Journal.Find(core.Key{Turn: e.Turn, Round: e.Round}); ok {
		c.Planned = r.Time
	}
	if len(c.Sees) == 0 {
		c.Sees = []core.Path{e.Who.Path}
	}
	if who, ok := e.Who.person(); ok {
		c.Author = who
	} else {
		c.Author.Rank = e.Who.rank()
	}
	return c
}

// skip is the ending of a step that was not begun.
func (e *execution) skip(t task, err error) ending {
	kind, text := worded(err)
	return ending{progress: core.ProgressSkipped, outcome: core.Outcome{Action: t.step.Type, Kind: kind, Text: text}}
}

// before goes through everything that must hold before a step may begin, in
// order; stop tells that it may not. An error breaks the turn off.
func (e *execution) before(ctx context.Context, t task, d *Definition, c core.Call) (end ending, stop bool, err error) {
	var payload map[string]any
	if v, err := decode(t.step.Payload); err == nil {
		payload, _ = v.(map[string]any)
	}
	if why := e.Snapshot.refuse(d, e.Who, payload); why != "" {
		return e.skip(t, core.Errorf(core.Forbidden, "%s %s", d.Name, why)), true, nil
	}
	if err := e.unmet(t); err != nil {
		return e.skip(t, err), true, nil
	}
	if end, stop := e.depends(t, d); stop {
		return end, true, nil
	}
	if e.Guard != nil {
		if err := e.Guard(ctx, d, c); err != nil {
			return e.skip(t, err), true, nil
		}
	}
	if err := e.sensible(ctx, d, c); err != nil {
		if e.later(d, err) {
			return ending{}, true, fmt.Errorf("%s: %w", d.Name, err)
		}
		e.log.Info("action refused", "action", d.Name, "err", err)
		return e.skip(t, err), true, nil
	}
	if out, ok := e.cached(ctx, d, c); ok {
		return ending{progress: core.ProgressDone, outcome: core.Outcome{Action: d.Name, Result: core.Result{Output: out}}}, true, nil
	}
	if t.agreed {
		return ending{}, false, nil
	}
	if wait, ok := e.allowance(t, d); !ok {
		return e.skip(t, &core.Error{Kind: core.Occupied, Text: fmt.Sprintf("%s was used too often; try again in %s", d.Name, span(wait)), After: wait}), true, nil
	}
	why := e.objection(t, d, payload)
	if d.Confirm || t.step.Confirm || why != "" {
		return e.hold(t, d, why), true, nil
	}
	return ending{}, false, nil
}

// allowance takes one call off what the person may use of the action. A step that is
// taken up again took it before.
func (e *execution) allowance(t task, d *Definition) (wait time.Duration, ok bool) {
	if r, _ := e.Journal.Find(e.key(t.number)); r.Progress == core.ProgressStarted {
		return 0, true
	}
	return e.rates.take(d, e.persons(), e.Clock())
}

// depends sees to it that what the action needs has succeeded in this turn.
func (e *execution) depends(t task, d *Definition) (ending, bool) {
	for _, name := range d.DependsOn {
		if _, ok := e.results[name]; ok {
			continue
		}
		if on, ok := e.waits[name]; ok && !t.unit {
			return e.holdFor(t, d, on), true
		}
		return e.skip(t, core.Errorf(core.Invalid, "%s needs %s to succeed first", d.Name, name)), true
	}
	return ending{}, false
}

// sensible asks the action itself.
func (e *execution) sensible(ctx context.Context, d *Definition, c core.Call) (err error) {
	if d.Check == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.timeout(d))
	defer cancel()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return d.Check(ctx, c)
}

// run does the step. That it is started is on disk before.
func (e *execution) run(ctx context.Context, t task, d *Definition, c core.Call) (ending, error) {
	release, err := e.enter(ctx, d)
	if err != nil {
		if ctx.Err() != nil {
			return ending{}, ctx.Err()
		}
		return e.settle(t, e.skip(t, err)), nil
	}
	if err := e.Journal.Write(ctx, e.record(e.key(t.number), core.ProgressStarted, t.data(core.Outcome{Action: d.Name}))); err != nil {
		release()
		return ending{}, err
	}
	result, tries, err := e.try(ctx, d, c, release)
	if err != nil && ctx.Err() != nil {
		return ending{}, ctx.Err() // the journal says that it was started, and that is all we know
	}
	if e.later(d, err) {
		return ending{}, fmt.Errorf("%s: %w", d.Name, err) // likewise
	}
	end := e.judge(t, d, result, err)
	end.outcome.Tries = tries
	e.Journal.Later(e.record(e.key(t.number), end.progress, t.data(end.outcome)))
	if end.progress == core.ProgressDone {
		e.keep(ctx, d, c, end.outcome.Result)
	}
	return end, nil
}

// later reports whether a step that failed is to be taken up again: the journal could
// not be written, its interface cannot be reached, or a message may have been sent, and
// may be sent again.
func (e *execution) later(d *Definition, err error) bool {
	_, driver := e.Snapshot.Message(d.Owner)
	switch {
	case errors.Is(err, core.ErrUnwritten):
		return true
	case !driver || !repeatable(d):
		return false
	case errors.Is(err, core.ErrUnknownOutcome):
		return true
	}
	return errors.Is(err, core.ErrAway) && d.Owner == e.Who.Path.Interface()
}

// judge says what a try's result means.
func (e *execution) judge(t task, d *Definition, result core.Result, err error) ending {
	if err == nil {
		err = e.vet(d, &result)
	}
	switch {
	case err == nil:
		return ending{progress: core.ProgressDone, outcome: core.Outcome{Action: d.Name, Result: result}}
	case errors.Is(err, errTimeout) && !repeatable(d):
		e.log.Warn("action timed out", "action", d.Name)
		return e.unknown(t, "it took too long, and it is not known whether it was done")
	}
	e.log.Warn("action failed", "action", d.Name, "err", err)
	kind, text := worded(err)
	if kind == core.Unsure || errors.Is(err, core.ErrUnknownOutcome) {
		return ending{progress: core.ProgressUnknown, outcome: core.Outcome{Action: d.Name, Kind: core.Unsure, Text: text}}
	}
	return ending{progress: core.ProgressFailed, outcome: core.Outcome{Action: d.Name, Kind: kind, Text: text}}
}

// vet holds a result to what the action promised.
func (e *execution) vet(d *Definition, r *core.Result) error {
	if len(r.Output) == 0 {
		if d.output != nil {
			return errors.New("no output, though a schema promises one")
		}
		return nil
	}
	v, err := decode(r.Output)
	if err != nil {
		return fmt.Errorf("output: %w", err)
	}
	if d.output != nil {
		if violations := d.output.check(v); len(violations) > 0 {
			return fmt.Errorf("output%s: %s", dotted(violations[0].path), violations[0].text)
		}
	}
	if r.Output = encode(v); len(r.Output) > maxOutput {
		r.Output = encode(map[string]string{"cut": string(r.Output[:maxOutput/2]) + "…"})
	}
	return nil
}

// fallback does what was planned for the case that the step fails.
func (e *execution) fallback(ctx context.Context, t task) (settled, error) {
	if t.step.Fallback == nil {
		return settled{}, nil
	}
	n, ok := e.number()
	if !ok {
		return settled{}, nil
	}
	return e.perform(ctx, task{number: n, step: *t.step.Fallback, cause: t.number, way: t.way, unit: t.unit})
}
