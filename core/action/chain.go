package action

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"synthbot/core"
)

// finished is a step that can be taken back.
type finished struct {
	task   task
	d      *Definition
	result core.Result
	undone bool // by a former attempt
	at     int  // where it is reported
}

// settled is what became of a task with all that followed from it.
type settled struct {
	ok       bool
	finished []finished
}

// follow does what a result asks for. Where it asks for a unit, all of it
// succeeds or all of it is taken back.
func (e *execution) follow(ctx context.Context, t task, end ending, at int) (settled, error) {
	d, ok := e.Snapshot.Resolve(end.outcome.Action)
	if !ok {
		return settled{ok: !end.undone}, nil
	}
	s := settled{ok: true, finished: []finished{{t, d, end.outcome.Result, end.undone, at}}}
	result := &end.outcome.Result
	if len(result.Next) == 0 {
		return s, nil
	}
	next := e.admit(t, d, result.Next)
	if result.Unit && len(next) < len(result.Next) {
		s.ok = false
		next = nil
	}
	for i := range next {
		child, err := e.consequence(ctx, t, d, next[i], t.unit || result.Unit)
		if err != nil {
			return settled{}, err
		}
		if result.Unit {
			s.finished = append(s.finished, child.finished...)
			if s.ok = child.ok; !s.ok {
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

// consequence does one of the steps that a result asks for.
func (e *execution) consequence(ctx context.Context, t task, d *Definition, step core.Step, unit bool) (settled, error) {
	n, ok := e.number()
	if !ok {
		return settled{}, nil
	}
	way := append(slices.Clone(t.way), d.Name)
	return e.perform(ctx, task{number: n, step: step, cause: t.number, way: way, unit: unit})
}

// admit checks what a result asks for like any plan: known, permitted, valid,
// and neither too deep nor in a circle.
func (e *execution) admit(t task, d *Definition, next []core.Step) []core.Step {
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
		e.log.Warn("consequences refused", "action", d.Name, "faults", c.faults)
	}
	slices.SortStableFunc(steps, func(a, b core.Step) int { return cmp.Compare(b.Priority, a.Priority) })
	return steps
}

// rollback takes finished steps back, the last one first. That one is begun
// with is on disk before, so that a crash takes nothing back twice.
func (e *execution) rollback(ctx context.Context, steps []finished) error {
	for _, f := range slices.Backward(steps) {
		if f.undone {
			continue
		}
		if f.d.Undo == nil {
			e.log.Warn("step of a failed unit cannot be taken back", "action", f.d.Name)
			continue
		}
		unsure := e.undone(f, core.ProgressUnknown)
		if err := e.Journal.Write(ctx, unsure); err != nil {
			return err
		}
		if err := e.undo(ctx, f); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			e.log.Error("step of a failed unit could not be taken back", "action", f.d.Name, "err", err)
			continue
		}
		e.Journal.Later(e.undone(f, core.ProgressFailed))
	}
	return nil
}

// undone corrects what was reported of a step that is taken back, and makes its
// record: the result stays in it, so that the same steps follow after a crash.
func (e *execution) undone(f finished, p core.Progress) core.Record {
	text := "it was taken back, as what belongs to it failed"
	if p == core.ProgressUnknown {
		text = "it is not known whether it could be taken back, after what belongs to it failed"
	}
	h := Held{Undone: true, Step: f.task.step}
	h.Outcome = core.Outcome{Action: f.d.Name, Result: f.result, Kind: core.Broken, Text: text}
	d := &e.done[f.at]
	d.Progress, d.Output, d.Outcome = p, nil, h.Outcome
	delete(e.results, f.d.Name)
	return e.record(e.key(f.task.number), p, h)
}

func (e *execution) undo(ctx context.Context, f finished) (err error) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout(f.d))
	defer cancel()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return f.d.Undo(ctx, e.call(f.task), f.result)
}
