package action

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/recent"
	"synthbot/core/schema"
)

// Journal is one turn's memory of what was done. Key.Turn is always the turn's.
type Journal interface {
	// Find returns what is known under a key.
	Find(core.Key) (core.Record, bool)
	// Write returns when the records, and those that wait, are on disk.
	Write(ctx context.Context, records ...core.Record) error
	// Later keeps records for the next Write, or for the end of the turn.
	Later(records ...core.Record)
	// Parts guards what one step sends.
	Parts(step core.Key) core.Deliveries
}

// Options is what a Runtime needs. Zero values stand for the defaults.
type Options struct {
	Clock   func() time.Time
	Log     *slog.Logger
	Timeout time.Duration // of one try of an action that declares none; default 30 s
	Expire  time.Duration // how long a confirmation may wait; default 10 min
}

// Bounds of execution.
const (
	grace     = 5 * time.Second  // for an action to end after its time is up
	maxPause  = 30 * time.Second // between two tries
	maxNumber = 200              // steps of a round, with those that follow from others
	maxChain  = 4                // steps that follow from each other
	maxOutput = 64 << 10         // bytes
)

// Runtime carries plans out. It holds what outlives a turn: rate limits, what
// is busy, cached results. Safe for concurrent use.
type Runtime struct {
	Options
	rates   rates
	locks   locks
	cache   *cache
	overdue sync.WaitGroup // calls that go on though their time is up
}

// NewRuntime makes a Runtime.
func NewRuntime(o Options) *Runtime {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.Expire = cmp.Or(o.Expire, 10*time.Minute)
	return &Runtime{Options: o, cache: recent.NewShared[string, cachedResult](maxCached / 2)}
}

// Wait blocks until all calls have ended whose time was up. Execute must not be called any
// more.
func (r *Runtime) Wait() { r.overdue.Wait() }

// Job is one round's plan, to be carried out.
type Job struct {
	Snapshot *Snapshot
	Turn     core.TurnID
	Round    uint16
	Plan     core.Plan  // as Check returned it
	Read     Provenance // what the plan's prompt held besides the people's own new words
	Who      Requester
	// Guard refuses calls that change or delete messages, for what the turn knows; nil: none.
	Guard    func(context.Context, *Definition, core.Call) error
	Attaches bool // questions longer than MaxQuestion can be attached as a file
	Journal  Journal
	Message  core.Message // what the turn answers: for conditions
	Answers  []string     // the platform ids of all that it answers
	State    core.State   // of the conversation, before this turn: for conditions
}

// StepResult is what became of one step. Progress is done, failed, skipped, pending or
// unknown.
type StepResult struct {
	Step     int // the number in the journal; the plan's own steps count from 1
	Key      core.Key
	Action   string
	Call     core.Step // as it was asked for
	Progress core.Progress
	Outcome  core.Outcome
	Output   json.RawMessage // for the model; nil: nothing to say
	For      int             // the step that it replaces or follows from; 0: it is the plan's own
	Held     *Held           // if pending
	undone   bool            // by an earlier attempt, after it was done
}

// Execute does the steps of a plan one by one, in the order of the package comment, and
// journals each. It reports what an earlier attempt finished, and does not repeat it. After
// an error of the journal or of ctx, the turn is to be continued from its journal.
func (r *Runtime) Execute(ctx context.Context, j Job) ([]StepResult, error) {
	e := r.begin(j, len(j.Plan.Steps))
	tried := make([]bool, len(j.Plan.Steps))
	for range tried {
		i := e.nextStep(tried)
		if i < 0 {
			break
		}
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

// begin prepares a run, with the outputs of earlier rounds.
func (r *Runtime) begin(j Job, used int) *execution {
	e := &execution{
		Runtime: r, Job: j, log: r.Log.With("path", j.Who.Path, "turn", j.Turn.Seq),
		last: uint16(used), outputs: make(map[string]any), waits: make(map[string]uint16),
	}
	for round := uint16(1); round < e.Round; round++ {
		for n := uint16(1); n <= maxNumber; n++ {
			r, _ := e.Journal.Find(core.Key{Turn: e.Turn, Round: round, Step: n})
			var o core.Outcome
			if r.Progress == core.ProgressDone && json.Unmarshal(r.Data, &o) == nil {
				e.succeeded(o)
			}
		}
	}
	return e
}

// execution is one run of a plan.
type execution struct {
	*Runtime
	Job
	log     *slog.Logger
	results []StepResult
	last    uint16            // the highest number of a step
	outputs map[string]any    // of actions that succeeded in this turn, decoded
	waits   map[string]uint16 // actions that wait, with the number of the step that is asked about
	form    uint16            // the step whose form is filled in; 0: none
}

// task is one step to be done.
type task struct {
	number uint16
	step   core.Step
	cause  uint16   // the step that it replaces or follows from
	way    []string // the actions whose results led here
	unit   bool     // it is part of a unit
	agreed bool     // the user has confirmed it
	held   *Held    // if it waited for an answer
}

func (e *execution) key(number uint16) core.Key {
	return core.Key{Turn: e.Turn, Round: e.Round, Step: number}
}

// succeeded remembers the output of an action, which may be nil.
func (e *execution) succeeded(o core.Outcome) {
	e.outputs[o.Action], _ = schema.Decode(o.Result.Output)
}

// nextStep returns the index of the step with the highest priority, of equals the first, that
// was not tried and depends on none that was not tried. Dependencies have no circles.
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
