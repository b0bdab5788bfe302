package action

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/recent"
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

// Options is what a Runtime needs; the zero value of each stands for a default.
type Options struct {
	Clock   func() time.Time
	Log     *slog.Logger
	Timeout time.Duration // of one try of an action that declares none; 30 s
	Expire  time.Duration // how long a confirmation may wait; 10 min
}

// Defaults and bounds of execution.
const (
	defaultTimeout = 30 * time.Second
	defaultExpire  = 10 * time.Minute
	grace          = 5 * time.Second // for an action to end after its time is up
	maxWait        = 30 * time.Second
	maxNumber      = 200 // steps of a round, with fallbacks and consequences
	maxChain       = 4   // consequences of consequences
	maxOutput      = 64 << 10
)

// Runtime carries plans out. It holds what outlives a turn: rate limits, what
// is busy, cached results. Safe for concurrent use.
type Runtime struct {
	Options
	rates  rates
	locks  locks
	cache  cache
	strays sync.WaitGroup
}

// NewRuntime makes a Runtime.
func NewRuntime(o Options) *Runtime {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Expire == 0 {
		o.Expire = defaultExpire
	}
	return &Runtime{Options: o, cache: cache{results: recent.NewCache[string, cachedResult](maxCached / 2)}}
}

// Wait blocks until every call has ended that went on after its time was up.
// Execute must not be called any more.
func (r *Runtime) Wait() { r.strays.Wait() }

// Job is one round's plan, to be carried out.
type Job struct {
	Snapshot *Snapshot
	Turn     core.TurnID
	Round    uint16
	Plan     core.Plan  // as Check returned it
	Read     Provenance // what the plan's prompt held besides the people's own new words
	Who      Requester
	// Guard refuses a call for what the turn knows; nil: none.
	Guard    func(context.Context, *Definition, core.Call) error
	Attaches bool // questions longer than MaxQuestion can be attached as a file
	Journal  Journal
	Message  core.Message // what the turn answers: for conditions
	Answers  []string     // the platform ids of all that it answers
	State    core.State   // of the conversation, before this turn: for conditions
}

// StepResult tells what became of one step. Progress is StepResult, Failed, Skipped,
// Pending or Unknown.
type StepResult struct {
	Step     int // the number in the journal; the plan's own count from 1
	Key      core.Key
	Action   string
	Call     core.Step // as it was asked for
	Progress core.Progress
	Outcome  core.Outcome
	Output   json.RawMessage // for the model; nil: nothing worth words
	For      int             // the step that it stands in for, or follows from; 0: the plan's own
	Held     *Held           // with Pending: what is waited for
}

// Execute carries the plan out, step by step, in the order of the package doc,
// and journals each. What a former attempt finished is not done again; its
// outcome is reported as it was. The error is the journal's, or that ctx ended:
// then the turn is to be taken up again from its journal.
func (r *Runtime) Execute(ctx context.Context, j Job) ([]StepResult, error) {
	e := r.begin(j, len(j.Plan.Steps))
	for i := range e.order() {
		if _, err := e.perform(ctx, task{number: uint16(i + 1), step: j.Plan.Steps[i]}); err != nil {
			return e.done, err
		}
	}
	return e.done, nil
}

func (r *Runtime) begin(j Job, used int) *execution {
	e := &execution{Runtime: r, Job: j, last: uint16(used), results: make(map[string]any), waits: make(map[string]uint16)}
	e.log = r.Log.With("path", j.Who.Path, "turn", j.Turn.Seq)
	e.recall()
	return e
}

// execution is one run of one plan.
type execution struct {
	*Runtime
	Job
	log     *slog.Logger
	done    []StepResult
	last    uint16            // the highest number given to a step
	results map[string]any    // of actions that succeeded in this turn, decoded
	waits   map[string]uint16 // actions that wait to be confirmed, with their numbers
}

// task is one step to be performed.
type task struct {
	number uint16
	step   core.Step
	cause  uint16   // the step that it stands in for, or follows from
	way    []string // the actions that led here, through results
	unit   bool     // it is part of a unit
	agreed bool     // the person has confirmed it
	held   *Held    // it waited for a confirmation, and is taken up again
}

func (e *execution) key(number uint16) core.Key {
	return core.Key{Turn: e.Turn, Round: e.Round, Step: number}
}

// number gives a step that follows from another one its place in the journal.
// After a crash the same steps get the same numbers: whatever decided on them
// was journalled before they began.
func (e *execution) number() (uint16, bool) {
	if e.last >= maxNumber {
		return 0, false
	}
	e.last++
	return e.last, true
}

// recall takes the results of earlier rounds up, for dependencies and
// conditions.
func (e *execution) recall() {
	for round := uint16(1); round < e.Round; round++ {
		for n := uint16(1); n <= maxNumber; n++ {
			r, _ := e.Journal.Find(core.Key{Turn: e.Turn, Round: round, Step: n})
			var o core.Outcome
			if r.Progress == core.ProgressDone && json.Unmarshal(r.Data, &o) == nil {
				e.succeeded(o)
			}
		}
	}
}

// succeeded notes a result for what comes later.
func (e *execution) succeeded(o core.Outcome) {
	e.results[o.Action], _ = decode(o.Result.Output) // without an output it succeeded all the same
}

// order yields the indexes of the plan's steps: highest priority first, ties as
// written, but nothing before what it depends on.
func (e *execution) order() func(yield func(int) bool) {
	steps := e.Plan.Steps
	return func(yield func(int) bool) {
		tried := make([]bool, len(steps))
		for range steps {
			next := -1
			for i := range steps {
				if !tried[i] && (next < 0 || steps[i].Priority > steps[next].Priority) && !e.premature(i, tried) {
					next = i
				}
			}
			tried[next] = true // there is one: dependencies have no circles
			if !yield(next) {
				return
			}
		}
	}
}

// premature reports whether a step depends on another one of the plan that was
// not tried yet.
func (e *execution) premature(i int, tried []bool) bool {
	d, ok := e.Snapshot.Resolve(e.Plan.Steps[i].Type)
	if !ok {
		return false
	}
	for _, name := range d.DependsOn {
		for k := range e.Plan.Steps {
			if !tried[k] && e.Plan.Steps[k].Type == name {
				return true
			}
		}
	}
	return false
}

func (e *execution) record(k core.Key, p core.Progress, data any) core.Record {
	return core.Record{Key: k, Progress: p, Time: e.Clock(), Data: encode(data)}
}
