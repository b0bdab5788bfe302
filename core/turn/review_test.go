package turn_test

import (
	"context"
	"strings"
	"testing"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/coretest"
)

// censor is a plugin that reviews plans.
type censor struct{ *coretest.Plugin }

// Review implements action.Reviewer: nothing rude is said, nothing is burnt.
func (censor) Review(_ context.Context, _ action.Requester, p core.Plan) (v action.ReviewResult, err error) {
	for i, step := range p.Steps {
		switch {
		case strings.Contains(string(step.Payload), "rude"):
			v.Back = "be polite"
		case step.Type == "burn":
			v.Strike = append(v.Strike, i)
		}
	}
	return v, nil
}

func TestReviewer(t *testing.T) {
	tools := coretest.NewPlugin("tools", core.Action{Name: "burn", Brief: "Burn", Permission: core.PermissionEveryone})
	for _, tc := range []struct {
		name   string
		script []any
		want   string
	}{
		{"sent back", []any{plan("rude words"), plan("kind words")}, "kind words"},
		{"struck out", []any{`{"response":"As you wish.","actions":[{"type":"burn"}]}`}, "As you wish."},
		{"never mended", []any{plan("rude 1"), plan("rude 2"), plan("rude 3")}, "Sorry, I lost my thread there. Could you say that again, maybe in other words?"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := withPlugin(t, censor{tools}, tc.script...)
			b.receive(said("1", "jay", "hi"))
			b.ended(1)
			b.holds(tc.want)
			if len(tools.Calls()) != 0 {
				t.Error("what was struck out ran")
			}
			if tc.name == "sent back" && !strings.Contains(b.input(1), "be polite") {
				t.Errorf("the model was not told why: %s", b.input(1))
			}
		})
	}
}
