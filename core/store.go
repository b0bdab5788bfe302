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
	ErrFenced  = errors.New("another process has taken the store over") // returned by all writes of this process
	ErrDamaged = errors.New("the store is damaged")
	// ErrUnwritten stops a turn if its journal could not be written.
	ErrUnwritten = errors.New("journal not written")
	ErrFull      = errors.New("the disk is full") // returned by writes, except for Finishing ones, until there is room
)

// TurnID identifies a turn: the place, and the first entry that it answers.
type TurnID struct {
	Path Path   `json:"path"`
	Seq  uint64 `json:"seq"`
}

func (t TurnID) String() string { return fmt.Sprintf("%s#%d", t.Path, t.Seq) }

// Key identifies a record in a turn's journal. Round 0 is the turn itself, step 0 the
// round itself (its accepted plan), and part 0 the step itself.
type Key struct {
	Turn  TurnID `json:"turn"`
	Round uint16 `json:"round,omitempty"`
	Step  uint16 `json:"step,omitempty"`
	Part  uint16 `json:"part,omitempty"`
}

// Progress is the state of a turn, a plan, a step or a part.
type Progress string

// Values of Progress.
const (
	ProgressStarted  Progress = "started"  // after a crash, it may or may not have happened
	ProgressDone     Progress = "done"     // finished, must not be repeated
	ProgressFailed   Progress = "failed"   // tried, and did not work
	ProgressSkipped  Progress = "skipped"  // refused, or its condition did not hold
	ProgressPending  Progress = "pending"  // waits for the user's confirmation
	ProgressTaken    Progress = "taken"    // the confirmation was used
	ProgressUnknown  Progress = "unknown"  // may have happened before a crash, must not be repeated
	ProgressAside    Progress = "aside"    // given up after too many attempts
	ProgressAccepted Progress = "accepted" // a plan that will be carried out
)

// Record is one record of a journal. What Data holds depends on the level of the
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
	// Askers are the ids of the users who asked for what the turn decides. It answers them, too.
	Askers []string `json:"askers,omitempty"`
}

// Outcome is the Data of a step's record.
type Outcome struct {
	Action string    `json:"action"`
	Result Result    `json:"result,omitzero"`
	Kind   ErrorKind `json:"kind,omitempty"`
	Text   string    `json:"text,omitempty"` // of the error, for the user and the model
	Tries  int       `json:"tries,omitempty"`
}

// Batch is what is written in one commit. The zero value writes nothing.
type Batch struct {
	// Append adds entries to the logs of their places, in order. The store sets Message.Seq of each. An entry whose
	// (place, id) is known is not added; it gets the Seq of the known one.
	Append []Entry
	// Known is set by the store: for each of Append, whether it was known.
	Known []bool
	// Begin makes the store begin turns: for each due entry of Append that is new and finds nothing waiting
	// in its place, it writes the TurnRecord of the first attempt of a turn that answers only this entry.
	Begin bool
	// Begun is set by the store: for each of Append, whether its turn was begun.
	Begun []bool
	// Change applies edits, deletions, reactions and migrations. An event that finds nothing to change is not an error.
	Change []Event
	// Journal writes records; a record replaces an earlier one with the same Key.
	Journal []Record
	// States replaces the States of these places; the zero State deletes it.
	States map[Path]State
	// Answered moves the answered mark of each place to Seq, the last entry that the turn answered.
	// That entry is not one of Append.
	Answered []TurnID
	// Settled marks single due entries, with these numbers, as no longer waiting. The answered
	// mark does not move past an earlier entry that still waits.
	Settled []TurnID
	// Closed deletes the records of turns that have ended, unless a step waits for a confirmation.
	Closed []TurnID
	// Finishing means that the batch ends something that has begun. It is written even if the
	// disk is full, into space that is reserved for such batches.
	Finishing bool
}

// Head is the state of a place's log.
type Head struct {
	Path     Path
	Last     uint64 // the newest entry's number; 0: none
	Count    uint64 // how many entries there are; retention and forgetting delete some
	Answered uint64 // the answered mark: no due entry up to here waits
	Time     time.Time
	// Private means that at least one message there was private. It stays set, even if that message is deleted.
	Private bool
}

// View reads one consistent state. Entries are in order, oldest first. A place that moved is found under its old path,
// too. A View is valid only in the function that got it, and in its goroutine.
type View interface {
	// Head returns the state of a place; if it has no entries, a Head with nothing but its Path.
	Head(place Path) (Head, error)
	// Places lists the places at or below root, in the order of their paths.
	Places(root Path) ([]Head, error)
	// Waiting lists the places with due entries after their answered mark.
	Waiting() ([]Path, error)
	// Due returns a place's first waiting entries, at most max.
	Due(place Path, max int) ([]Entry, error)
	// Entry finds an entry by its platform id. Entries from before a move are found only under their old path.
	Entry(place Path, id string) (Entry, bool, error)
	// After returns the entries with a number above seq, at most max. It may use the memory of into for them.
	After(place Path, seq uint64, max int, into []Entry) ([]Entry, error)
	// Last returns the n newest entries of a place.
	Last(place Path, n int) ([]Entry, error)
	// Recent returns the n newest entries by time of all places at or below
	// root for which keep returns true; a nil keep means all of them.
	Recent(root Path, n int, keep func(Path) bool) ([]Entry, error)
	// State returns what the conversation in a place is about.
	State(place Path) (State, error)
	// Journal returns a turn's records in the order of their keys.
	Journal(turn TurnID) ([]Record, error)
}

// Store is the durable memory of the bot. Safe for concurrent use.
type Store interface {
	// Commit writes the batch atomically, and returns when it is on disk. Batches that
	// wait at the same time share one sync.
	Commit(ctx context.Context, b *Batch) error
	// View calls f with one consistent state. f must not use the network.
	View(ctx context.Context, f func(View) error) error
	// Epoch is that of Facts.
	Epoch() uint64
	// Forgotten reports whether one of these users or places, or a place above
	// one, was forgotten after the epoch of the context began, or is being forgotten.
	Forgotten(ctx context.Context, paths ...Path) bool
	// Installation returns a random text that identifies the stored data. It changes when
	// a backup is restored, because the store then gives the same numbers a second time.
	Installation() string
	// Close waits for writes in progress.
	Close() error
}
