package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"synthbot/core"
	"synthbot/core/schema"
	"synthbot/core/txt"
)

// ending is what became of a task.
type ending struct {
	progress core.Progress
	outcome  core.Outcome
	held     *Held // with ProgressPending
	undone   bool  // it was done and then undone
}

// perform does one step: what its journal says, or else the step itself; then what follows
// from its result, or its fallback.
func (e *execution) perform(ctx context.Context, t task) (settled, error) {
	end, known := e.recorded(t)
	if !known {
		var err error
		end, err = e.attempt(ctx, t)
		if err != nil {
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

// recorded returns how the step ended according to the journal. known is false if the step
// is to be done.
func (e *execution) recorded(t task) (end ending, known bool) {
	r, ok := e.Journal.Find(e.key(t.number))
	if !ok {
		return ending{}, false
	}
	var h Held
	if json.Unmarshal(r.Data, &h) != nil {
		h.Outcome = core.Outcome{Action: t.step.Type, Kind: core.Broken, Text: "its record cannot be read"}
	}
	end = ending{progress: r.Progress, outcome: h.Outcome, undone: h.Undone}
	waits := t.held == nil && h.waited() // Resume continues it
	switch r.Progress {
	case core.ProgressPending, core.ProgressTaken:
		return ending{progress: core.ProgressPending, outcome: h.Outcome, held: &h}, waits
	case core.ProgressStarted:
		if waits {
			return ending{progress: core.ProgressPending, outcome: h.Outcome, held: &h}, true
		}
		if d, ok := e.Snapshot.Resolve(t.step.Type); ok && isRepeatable(d) {
			return end, false
		}
		end = unknown(t, "it is not known whether this was done: the bot was stopped in the middle")
		e.settle(t, end)
	}
	return end, true
}

// isRepeatable reports whether the action may run again when it is not known whether it
// ran. Parts guard what a message action sends.
func isRepeatable(d *Definition) bool { return d.Idempotent || d.IsMessage() }

func unknown(t task, text string) ending {
	outcome := core.Outcome{Action: t.step.Type, Kind: core.Broken, Text: text}
	return ending{progress: core.ProgressUnknown, outcome: outcome}
}

// report adds the ending to the results, and remembers it for later steps. It returns the
// index of the result.
func (e *execution) report(t task, end ending) int {
	r := StepResult{
		Step: int(t.number), Key: e.key(t.number), Action: end.outcome.Action, Call: t.step, Progress: end.progress,
		Outcome: end.outcome, For: int(t.cause), Held: end.held,
	}
	switch end.progress {
	case core.ProgressDone:
		r.Output = end.outcome.Result.Output
		e.succeeded(end.outcome)
	case core.ProgressPending:
		e.waits[t.step.Type] = t.number
		if end.held.On != 0 {
			e.waits[t.step.Type] = end.held.On
		}
	}
	e.results = append(e.results, r)
	return len(e.results) - 1
}

// attempt does a step and journals its ending.
func (e *execution) attempt(ctx context.Context, t task) (ending, error) {
	if _, ok := Control(t.step.Type); ok {
		return e.settle(t, e.control(t)), nil
	}
	d, ok := e.Snapshot.Resolve(t.step.Type)
	if !ok {
		return e.settle(t, skipped(t, core.Errorf(core.Broken, "%s is no longer available", t.step.Type))), nil
	}
	c := e.call(t)
	end, err := e.before(ctx, t, d, c)
	switch {
	case err != nil:
		return ending{}, err
	case end == nil:
		return e.run(ctx, t, d, c)
	case end.progress == core.ProgressPending: // on disk before anybody is asked
		return *end, e.Journal.Write(ctx, e.record(e.key(t.number), core.ProgressPending, end.held))
	}
	return e.settle(t, *end), nil
}

// settle journals an ending with the next write.
func (e *execution) settle(t task, end ending) ending {
	e.Journal.Later(e.record(e.key(t.number), end.progress, t.data(end.outcome)))
	if end.progress == core.ProgressSkipped {
		e.log.Info("step skipped", "action", t.step.Type, "reason", end.outcome.Text)
	}
	return end
}

// control returns the ending of a built-in action.
func (e *execution) control(t task) ending {
	if t.step.Type == Continue && e.Who.Continued >= MaxContinue {
		return skipped(t, core.Errorf(core.Forbidden, "%d times in a row are enough", MaxContinue))
	}
	if err := e.unmet(t); err != nil {
		return skipped(t, err)
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
	author, ok := e.Who.person()
	if !ok {
		author.Rank = e.Who.rank()
	}
	c.Author = author
	return c
}

// skipped returns the ending of a step that is not begun.
func skipped(t task, err error) ending {
	kind, text := userText(err)
	outcome := core.Outcome{Action: t.step.Type, Kind: kind, Text: text}
	return ending{progress: core.ProgressSkipped, outcome: outcome}
}

// before checks, in order, all that must hold before a step may begin. It returns nil if the
// step may begin. An error interrupts the turn.
func (e *execution) before(ctx context.Context, t task, d *Definition, c core.Call) (*ending, error) {
	skip := func(err error) (*ending, error) {
		end := skipped(t, err)
		return &end, nil
	}
	v, _ := schema.Decode(t.step.Payload)
	payload, _ := v.(map[string]any)
	why := e.Snapshot.refusal(d, e.Who, payload)
	if why != "" {
		return skip(core.Errorf(core.Forbidden, "%s %s", d.Name, why))
	}
	if err := e.unmet(t); err != nil {
		return skip(err)
	}
	for _, name := range d.DependsOn {
		_, succeeded := e.outputs[name]
		on, waits := e.waits[name]
		switch {
		case succeeded:
		case waits && !t.unit:
			return e.holdFor(t, d, on), nil
		default:
			return skip(core.Errorf(core.Invalid, "%s needs %s to succeed first", d.Name, name))
		}
	}
	if len(t.step.Missing) > 0 {
		return e.ask(t, d), nil
	}
	if e.Guard != nil {
		if err := e.Guard(ctx, d, c); err != nil {
			return skip(err)
		}
	}
	if err := e.checkCall(ctx, d, c); err != nil {
		if e.interrupts(d, err) {
			return nil, fmt.Errorf("%s: %w", d.Name, err)
		}
		e.log.Info("action refused", "action", d.Name, "err", err)
		return skip(err)
	}
	if out, ok := e.cached(ctx, d, c); ok {
		outcome := core.Outcome{Action: d.Name, Result: core.Result{Output: out}}
		return &ending{progress: core.ProgressDone, outcome: outcome}, nil
	}
	if t.agreed {
		return nil, nil
	}
	wait := e.limited(t, d)
	if wait > 0 {
		text := fmt.Sprintf("%s was used too often; try again in %s", d.Name, txt.SpanWords(wait))
		return skip(&core.Error{Kind: core.Occupied, Text: text, After: wait})
	}
	why = e.confirmReason(t, d, payload)
	if d.Confirm || t.step.Confirm || why != "" {
		return e.hold(t, d, why), nil
	}
	return nil, nil
}

// limited takes one use from the rate limits of the action, or returns how long to wait for
// it, in whole seconds. A step that was started before took its use then.
func (e *execution) limited(t task, d *Definition) (wait time.Duration) {
	r, _ := e.Journal.Find(e.key(t.number))
	if r.Progress == core.ProgressStarted {
		return 0
	}
	wait, ok := e.rates.take(d, e.Who.persons(), e.Clock())
	if ok {
		return 0
	}
	return max(wait.Round(time.Second), time.Second)
}

// checkCall calls the action's Check.
func (e *execution) checkCall(ctx context.Context, d *Definition, c core.Call) error {
	if d.Check == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.timeout(d))
	defer cancel()
	return safely(func() error { return d.Check(ctx, c) })
}

// run does the step. Before it begins, the journal says so on disk.
func (e *execution) run(ctx context.Context, t task, d *Definition, c core.Call) (ending, error) {
	release, err := e.enter(ctx, d)
	switch {
	case ctx.Err() != nil && err != nil:
		return ending{}, ctx.Err()
	case err != nil:
		return e.settle(t, skipped(t, err)), nil
	}
	started := e.record(e.key(t.number), core.ProgressStarted, t.data(core.Outcome{Action: d.Name}))
	if err := e.Journal.Write(ctx, started); err != nil {
		release()
		return ending{}, err
	}
	result, tries, err := e.try(ctx, d, c, release)
	switch { // the journal says that the step was started, and no more is known
	case err != nil && ctx.Err() != nil:
		return ending{}, ctx.Err()
	case e.interrupts(d, err):
		return ending{}, fmt.Errorf("%s: %w", d.Name, err)
	}
	end := e.endingOf(t, d, result, err)
	end.outcome.Tries = tries
	if end.progress == core.ProgressDone {
		e.keep(ctx, d, c, end.outcome.Result)
	}
	return e.settle(t, end), nil
}

// interrupts reports whether the turn is to be tried again after an error: the journal could
// not be written, the interface cannot be reached, or a message may have been sent, and may
// be sent again.
func (e *execution) interrupts(d *Definition, err error) bool {
	_, driver := e.Snapshot.Message(d.Owner)
	switch {
	case errors.Is(err, core.ErrUnwritten):
		return true
	case !driver || !isRepeatable(d):
		return false
	case errors.Is(err, core.ErrUnknownOutcome):
		return true
	}
	return errors.Is(err, core.ErrAway) && d.Owner == e.Who.Path.Interface()
}

// endingOf returns the ending of a step that was tried.
func (e *execution) endingOf(t task, d *Definition, result core.Result, err error) ending {
	if err == nil {
		err = d.checkOutput(&result)
	}
	switch {
	case err == nil:
		outcome := core.Outcome{Action: d.Name, Result: result}
		return ending{progress: core.ProgressDone, outcome: outcome}
	case errors.Is(err, errTimeout) && !isRepeatable(d):
		e.log.Warn("action timed out", "action", d.Name)
		return unknown(t, "it took too long, and it is not known whether it was done")
	}
	kind, text := userText(err)
	what := "action failed"
	if kind == core.Mismatch {
		what = "action done, but its output breaks its schema"
	}
	e.log.Warn(what, "action", d.Name, "err", err)
	end := ending{progress: core.ProgressFailed, outcome: core.Outcome{Action: d.Name, Kind: kind, Text: text}}
	if kind == core.Unsure || errors.Is(err, core.ErrUnknownOutcome) {
		end.progress, end.outcome.Kind = core.ProgressUnknown, core.Unsure
	}
	return end
}

// mismatch is the error for an output that breaks the schema of its action.
func mismatch(why string) error {
	const text = "it was done, but what came back is not what was promised"
	return &core.Error{Kind: core.Mismatch, Text: text, Err: errors.New(why)}
}

// checkOutput checks an output against its schema, and shortens it if it is too long.
func (d *Definition) checkOutput(r *core.Result) error {
	if len(r.Output) == 0 {
		if d.output != nil {
			return mismatch("no output")
		}
		return nil
	}
	v, err := schema.Decode(r.Output)
	if err != nil {
		return fmt.Errorf("output: %w", err)
	}
	if d.output != nil {
		violations := d.output.Validate(v)
		if len(violations) > 0 {
			return mismatch("output" + violations[0].Field() + ": " + violations[0].Text)
		}
	}
	r.Output = core.JSON(v)
	if len(r.Output) > maxOutput {
		r.Output = core.JSON(map[string]string{"cut": string(r.Output[:maxOutput/2]) + "…"})
	}
	return nil
}

// fallback does what was planned for the case that the step fails.
func (e *execution) fallback(ctx context.Context, t task) (settled, error) {
	if t.step.Fallback == nil {
		return settled{}, nil
	}
	next := task{step: *t.step.Fallback, cause: t.number, way: t.way, unit: t.unit}
	return e.performNext(ctx, next)
}

// performNext does a step that follows from another one, and gives it its number in the
// journal. After a crash the same steps get the same numbers: what decided on them was
// journalled before they began.
func (e *execution) performNext(ctx context.Context, t task) (settled, error) {
	if e.last >= maxNumber {
		return settled{}, nil
	}
	e.last++
	t.number = e.last
	return e.perform(ctx, t)
}
