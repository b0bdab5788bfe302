package action

import (
	"context"

	"synthbot/core"
)

// Reviewer is the ability of a plugin to look at a plan before any of it runs.
// Review sees the plan as it was checked, must not change it, and returns when
// ctx ends.
type Reviewer interface {
	Review(ctx context.Context, w Who, p core.Plan) (Verdict, error)
}

// Verdict is what a Reviewer says. The zero value lets the plan pass.
type Verdict struct {
	Strike []int  // the steps to leave out, by index
	Back   string // why the plan goes back to the model; "": it does not
}

type named struct {
	name string
	Reviewer
}
