package core

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Errors of a Store.
var (
	ErrClosed  = errors.New("the store is closed")
	ErrLocked  = errors.New("the store is in use by another process")
	ErrFenced  = errors.New("another process has taken the store over") // of all writes of this one
	ErrDamaged = errors.New("the store is damaged")
	// ErrUnwritten is how a turn is broken off whose journal could not be written.
	ErrUnwritten = errors.New("journal not written")
	ErrFull      = errors.New("the disk is full") // of writes: all but Finishing ones are refused until there is room
)

// TurnID names a turn: the place, and the first entry that it answers.
type TurnID struct {
	Path Path   `json:"path"`
	Seq  uint64 `json:"seq"`
}

func (t TurnID) String() string { return fmt.Sprintf("%s#%d", t.Path, t.Seq) }

// Key is a place in a turn's journal. Step 0 is the round itself (its accepted
// plan), part 0 the step itself; round 0 is the turn.
type Key struct {
	Turn  TurnID `json:"turn"`
	Round uint16 `json:"round,omitempty"`
	Step  uint16 `json:"step,omitempty"`
	Part  uint16 `json:"part,omitempty"`
}

// Progress says how far what a Record stands for has come.
type Progress string

// Progress of a turn, a plan, a step or a part.
const (
	ProgressStarted  Progress = "started"  // may or may not have happened, after a crash
	ProgressDone     Progress = "done"     // finished, never to be repeated
	ProgressFailed   Progress = "failed"   // tried, and did not work
	ProgressSkipped  Progress = "skipped"  // refused, or its condition did not hold
	ProgressPending  Progress = "pending"  // waits for a person's confirmation
	ProgressTaken    Progress = "taken"    // the confirmation was used
	ProgressUnknown  Progress = "unknown"  // started before a crash, and not to be repeated
	ProgressAside    Progress = "aside"    // given up after too many tries
	ProgressAccepted Progress = "accepted" // a plan that will be carried out
)

// Record is one journalled fact. What Data holds depends on the level of the
// Key: a TurnRecord (turn), a Plan (round), an Outcome (step), a Sent (part).
type Record struct {
	Key      Key             `json:"key"`
	Progress Progress        `json:"progress"`
	Time     time.Time       `json:"time"`
	Data     json.RawMessage `json:"data,omitempty"`
}

// TurnRecord is the Data of a turn's own record. Attempts is committed before each attempt.
type TurnRecord struct {
	Last     uint64 `json:"last"` // the last entry that the turn answers
	Attempts int    `json:"attempts"`
}

// Outcome is the Data of a step's record.
type Outcome struct {
	Action string    `json:"action"`
	Result Result    `json:"result,omitzero"`
	Kind   ErrorKind `json:"kind,omitempty"`
	Text   string    `json:"text,omitempty"` // of the error, for the person and the model
	Tries  int       `json:"tries,omitempty"`
}

// Batch is what is written in one commit. The zero value writes nothing.
type Batch struct {
	// Append adds entries to the logs of their places, in order. The store sets Message.Seq of each. One whose
	// (place, id) is known is not added; its Seq is that of the entry it repeats, and Known tells.
	Append []Entry
	// Known is set by the store: for each of Append, whether it was there already.
	Known []bool
	// Begin counts the first attempt at each due entry of Append that is new and finds nothing
	// waiting in its place: the store writes the TurnRecord of a turn that answers it alone.
	Begin bool
	// Begun is set by the store: for each of Append, whether its turn was begun.
	Begun []bool
	// Change applies edits, deletions, reactions and migrations; one that finds nothing to change is not an error.
	Change []Event
	// Journal writes records; a Key's later record replaces the earlier one.
	Journal []Record
	// States replaces what the conversations in these places are about; the zero State forgets it.
	States map[Path]State
	// Answered moves the mark of each place over all due entries up to Seq, the
	// last one that its turn answered. It is not one of Append.
	Answered []TurnID
	// Settled takes the single due entries of these numbers from those that wait.
	// The mark stays where an earlier one still waits.
	Settled []TurnID
	// Closed drops the records of turns that are over, unless a step waits for a
	// confirmation: nobody asks for them any more.
	Closed []TurnID
	// Finishing says that it ends what has begun: it is written even while the disk is
	// full, in room that is kept back for it.
	Finishing bool
}

// Head is the state of a place's log.
type Head struct {
	Path     Path
	Last     uint64 // the newest entry's number; 0: none
	Count    uint64 // how many entries there are; retention and forgetting take some away
	Answered uint64 // the mark: no due entry up to here waits
	Time     time.Time
	// Private: something was said there in private once. It never ends, whatever
	// is said there later, and whatever is pruned.
	Private bool
}

// View reads one consistent state. Entries come oldest first. A place that moved is read where it is now, under both
// of its paths. A View is valid only inside of the function that got it, and in its goroutine.
type View interface {
	// Head returns the state of a place; the zero Head with its Path where nothing was ever said.
	Head(place Path) (Head, error)
	// Places lists the places at or below root, in the order of their paths.
	Places(root Path) ([]Head, error)
	// Waiting lists the places that hold due entries behind their mark.
	Waiting() ([]Path, error)
	// Due returns a place's first waiting entries, at most max.
	Due(place Path, max int) ([]Entry, error)
	// Entry finds an entry by its platform id.
	Entry(place Path, id string) (Entry, bool, error)
	// After returns the entries with a number above seq, at most max. They may overwrite those of into.
	After(place Path, seq uint64, max int, into []Entry) ([]Entry, error)
	// Last returns the n newest entries of a place.
	Last(place Path, n int) ([]Entry, error)
	// Recent returns the n newest entries by time of all places at or below
	// root for which keep returns true; a nil keep means all of them.
	Recent(root Path, n int, keep func(Path) bool) ([]Entry, error)
	// State tells what the conversation in a place is about.
	State(place Path) (State, error)
	// Journal returns a turn's records in the order of their keys.
	Journal(turn TurnID) ([]Record, error)
}

// Store is the durable memory of the bot. Safe for concurrent use.
type Store interface {
	// Commit writes the batch, whole or not at all, and returns when it is on
	// disk. Batches that wait at the same time share one sync.
	Commit(ctx context.Context, b *Batch) error
	// View calls f with one consistent state. No call across a network belongs inside.
	View(ctx context.Context, f func(View) error) error
	// Epoch is that of Facts.
	Epoch() uint64
	// Forgotten reports whether one of these people or places, or a place above
	// one, was forgotten after the epoch of the context began, or is being forgotten.
	Forgotten(ctx context.Context, paths ...Path) bool
	// Installation is a random text that belongs to what is stored, and stays as long.
	// A store that was restored has another one: it gives numbers once more.
	Installation() string
	// Close waits for what is being written.
	Close() error
}
