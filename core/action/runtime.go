package action

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/recent"
	"synthbot/core/sorting"
)

// Journal holds the records of one turn. Key.Turn is always the turn's.
type Journal interface {
	// Find returns the record of a key.
	Find(core.Key) (core.Record, bool)
	// Write returns when the records, and those that Later kept, are on disk.
	Write(ctx context.Context, records ...core.Record) error
	// Later keeps records for the next Write, or for the end of the turn.
	Later(records ...core.Record)
	// Parts returns the Deliveries of one step, which journal what it sends.
	Parts(step core.Key) core.Deliveries
}

// Options is what a Runtime needs. Zero values stand for the defaults.
type Options struct {
	Clock  func() time.Time
	Log    *slog.Logger
	Expire time.Duration // how long a confirmation may wait; default 10 min
	// Used is called when a user uses an action that has a rate limit, so that other processes count
	// it, too; see Runtime.Used. It returns at once. Nil: there are no other processes.
	Used func(by core.Path, action string)
}

// Bounds of execution.
const (
	tryTime   = 30 * time.Second // for one try of an action that declares no time limit
	grace     = 5 * time.Second  // for an action to end after its time limit
	maxPause  = 30 * time.Second // between two tries
	maxNumber = 200              // steps of a round, with those that follow from others
	maxChain  = 4                // steps that follow from each other
	maxOutput = 64 << 10         // bytes
	maxCached = 512              // results
)

// Runtime executes plans. It holds what outlives a turn: rate limits, locks of
// busy actions, cached results. Safe for concurrent use.
type Runtime struct {
	Options
	rates   rates
	locks   locks
	cache   *recent.Shared[string, cachedResult]
	overdue sync.WaitGroup // calls of Do, which may go on after their time limit
}

// NewRuntime makes a Runtime.
func NewRuntime(o Options) *Runtime {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Expire = cmp.Or(o.Expire, 10*time.Minute)
	r := &Runtime{Options: o, cache: recent.NewShared[string, cachedResult](maxCached / 2)}
	r.rates.used, r.locks.last = make(map[use][]time.Time), make(map[use]chan struct{})
	return r
}

// Wait blocks until all calls of actions have ended, also those that exceeded their time limit.
// Execute must not be called any more.
func (r *Runtime) Wait() { r.overdue.Wait() }

// Forget drops the cached results, which may concern a user who was forgotten.
func (r *Runtime) Forget() { r.cache.Clear() }

// Job is one round's plan, to be executed.
type Job struct {
	Snapshot *Snapshot
	Turn     core.TurnID
	Round    uint16
	Plan     core.Plan  // as Check returned it
	Read     Provenance // of the plan's prompt
	Who      Requester
	// Guard refuses calls that change or delete messages which the turn protects; nil: none.
	Guard    func(context.Context, *Definition, core.Call) error
	Attaches bool // questions longer than MaxQuestion can be attached as a file
	Journal  Journal
	Message  *core.Message // what the turn answers: for conditions; nil: nothing
	Answers  []string      // the platform ids of all that it answers
	State    core.State    // of the conversation, before this turn: for conditions
}

// StepResult is the result of one step. Progress is done, failed, skipped, pending or unknown.
type StepResult struct {
	Step     int // the number in the journal; the plan's own steps count from 1
	Key      core.Key
	Action   string
	Call     core.Step // the step itself
	Progress core.Progress
	Outcome  core.Outcome
	Output   json.RawMessage // for the model; nil: nothing to say
	For      int             // the step that it replaces or follows from; 0: it is the plan's own
	Held     *Held           // if pending
	Refused  bool            // skipped because of the action's own check
	undone   bool            // by an earlier attempt, after it was done
}

// Execute does the steps of a plan one by one, in the order of the package comment, and
// journals each. It reports steps that an earlier attempt finished, and does not repeat them.
// After an error, the turn must be continued from its journal.
func (r *Runtime) Execute(ctx context.Context, j Job) ([]StepResult, error) {
	e := r.begin(j, len(j.Plan.Steps))
	tried := make([]bool, len(j.Plan.Steps))
	for i := e.nextStep(tried); i >= 0; i = e.nextStep(tried) {
		var err error
		if j.Plan.Steps[i].Unit == "" {
			tried[i] = true
			_, err = e.perform(ctx, task{number: uint16(i + 1), step: j.Plan.Steps[i]})
		} else {
			err = e.performUnit(ctx, j.Plan.Steps[i].Unit, tried)
		}
		if err != nil {
			return e.results, err
		}
	}
	return e.results, nil
}

