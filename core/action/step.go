package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"synthbot/core"
	"synthbot/core/epochs"
	"synthbot/core/schema"
	"synthbot/core/txt"
)

// perform does one step, unless the journal has its result. Then it does the steps that follow from the result, or the
// fallback. at is the index of the result of the step that was done, the step itself or a fallback; below 0: none was.
func (e *execution) perform(ctx context.Context, t task) (at int, err error) {
	d, _ := e.Snapshot.Resolve(t.step.Type)
	r := e.recorded(t, d)
	if r.Progress == "" {
		c := e.call(t.number, t.step.Payload)
		if r, err = e.checkBefore(ctx, t, d, c); err == nil && r.Progress == "" {
			r, err = e.run(ctx, t, d, c)
		}
		if err == nil && r.Progress == core.ProgressPending { // on disk before anybody is asked
			err = e.Journal.Write(ctx, e.record(t.number, r.Progress, r.Held))
		} else if err == nil {
			e.journalResult(t, r)
		}
		if err != nil {
			return -1, err
		}
	}
	at = e.report(t, r)
	switch {
	case r.Progress == core.ProgressDone, r.undone:
		return at, e.performFollowing(ctx, t, at)
	case t.step.Fallback != nil && (r.Progress == core.ProgressFailed || r.Progress == core.ProgressSkipped):
		return e.performNext(ctx, task{step: *t.step.Fallback, cause: t.number, way: t.way, unit: t.unit})
	}
	return -1, nil
}

// recorded returns the result of a step from the journal; the zero StepResult if the step is to be done.
func (e *execution) recorded(t task, d *Definition) StepResult {
	record, ok := e.Journal.Find(e.key(t.number))
	if !ok {
		return StepResult{}
	}
	var h Held
	if json.Unmarshal(record.Data, &h) != nil {
		h.Outcome = core.Outcome{Action: t.step.Type, Kind: core.Broken, Text: "its record cannot be read"}
	}
	pends := record.Progress == core.ProgressPending || record.Progress == core.ProgressTaken
	switch {
	case !pends && record.Progress != core.ProgressStarted:
		return StepResult{Progress: record.Progress, Outcome: h.Outcome, undone: h.Undone}
	case t.held == nil && (!h.Asked.IsZero() || h.On != 0): // Resume continues it
		return pending(&h)
	case pends, d != nil && isRepeatable(d):
		return StepResult{}
	}
	return e.journalResult(t, unknown(t, "it is not known whether this was done: the bot was stopped in the middle"))
}

// isRepeatable reports whether the action may run again if it is not known whether it ran. A
// message action may, because its Deliveries journal what it sends.
func isRepeatable(d *Definition) bool { return d.Idempotent || d.IsMessage() }

// unknown is the result of a step that may have been done.
func unknown(t task, text string) StepResult {
	outcome := core.Outcome{Action: t.step.Type, Kind: core.Broken, Text: text}
	return StepResult{Progress: core.ProgressUnknown, Outcome: outcome}
}

// skipped is the result of a step that was not begun.
func skipped(t task, err error) StepResult {
	kind, text := UserText(err)
	outcome := core.Outcome{Action: t.step.Type, Kind: kind, Text: text}
	return StepResult{Progress: core.ProgressSkipped, Outcome: outcome}
}

func pending(h *Held) StepResult {
	return StepResult{Progress: core.ProgressPending, Outcome: h.Outcome, Held: h}
}

// report adds a step's result to the others, and keeps what later steps need. It returns its index.
func (e *execution) report(t task, r StepResult) int {
	r.Step, r.Key, r.For = int(t.number), e.key(t.number), int(t.cause)
	r.Action, r.Call = r.Outcome.Action, t.step
	switch r.Progress {
	case core.ProgressDone:
		r.Output = r.Outcome.Result.Output
		e.outputs[r.Action] = r.Output
	case core.ProgressPending:
		e.waits[t.step.Type] = t.number
		if r.Held.On != 0 {
			e.waits[t.step.Type] = r.Held.On
		}
	}
	e.results = append(e.results, r)
	return len(e.results) - 1
}

// journalResult journals a result with the next write.
func (e *execution) journalResult(t task, r StepResult) StepResult {
	e.Journal.Later(e.record(t.number, r.Progress, t.data(r.Outcome)))
	if r.Progress == core.ProgressSkipped {
		e.log().Info("step skipped", "action", t.step.Type, "reason", r.Outcome.Text)
	}
	return r
}

