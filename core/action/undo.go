package action

import (
	"context"
	"errors"
	"strings"
	"time"

	"synthbot/core"
)

// Undone is what became of a step that was to be undone. Err is nil if it was.
type Undone struct {
	StepResult
	Title string // what the action does, and with what, on one line
	Err   error
}

var errNoUndo = core.Errorf(core.Forbidden, "it cannot be undone")

// Lasting returns the steps that were done and changed something, besides messages.
func (s *Snapshot) Lasting(done []StepResult) []StepResult {
	var lasting []StepResult
	for _, r := range done {
		d, ok := s.Resolve(r.Action)
		if ok && r.Progress == core.ProgressDone && !d.IsMessage() && !d.ReadOnly() {
			lasting = append(lasting, r)
		}
	}
	return lasting
}

// Undo undoes steps of a turn that is over, the last one first. who caused it; whether they
// still may is asked again. Nothing is journalled: the caller sees to it that no step is
// undone twice. It ends early with ctx.
func (r *Runtime) Undo(ctx context.Context, s *Snapshot, who Requester, steps []StepResult) []Undone {
	var all []Undone
	for i := len(steps) - 1; i >= 0 && ctx.Err() == nil; i-- {
		u := Undone{StepResult: steps[i], Title: steps[i].Action}
		d, ok := s.Resolve(u.Action)
		if ok {
			var b strings.Builder
			s.describe(&b, d, &u.Call)
			u.Title = strings.ReplaceAll(b.String(), "\n", "; ")
		}
		u.Err = errNoUndo
		if ok && d.Undo != nil {
			u.Err = r.undo(ctx, s, who, d, &u.StepResult)
		}
		all = append(all, u)
	}
	return all
}

func (r *Runtime) undo(ctx context.Context, s *Snapshot, who Requester, d *Definition, step *StepResult) error {
	why := s.refusal(d, who, decodePayload(step.Call.Payload))
	if why != "" {
		return core.Errorf(core.Forbidden, "%s %s", d.Name, why)
	}
	author, _ := who.person()
	c := core.Call{
		Key: step.Key, Path: who.Path, Private: who.Private, Author: author, Authors: who.Authors,
		Payload: step.Call.Payload, Deliveries: noDeliveries{}, Sees: who.Sees,
	}
	err := r.callUndo(ctx, d, c, step.Outcome.Result)
	if err != nil {
		r.Log.Warn("action not undone", "action", d.Name, "err", err)
	}
	return err
}

// Why is the error in words for the user.
func (u *Undone) Why() string {
	_, text := userText(u.Err)
	return text
}

// noDeliveries refuses to send: nothing would journal it.
type noDeliveries struct{}

func (noDeliveries) Send(context.Context, int, core.Sent, func(context.Context, string) (string, error)) error {
	return errors.New("nothing is sent while a step is undone")
}

func (noDeliveries) Since(int) time.Time { return time.Time{} }