// begin prepares an execution, with the outputs of earlier rounds. used is the highest number of a step so far.
func (r *Runtime) begin(j Job, used int) *execution {
	e := &execution{
		Runtime: r, Job: j, last: uint16(used),
		outputs: make(map[string]json.RawMessage), waits: make(map[string]uint16),
	}
	for round := uint16(1); round < e.Round; round++ {
		for n := uint16(1); n <= maxNumber; n++ {
			r, _ := e.Journal.Find(core.Key{Turn: e.Turn, Round: round, Step: n})
			var o core.Outcome
			if r.Progress == core.ProgressDone && json.Unmarshal(r.Data, &o) == nil {
				e.outputs[o.Action] = o.Result.Output
			}
		}
	}
	return e
}

type execution struct {
	*Runtime
	Job
	results []StepResult
	last    uint16                     // the highest number of a step
	outputs map[string]json.RawMessage // of actions that succeeded in this turn; may be nil
	waits   map[string]uint16          // actions that wait, with the number of the step that asks the question
	form    uint16                     // the step whose form is filled in; 0: none
}

type task struct {
	number uint16
	step   core.Step
	cause  uint16   // the step that it replaces or follows from
	way    []string // the actions whose results led here
	unit   bool     // it is part of a unit
	torn   bool     // and another step of the unit failed
	agreed bool     // the user has confirmed it
	held   *Held    // if it waited for an answer
}

func (e *execution) log() *slog.Logger { return e.Log.With("path", e.Who.Path, "turn", e.Turn.Seq) }

func (e *execution) key(number uint16) core.Key {
	return core.Key{Turn: e.Turn, Round: e.Round, Step: number}
}

// nextStep returns the index of the next step to try: among those that do not depend on an untried one, the first with
// the highest priority. It returns -1 if all were tried. Dependencies have no circles.
func (e *execution) nextStep(tried []bool) int {
	next := -1
	for i, step := range e.Plan.Steps {
		d, ok := e.Snapshot.Resolve(step.Type)
		early := false
		for k := range e.Plan.Steps {
			early = early || ok && !tried[k] && slices.Contains(d.DependsOn, e.Plan.Steps[k].Type)
		}
		if !tried[i] && !early && (next < 0 || step.Priority > e.Plan.Steps[next].Priority) {
			next = i
		}
	}
	return next
}

func (e *execution) record(number uint16, p core.Progress, data any) core.Record {
	return core.Record{Key: e.key(number), Progress: p, Time: e.Clock(), Data: core.JSON(data)}
}

// performFollowing does the next steps that the result at an index asks for.
func (e *execution) performFollowing(ctx context.Context, t task, at int) error {
	d, ok := e.Snapshot.Resolve(e.results[at].Action)
	next := e.results[at].Outcome.Result.Next
	if !ok || len(next) == 0 {
		return nil
	}
	for _, step := range e.checkNext(t, d, next) {
		child := task{step: step, cause: t.number, way: append(slices.Clone(t.way), d.Name), unit: t.unit}
		if _, err := e.performNext(ctx, child); err != nil {
			return err
		}
	}
	return nil
}