func (e *execution) call(number uint16, payload json.RawMessage) core.Call {
	key := e.key(number)
	c := core.Call{
		Key: key, Path: e.Who.Path, Private: e.Who.Private, Authors: slices.Clone(e.Who.Authors),
		Payload: slices.Clone(payload), Deliveries: e.Journal.Parts(key), Sees: e.Who.Sees, Answers: e.Answers,
	}
	if r, ok := e.Journal.Find(core.Key{Turn: e.Turn, Round: e.Round}); ok {
		c.Planned = r.Time
	}
	if len(c.Sees) == 0 {
		c.Sees = []core.Path{e.Who.Path}
	}
	var alone bool
	c.Author, alone = e.Who.Author()
	if !alone {
		c.Author.Rank = e.Who.rank()
	}
	return c
}

// checkBefore checks, in order, all that must hold before a step may begin. It returns the zero StepResult if the step
// may begin, else its result. An error interrupts the turn. d is nil if there is no such action.
func (e *execution) checkBefore(ctx context.Context, t task, d *Definition, c core.Call) (r StepResult, err error) {
	switch {
	case t.torn:
		return skipped(t, core.Errorf(core.Forbidden, "another step of its unit failed")), nil
	case slices.Contains(controls, t.step.Type):
		return e.control(t), nil
	case d == nil:
		return skipped(t, core.Errorf(core.Broken, "%s is no longer available", t.step.Type)), nil
	}
	payload := map[string]any{} // it matters only if the action concerns somebody
	if d.Concerns != "" {
		payload = decodePayload(t.step.Payload)
	}
	why := e.Snapshot.refusal(d, e.Who, payload)
	if why != "" {
		return skipped(t, core.Errorf(core.Forbidden, "%s %s", d.Name, why)), nil
	}
	if err := e.unmetCondition(t); err != nil {
		return skipped(t, err), nil
	}
	for _, name := range d.DependsOn {
		_, succeeded := e.outputs[name]
		on, waits := e.waits[name]
		switch {
		case succeeded:
		case waits && !t.unit:
			return e.holdFor(t, d, on), nil
		default:
			return skipped(t, core.Errorf(core.Invalid, "%s needs %s to succeed first", d.Name, name)), nil
		}
	}
	if len(t.step.Missing) > 0 {
		return e.askForValue(t, d), nil
	}
	if e.Guard != nil && d.Effects&core.EffectRewrites != 0 {
		if err := e.Guard(ctx, d, c); err != nil {
			return skipped(t, err), nil
		}
	}
	if r, err = e.check(ctx, t, d, c); err != nil || r.Progress != "" {
		return r, err
	}
	if d.Cache > 0 {
		kept, _ := e.cache.Get(e.cacheKey(ctx, d, c))
		if e.Clock().Before(kept.until) {
			outcome := core.Outcome{Action: d.Name, Result: core.Result{Output: kept.output}}
			return StepResult{Progress: core.ProgressDone, Outcome: outcome}, nil
		}
	}
	if t.agreed {
		return r, nil
	}
	if err := e.takeUse(t, d); err != nil {
		return skipped(t, err), nil
	}
	why = e.confirmReason(t, d, payload)
	if d.Confirm || t.step.Confirm || why != "" {
		return e.holdForConfirmation(t, d, why), nil
	}
	return r, nil
}

func (e *execution) control(t task) StepResult {
	err := e.unmetCondition(t)
	if t.step.Type == Continue && e.Who.Continued >= MaxContinue {
		err = core.Errorf(core.Forbidden, "%d times in a row are enough", MaxContinue)
	}
	if err != nil {
		return skipped(t, err)
	}
	return StepResult{Progress: core.ProgressDone, Outcome: core.Outcome{Action: t.step.Type}}
}

// check asks the action itself whether the call makes sense now.
func (e *execution) check(ctx context.Context, t task, d *Definition, c core.Call) (r StepResult, err error) {
	if d.Check != nil {
		err = e.callBounded(ctx, d, func(ctx context.Context) error { return d.Check(ctx, c) })
	}
	switch {
	case err == nil:
		return r, nil
	case e.interrupts(d, err):
		return r, fmt.Errorf("%s: %w", d.Name, err)
	}
	e.log().Info("action refused", "action", d.Name, "err", err)
	r = skipped(t, err)
	r.Refused = true
	return r, nil
}

// decodePayload reads the payload of a step; nil if it is not an object.
func decodePayload(raw json.RawMessage) map[string]any {
	v, _ := schema.Decode(raw)
	payload, _ := v.(map[string]any)
	return payload
}

