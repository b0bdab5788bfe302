// Package watch holds what turns report to plugins and admins: how far a turn is, that it
// is over, and how it came to its answer.
package watch

import (
	"time"

	"synthbot/core"
	"synthbot/core/llm"
)

// Observer is the ability to observe what became of turns. Observe returns at once.
type Observer interface {
	Observe(TurnEnd)
}

// Stage is how far a turn is that runs.
type Stage string

// Stages of a turn. It may go back from acting to thinking.
const (
	StageWaiting  Stage = "waiting"  // it has begun, and asks no model yet
	StageThinking Stage = "thinking" // a model is asked
	StageActing   Stage = "acting"   // its plan is carried out
	StageOver     Stage = "over"     // nothing of it runs; it may be tried again
)

// TurnStage tells that a turn began, or got to another stage. It holds nothing of what was said.
type TurnStage struct {
	Turn    core.TurnID
	Stage   Stage
	Began   time.Time
	Person  core.Path // as in TurnEnd
	Private bool
}

// StageObserver is the ability to observe what turns do while they run. ObserveStage returns
// at once. In a place one turn runs at a time, and beside it one chat command. The
// last stage is StageOver, and comes after Observer's TurnEnd.
type StageObserver interface {
	ObserveStage(TurnStage)
}

// Section is one piece of a prompt, to see where it grows.
type Section struct {
	Name    string `json:"name"`
	Size    int    `json:"size"` // characters
	Items   int    `json:"items,omitempty"`
	Dropped int    `json:"dropped,omitempty"` // items that gave way
}

// Ask is one question to a model.
type Ask struct {
	Round    int           `json:"round"`
	Engine   string        `json:"engine,omitempty"` // that answered
	Failed   []string      `json:"failed,omitempty"` // how the engines before it failed
	Took     time.Duration `json:"took"`
	Usage    llm.Usage     `json:"usage,omitzero"`
	Sections []Section     `json:"sections,omitempty"`
	Faults   []string      `json:"faults,omitempty"` // what was wrong with the answer
	Prompt   []PromptPart  `json:"-"`                // as the last engine got it; nil unless somebody watches
	Err      string        `json:"err,omitempty"`
}

// PromptPart is a part of a prompt, as it travels.
type PromptPart struct {
	Name   string
	Text   string
	Stable bool // the same from turn to turn, so that a provider can cache it
}

// Trace is how a turn came to its answer. It holds people's words (Memories,
// Plans): it is for admins, and leaves the place for nobody else.
type Trace struct {
	Began    time.Time     `json:"began"`
	Took     time.Duration `json:"took"`
	Thought  time.Duration `json:"thought"` // of it, waiting for models
	Asks     []Ask         `json:"asks,omitempty"`
	Memories []string      `json:"memories,omitempty"`
	Plans    []core.Plan   `json:"plans,omitempty"`
	Steps    []Step        `json:"steps,omitempty"`
}

// Step is what became of one action of a turn.
type Step struct {
	core.Outcome
	Progress core.Progress `json:"progress,omitempty"`
}

// TurnEnd tells that a turn is over and journalled, or, with a Turn whose Seq is
// 0, that a private message or a command will have none.
type TurnEnd struct {
	Turn     core.TurnID
	Messages []string // the platform ids of what it answered
	Answered bool     // something was sent
	Aside    bool     // given up after too many tries
	Command  bool     // it carried out a chat command; a turn of the place may go on
	GoesOn   string   // the id of the entry by which the bot goes on by itself; "": it does not
	// What the model took the messages for, as it said; "" and 0 if it did not.
	Intent     string
	Confidence float64
	Person     core.Path // who caused it; zero: the bot, or many
	Private    bool      // the place is
	Trace      *Trace    // nil where nothing was tried
	// Stale reports whether somebody whom it tells of was forgotten since the turn began. Code that keeps a TurnEnd
	// asks when it takes it, and each time that somebody was forgotten. Nil: nobody can be.
	Stale func() bool `json:"-"`
}