// performUnit does the untried steps of a unit, in order. If one fails, it undoes those before it and skips the others.
func (e *execution) performUnit(ctx context.Context, name string, tried []bool) error {
	rest := slices.Repeat([]bool{true}, len(tried))
	for i, step := range e.Plan.Steps {
		if step.Unit == name && !tried[i] {
			rest[i], tried[i] = false, true
		}
	}
	var done []int
	failed := false
	for i := e.nextStep(rest); i >= 0; i = e.nextStep(rest) {
		rest[i] = true
		t := task{number: uint16(i + 1), step: e.Plan.Steps[i], unit: true, torn: failed}
		if failed {
			t.step.Fallback = nil
		}
		at, err := e.perform(ctx, t)
		if err != nil {
			return err
		}
		if at >= 0 {
			done = append(done, at)
		} else if !failed {
			failed = true
			if err := e.rollback(ctx, done); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkNext returns the steps that a result asks for and that may be done, in order; see the package comment.
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
		e.log().Warn("next steps refused", "action", d.Name, "faults", c.faults)
	}
	sorting.SortStable(steps, func(a, b core.Step) int { return cmp.Compare(b.Priority, a.Priority) })
	return steps
}

// rollback undoes steps, the last first. It journals before that a step is being undone, so that no
// step is undone twice after a crash.
func (e *execution) rollback(ctx context.Context, done []int) error {
	for _, i := range slices.Backward(done) {
		r := &e.results[i]
		if r.undone {
			continue
		}
		d, ok := e.Snapshot.Resolve(r.Action)
		if !ok || d.Undo == nil {
			e.log().Warn("step of a failed unit cannot be undone", "action", r.Action)
			continue
		}
		if err := e.Journal.Write(ctx, e.undone(r, core.ProgressUnknown)); err != nil {
			return err
		}
		call, done := e.call(uint16(r.Step), r.Call.Payload), r.Outcome.Result
		undo := func(ctx context.Context) error { return d.Undo(ctx, call, done) }
		if err := e.callBounded(ctx, d, undo); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			e.log().Error("step of a failed unit could not be undone", "action", d.Name, "err", err)
			continue
		}
		e.Journal.Later(e.undone(r, core.ProgressFailed))
	}
	return nil
}

// undone changes the result of a step that is undone, and returns its record. The record keeps what
// the step returned, so that the same steps follow from it after a crash.
func (e *execution) undone(r *StepResult, p core.Progress) core.Record {
	r.Progress, r.Output = p, nil
	r.Outcome = core.Outcome{
		Action: r.Action, Result: r.Outcome.Result, Kind: core.Broken,
		Text: "it was undone, because another step of its unit failed",
	}
	if p == core.ProgressUnknown {
		r.Outcome.Text = "another step of its unit failed, and it is not known whether this one could be undone"
	}
	delete(e.outputs, r.Action)
	return e.record(uint16(r.Step), p, Held{Undone: true, Step: r.Call, Outcome: r.Outcome})
}

// Undone is the result of undoing a step. Err is nil if it was undone.
type Undone struct {
	StepResult
	Title string // what the step did, on one line
	Err   error
}

// Lasting returns the steps that were done and changed something, without messages.
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

// Undo undoes steps of a turn that is over, the last one first, until ctx ends. who caused the turn; their permissions
// are checked again. Nothing is journalled: the caller ensures that no step is undone twice.
func (r *Runtime) Undo(ctx context.Context, s *Snapshot, who Requester, steps []StepResult) []Undone {
	var all []Undone
	for i := len(steps) - 1; i >= 0 && ctx.Err() == nil; i-- {
		u := Undone{StepResult: steps[i], Title: steps[i].Action}
		u.Err = core.Errorf(core.Forbidden, "it cannot be undone")
		if d, ok := s.Resolve(u.Action); ok {
			called := u.Call
			if u.Outcome.Result.Named != nil {
				called.Payload = u.Outcome.Result.Named
			}
			u.Title = s.summary(d, &called, r.Clock())
			if d.Undo != nil {
				u.Err = r.undo(ctx, s, who, d, &u.StepResult)
			}
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
	author, _ := who.Author()
	c := core.Call{
		Key: step.Key, Path: who.Path, Private: who.Private, Author: author, Authors: who.Authors,
		Payload: step.Call.Payload, Sees: who.Sees,
		Deliveries: NoDeliveries{errors.New("nothing is sent while a step is undone")}, // it would not be journalled
	}
	err := r.callBounded(ctx, d, func(ctx context.Context) error { return d.Undo(ctx, c, step.Outcome.Result) })
	if err != nil {
		r.Log.Warn("action not undone", "action", d.Name, "err", err)
	}
	return err
}

// NoDeliveries implements core.Deliveries by returning an error.
type NoDeliveries struct{ Err error }

// Send implements core.Deliveries.
func (n NoDeliveries) Send(context.Context, int, core.Sent, func(context.Context, string) (string, error)) error {
	return n.Err
}

// Since implements core.Deliveries.
func (NoDeliveries) Since(int) time.Time { return time.Time{} }
