package action

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"synthbot/core"
)

// Reviewer is the ability of a plugin to look at a plan before any of it runs.
// Review sees the plan as it was checked, must not change it, and returns when
// ctx ends.
type Reviewer interface {
	Review(ctx context.Context, w Requester, p core.Plan) (ReviewResult, error)
}

// ReviewResult is what a Reviewer says. The zero value lets the plan pass.
type ReviewResult struct {
	Strike []int  // the steps to leave out, by index
	Back   string // why the plan goes back to the model; "": it does not
}

type named struct {
	name string
	Reviewer
}

// reviewTime is how long one reviewer may take.
const reviewTime = 5 * time.Second

// Reviewed reports whether a plan may change before it runs, so that nothing of
// it should be shown before.
func (s *Snapshot) Reviewed() bool { return len(s.reviewers) > 0 }

// Review asks the reviewers about a checked plan, one after the other, each
// seeing what the ones before left of it. A plan that goes back comes with
// faults for the model. Of a plan that a reviewer could not judge only messages
// are left: whoever is to prevent something must not fail by letting it pass.
func (s *Snapshot) Review(ctx context.Context, w Requester, p core.Plan, log *slog.Logger) (core.Plan, []core.Fault) {
	var faults []core.Fault
	for _, r := range s.reviewers {
		v, err := r.judge(ctx, w, p)
		switch {
		case err != nil:
			log.Error("reviewer failed, only messages pass", "plugin", r.name, "err", err)
			p.Steps = keep(p.Steps, func(_ int, step *core.Step) bool { return s.harmless(step) })
		case len(v.Strike) > 0:
			log.Info("steps struck out", "plugin", r.name, "steps", v.Strike)
			p.Steps = keep(p.Steps, func(i int, _ *core.Step) bool { return !slices.Contains(v.Strike, i) })
		}
		if v.Back != "" {
			faults = append(faults, core.Fault{Text: v.Back})
		}
	}
	return p, faults
}

// judge asks one reviewer; its panic is an error.
func (r named) judge(ctx context.Context, w Requester, p core.Plan) (v ReviewResult, err error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTime)
	defer cancel()
	defer func() {
		if x := recover(); x != nil {
			v, err = ReviewResult{}, fmt.Errorf("panic: %v", x)
		}
	}()
	p.Steps = slices.Clone(p.Steps)
	return r.Review(ctx, w, p)
}

// harmless reports whether the step, with all its fallbacks, only talks.
func (s *Snapshot) harmless(step *core.Step) bool {
	for ; step != nil; step = step.Fallback {
		if _, ok := Control(step.Type); ok {
			continue
		}
		if d, ok := s.Resolve(step.Type); !ok || !d.IsMessage() {
			return false
		}
	}
	return true
}

func keep(steps []core.Step, wanted func(int, *core.Step) bool) []core.Step {
	var kept []core.Step
	for i := range steps {
		if wanted(i, &steps[i]) {
			kept = append(kept, steps[i])
		}
	}
	return kept
}
