package action

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"synthbot/core"
)

// Reviewer is the ability of a plugin to see a checked plan before any of it runs. Review
// must not change the plan, and returns when ctx ends.
type Reviewer interface {
	Review(ctx context.Context, w Requester, p core.Plan) (ReviewResult, error)
}

// ReviewResult is what a Reviewer says. The zero value lets the plan pass.
type ReviewResult struct {
	Strike []int  // the indexes of steps to leave out
	Back   string // why the plan goes back to the model; "": it does not
}

type named struct {
	name string
	Reviewer
}

// reviewTime is how long one reviewer may take.
const reviewTime = 5 * time.Second

// Reviewed reports whether a plan may change before it runs: then nothing of it should be
// shown before.
func (s *Snapshot) Reviewed() bool { return len(s.reviewers) > 0 }

// Review asks the reviewers about a checked plan, one after the other. Each sees what the
// ones before left of it. The faults are for the model: the plan goes back to it. If a
// reviewer fails, only the plan's messages are left.
func (s *Snapshot) Review(ctx context.Context, w Requester, p core.Plan, log *slog.Logger) (core.Plan, []core.Fault) {
	var faults []core.Fault
	for _, r := range s.reviewers {
		v, err := r.judge(ctx, w, p)
		switch {
		case err != nil:
			log.Error("reviewer failed, only messages pass", "plugin", r.name, "err", err)
			p.Steps = slices.DeleteFunc(slices.Clone(p.Steps), func(step core.Step) bool { return !s.harmless(&step) })
		case len(v.Strike) > 0:
			log.Info("steps struck out", "plugin", r.name, "steps", v.Strike)
			var kept []core.Step
			for i, step := range p.Steps {
				if !slices.Contains(v.Strike, i) {
					kept = append(kept, step)
				}
			}
			p.Steps = kept
		}
		if v.Back != "" {
			faults = append(faults, core.Fault{Text: v.Back})
		}
	}
	return p, faults
}

// judge asks one reviewer.
func (r named) judge(ctx context.Context, w Requester, p core.Plan) (v ReviewResult, err error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTime)
	defer cancel()
	p.Steps = slices.Clone(p.Steps)
	err = safely(func() (err error) {
		v, err = r.Review(ctx, w, p)
		return err
	})
	return v, err
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
