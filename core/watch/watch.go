// Package watch holds what turns report to plugins and admins: their stages, their ends, and
// traces of how they came to their answers.
package watch

import (
	"time"

	"synthbot/core"
	"synthbot/core/llm"
)

// Observer is the ability to observe how turns end. Observe returns at once.
type Observer interface {
	Observe(TurnEnd)
}

// Stage is how far a running turn is.
type Stage string

// Stages of a turn. It may go back from acting to thinking.
const (
	StageWaiting  Stage = "waiting"  // it has begun, and asks no model yet
	StageThinking Stage = "thinking" // a model is asked
	StageActing   Stage = "acting"   // its plan is carried out
	StageOver     Stage = "over"     // it no longer runs; it may be tried again
)

// TurnStage tells that a turn began, or reached another stage. It holds no texts of messages.
type TurnStage struct {
	Turn    core.TurnID
	Stage   Stage
	Began   time.Time
	Person  core.Path // as in TurnEnd
	Private bool
}

// StageObserver is the ability to observe the stages of turns. ObserveStage returns at once. In a place one turn and
// one chat command may run at the same time. The last stage is StageOver, and comes after Observer's TurnEnd.
type StageObserver interface {
	ObserveStage(TurnStage)
}

// Section is one piece of a prompt, to see where it grows.
type Section struct {
	Name    string `json:"name"`
	Size    int    `json:"size"` // characters
	Items   int    `json:"items,omitempty"`
	Dropped int    `json:"dropped,omitempty"` // items left out because the prompt was too long
}

// Ask is one question to a model.
type Ask struct {
	Round    int           `json:"round"`
	Engine   string        `json:"engine,omitempty"` // which answered
	Failed   []string      `json:"failed,omitempty"` // how the engines before it failed
	Took     time.Duration `json:"took"`
	Usage    llm.Usage     `json:"usage,omitzero"`
	Sections []Section     `json:"sections,omitempty"`
	Faults   []string      `json:"faults,omitempty"` // what was wrong with the answer
	Prompt   []PromptPart  `json:"-"`                // as the last engine got it; nil without a StageObserver
	Err      string        `json:"err,omitempty"`
}

// PromptPart is a part of a prompt, as it is sent.
type PromptPart struct {
	Name   string
	Text   string
	Stable bool // the same from turn to turn, so that a provider can cache it
}

// Trace tells how a turn came to its answer. It holds private content (Memories, Plans):
// outside of the place, only admins may see it.
type Trace struct {
	Began    time.Time     `json:"began"`
	Took     time.Duration `json:"took"`
	Thought  time.Duration `json:"thought"` // the part of Took that models took
	Asks     []Ask         `json:"asks,omitempty"`
	Memories []string      `json:"memories,omitempty"`
	Plans    []core.Plan   `json:"plans,omitempty"`
	Steps    []Step        `json:"steps,omitempty"`
}

// Step is the outcome of one action of a turn.
type Step struct {
	core.Outcome
	Progress core.Progress `json:"progress,omitempty"`
}

// TurnEnd tells that a turn is over and journalled. If Turn.Seq is 0, it tells that a
// private message or a command will have no turn.
type TurnEnd struct {
	Turn     core.TurnID
	Messages []string // the platform ids of what it answered
	Answered bool     // something was sent
	Aside    bool     // given up after too many tries
	Command  bool     // it ran a chat command; another turn of the place may still run
	GoesOn   string   // the id of the entry that lets the bot continue by itself; "": it does not
	// How the model classified the messages; "" and 0 if it did not.
	Intent     string
	Confidence float64
	Person     core.Path // who caused it; zero: the bot, or several users
	Private    bool      // of the place
	Trace      *Trace    // nil if no turn ran
	// Stale reports whether a user whom the TurnEnd concerns was forgotten since the turn began. Code that keeps a
	// TurnEnd calls it when it gets the TurnEnd, and each time that a user was forgotten. Nil: it concerns nobody.
	Stale func() bool `json:"-"`
}
