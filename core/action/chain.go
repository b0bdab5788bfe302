package action

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"synthbot/core"
)

// finished is a step that can be undone.
type finished struct {
	task   task
	d      *Definition
	result core.Result
	undone bool // by an earlier attempt
	at     int  // the index of its StepResult
}

// settled is what became of a task with all that followed from it.
type settled struct {
	ok       bool
	finished []finished
}

// follow does what a result asks for. In a unit, all of it succeeds or all of it is undone.
func (e *execution) follow(ctx context.Context, t task, end ending, at int) (settled, error) {
	result := &end.outcome.Result
	d, ok := e.Snapshot.Resolve(end.outcome.Action)
	if !ok {
		return settled{ok: !end.undone}, nil
	}
	s := settled{ok: true, finished: []finished{{t, d, *result, end.undone, at}}}
	next := e.checkNext(t, d, result.Next)
	if result.Unit && len(next) < len(result.Next) {
		s.ok, next = false, nil
	}
	for _, step := range next {
		child, err := e.performNext(ctx, task{
			step: step, cause: t.number, way: append(slices.Clone(t.way), d.Name), unit: t.unit || result.Unit,
		})
		if err != nil {
			return settled{}, err
		}
		if result.Unit {
			s.finished = append(s.finished, child.finished...)
			if !child.ok {
				s.ok = false
				break
			}
		}
	}
	if s.ok {
		return s, nil
	}
	if err := e.rollback(ctx, s.finished); err != nil {
		return settled{}, err
	}
	return e.fallback(ctx, t)
}

// unit takes the steps of a unit out of those that were not tried, and returns them in order.
func (e *execution) unit(name string, tried []bool) []task {
	rest := slices.Repeat([]bool{true}, len(tried))
	for i, step := range e.Plan.Steps {
		if step.Unit == name && !tried[i] {
			rest[i], tried[i] = false, true
		}
	}
	var tasks []task
	for i := e.nextStep(rest); i >= 0; i = e.nextStep(rest) {
		rest[i] = true
		tasks = append(tasks, task{number: uint16(i + 1), step: e.Plan.Steps[i], unit: true})
	}
	return tasks
}

// performUnit does steps until one fails. Then those before are undone, and those behind it
// are skipped.
func (e *execution) performUnit(ctx context.Context, tasks []task) error {
	var done []finished
	for i, t := range tasks {
		s, err := e.perform(ctx, t)
		if err != nil {
			return err
		}
		done = append(done, s.finished...)
		if s.ok {
			continue
		}
		if err := e.rollback(ctx, done); err != nil {
			return err
		}
		for _, t := range tasks[i+1:] {
			end, known := e.recorded(t)
			if !known {
				end = e.settle(t, skipped(t, core.Errorf(core.Forbidden, "another step of its unit failed")))
			}
			e.report(t, end)
		}
		return nil
	}
	return nil
}

// checkNext checks what a result asks for like a plan, and also that it is neither too deep
// nor in a circle. It returns what may be done, in order.
func (e *execution) checkNext(t task, d *Definition, next []core.Step) []core.Step {
	c := checker{Snapshot: e.Snapshot, who: e.Who}
	var steps []core.Step
	for i := range next {
		field := fmt.Sprintf("next[%d]", i)
		step, ok := c.step(field, next[i], 1)
		switch {
		case !ok:
		case len(t.way)+1 > maxChain:
			c.fault(field, step.Type, "more than %d actions that follow from each other", maxChain)
		case step.Type == d.Name || slices.Contains(t.way, step.Type):
			c.fault(field, step.Type, "goes in a circle")
		default:
			steps = append(steps, step)
		}
	}
	if len(c.faults) > 0 {
		e.log.Warn("next steps refused", "action", d.Name, "faults", c.faults)
	}
	slices.SortStableFunc(steps, func(a, b core.Step) int { return cmp.Compare(b.Priority, a.Priority) })
	return steps
}

// rollback undoes steps, the last one first. That a step is being undone is on disk before,
// so that a crash undoes nothing twice.
func (e *execution) rollback(ctx context.Context, steps []finished) error {
	for _, f := range slices.Backward(steps) {
		switch {
		case f.undone:
			continue
		case f.d.Undo == nil:
			e.log.Warn("step of a failed unit cannot be undone", "action", f.d.Name)
			continue
		}
		if err := e.Journal.Write(ctx, e.undone(f, core.ProgressUnknown)); err != nil {
			return err
		}
		if err := e.undo(ctx, f); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			e.log.Error("step of a failed unit could not be undone", "action", f.d.Name, "err", err)
			continue
		}
		e.Journal.Later(e.undone(f, core.ProgressFailed))
	}
	return nil
}

// undone corrects the StepResult of a step that is undone, and returns its record. That
// keeps the result, so that the same steps follow after a crash.
func (e *execution) undone(f finished, p core.Progress) core.Record {
	text := "it was taken back, as what belongs to it failed"
	if p == core.ProgressUnknown {
		text = "it is not known whether it could be taken back, after what belongs to it failed"
	}
	h := Held{Undone: true, Step: f.task.step}
	h.Outcome = core.Outcome{Action: f.d.Name, Result: f.result, Kind: core.Broken, Text: text}
	r := &e.results[f.at]
	r.Progress, r.Output, r.Outcome = p, nil, h.Outcome
	delete(e.outputs, f.d.Name)
	return e.record(e.key(f.task.number), p, h)
}

func (e *execution) undo(ctx context.Context, f finished) error {
	ctx, cancel := context.WithTimeout(ctx, e.timeout(f.d))
	defer cancel()
	return safely(func() error { return f.d.Undo(ctx, e.call(f.task), f.result) })
}