// takeUse takes one use from the rate limits of the action, or returns an error that says how long to
// wait. A step that an earlier attempt started took its use then.
func (e *execution) takeUse(t task, d *Definition) error {
	r, _ := e.Journal.Find(e.key(t.number))
	if d.RateLimit.Count <= 0 || r.Progress == core.ProgressStarted {
		return nil
	}
	wait := e.rates.take(d, e.Who.users(), e.Clock())
	if wait > 0 {
		wait = max(wait.Round(time.Second), time.Second)
		text := fmt.Sprintf("%s was used too often; try again in %s", d.Name, txt.SpanWords(wait))
		return &core.Error{Kind: core.Occupied, Text: text, After: wait}
	}
	for i := range e.Who.Authors { // other processes count it, too
		user, err := e.Who.Path.Person(e.Who.Authors[i].ID)
		if err == nil && e.Options.Used != nil {
			e.Options.Used(user, d.Name)
		}
	}
	return nil
}

// run does the step, after it journalled that the step begins.
func (e *execution) run(ctx context.Context, t task, d *Definition, c core.Call) (StepResult, error) {
	release, err := e.lockBusy(ctx, d)
	switch {
	case err != nil && ctx.Err() != nil:
		return StepResult{}, ctx.Err()
	case err != nil:
		return skipped(t, err), nil
	}
	started := e.record(t.number, core.ProgressStarted, t.data(core.Outcome{Action: d.Name}))
	if err := e.Journal.Write(ctx, started); err != nil {
		release()
		return StepResult{}, err
	}
	var result core.Result
	var running <-chan struct{}
	pauses, tries := backoff.NewExponentialBackOff(), 0
	for again := true; again; {
		tries++
		result, running, err = e.callOnce(ctx, d, c)
		again = err != nil && running == nil && tries <= d.Retries && e.pause(ctx, d, pauses.NextBackOff(), err)
	}
	if running == nil {
		release()
	} else {
		e.overdue.Go(func() { <-running; release() })
	}
	switch { // after an error, the journal says that the step was started, and not how it ended
	case err != nil && ctx.Err() != nil:
		return StepResult{}, ctx.Err()
	case err != nil && e.interrupts(d, err):
		return StepResult{}, fmt.Errorf("%s: %w", d.Name, err)
	case err == nil:
		err = d.checkOutput(&result)
	}
	r := StepResult{Progress: core.ProgressDone, Outcome: core.Outcome{Action: d.Name, Result: result}}
	if err != nil {
		r = e.failed(t, d, err)
	}
	r.Outcome.Tries = tries
	if d.Cache > 0 && err == nil && len(result.Next) == 0 {
		e.cache.Put(e.cacheKey(ctx, d, c), cachedResult{result.Output, e.Clock().Add(d.Cache)})
	}
	return r, nil
}

// interrupts reports whether the turn is to be tried again after an error: the journal could not be written, the
// platform cannot be reached, or a message that may have been sent can be sent again.
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

// failed returns the result of a step that was tried and returned an error.
func (e *execution) failed(t task, d *Definition, err error) StepResult {
	if errors.Is(err, errTimeout) && !isRepeatable(d) {
		e.log().Warn("action timed out", "action", d.Name)
		return unknown(t, "it took too long, and it is not known whether it was done")
	}
	kind, text := UserText(err)
	what := "action failed"
	if kind == core.Mismatch {
		what = "action done, but its output does not match its schema"
	}
	e.log().Warn(what, "action", d.Name, "err", err)
	r := StepResult{Progress: core.ProgressFailed, Outcome: core.Outcome{Action: d.Name, Kind: kind, Text: text}}
	if kind == core.Unsure || errors.Is(err, core.ErrUnknownOutcome) {
		r.Progress, r.Outcome.Kind = core.ProgressUnknown, core.Unsure
	}
	return r
}

// checkOutput checks an output against its schema, and shortens it if it is too long.
func (d *Definition) checkOutput(r *core.Result) error {
	mismatch := func(why string) error {
		const text = "it was done, but its output does not match its schema"
		return &core.Error{Kind: core.Mismatch, Text: text, Err: errors.New(why)}
	}
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

// performNext does a step that follows from another one, under the next number in the journal. After a crash, the same
// steps get the same numbers: the result that they follow from was journalled before they began.
func (e *execution) performNext(ctx context.Context, t task) (at int, err error) {
	if e.last >= maxNumber {
		return -1, nil
	}
	e.last++
	t.number = e.last
	return e.perform(ctx, t)
}

// cachedResult is a result that is used again for the same users, in the same place, with an equal payload, until a
// user is forgotten, their rank changes or the place sees other places. Other users may not be allowed to see it.
type cachedResult struct {
	output json.RawMessage
	until  time.Time
}

func (e *execution) cacheKey(ctx context.Context, d *Definition, c core.Call) string {
	epoch, _, _ := epochs.Of(ctx)
	key := append(e.Who.users(), strconv.FormatUint(epoch, 10), strconv.Itoa(int(c.Author.Rank)), d.Name,
		c.Path.String(), string(c.Payload))
	for _, path := range c.Sees {
		key = append(key, path.String())
	}
	return strings.Join(key, "\x00")
}
