package core

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// MessagePrefix begins the name of an interface's message action; the interface's name follows.
const MessagePrefix = "message_"

// Permission says who may cause an action. It is checked against the person who caused the turn.
type Permission string

// Permissions. An empty one means everyone, or admins where the action has effects outside of the conversation.
const (
	PermissionEveryone   Permission = "everyone"
	PermissionConcerned  Permission = "concerned" // the person whom Action.Concerns names
	PermissionModerators Permission = "moderators"
	PermissionAdmins     Permission = "admins"
	PermissionBot        Permission = "bot" // nobody but the bot's own turns
)

// Busy says what becomes of a second call of an action by the same person while the first one runs.
type Busy string

// Ways to treat a call that finds its action busy; an empty one lets it run, too.
const (
	BusyQueue  Busy = "queue"
	BusyRefuse Busy = "refuse"
)

// RateLimit allows Count calls within Per for each person; the zero value allows any number.
type RateLimit struct {
	Count int
	Per   time.Duration
}

// Effect says what an action has to do with other people's words and things. An action declares its effects; one that
// declares none is treated as if it had all of those that restrict it.
type Effect uint16

// Effects, to be joined with |.
const (
	EffectNone         Effect = 1 << iota // none of the following
	EffectReadsChat                       // the output holds what people of the bot's places said
	EffectReadsForeign                    // the output holds what strangers wrote: pages, files, answers of programs
	EffectFinds                           // addresses under "url" in the output come from a configured search server
	EffectRequests                        // requests the web addresses in the payload
	EffectChanges                         // deletes or changes what belongs to others, or cannot be taken back
	EffectRanked                          // does more for people of a higher rank
	EffectRewrites                        // changes or deletes the message that "message_id" in the payload names
	EffectWrites                          // sends, shows or stores something
)

// effectUndeclared is what an action is treated as that declares nothing.
const effectUndeclared = EffectReadsChat | EffectReadsForeign | EffectRequests | EffectChanges | EffectRanked |
	EffectWrites

// Examples is the third tier of an action: shown to a model only after it made a mistake.
type Examples struct {
	Description  string       `json:"description,omitempty"`
	Instructions Instructions `json:"instructions,omitzero"`
	SideEffects  []string     `json:"side_effects,omitempty"`
	Similar      []string     `json:"similar_actions,omitempty"`
	Examples     []Example    `json:"examples,omitempty"`
}

// Note returns the same with these notes.
func (e Examples) Note(notes ...string) Examples {
	e.Instructions.Notes = notes
	return e
}

// SeeAlso returns the same with these similar actions.
func (e Examples) SeeAlso(similar ...string) Examples {
	e.Similar = similar
	return e
}

// Instructions tell a model how to use an action.
type Instructions struct {
	WhenToUse      string   `json:"when_to_use,omitempty"`
	CommonPitfalls []string `json:"common_pitfalls,omitempty"`
	Notes          []string `json:"notes,omitempty"`
}

// Example is one right use of an action.
type Example struct {
	Scenario string          `json:"scenario"`
	Payload  json.RawMessage `json:"payload"`
}

// NewExample returns an example; the payload is JSON.
func NewExample(scenario, payload string) Example {
	return Example{Scenario: scenario, Payload: json.RawMessage(payload)}
}

// Action is what the model reads and what is done, as one value. Name, Brief, Schema and Do are required.
type Action struct {
	Name     string   // [a-z0-9_.-]{1,64}
	Similes  []string // other names that mean exactly the same
	Brief    string   // one line under 100 characters, verb first
	Schema   json.RawMessage
	Examples Examples

	Output    json.RawMessage // schema of Result.Output; nil: not checked
	DependsOn []string        // actions that must have succeeded before, in the same turn

	Effects    Effect     // what it has to do with others
	Essential  bool       // stays in a lite prompt
	External   bool       // comes from a file or another program: its names give way to those of other actions
	Outside    bool       // has effects outside of the conversation
	Permission Permission // who may cause it
	Concerns   string     // the payload property that holds the id of the person concerned
	Confirm    bool       // the person is asked first

	Timeout    time.Duration // of one try of Do; 0: the runtime's default
	Retries    int           // further tries after a temporary error
	Idempotent bool          // may run again when it is unknown whether it ran
	Busy       Busy
	RateLimit  RateLimit
	Cache      time.Duration // how long a result may serve an equal payload again

	// Then returns the steps that a call asks for, which are its property "then". They are
	// checked with the call, and shown if it has to be confirmed. Optional.
	Then func(payload json.RawMessage) []Step
	// Check says whether the call makes sense now; an error refuses it. Optional.
	Check func(context.Context, Call) error
	// Do carries the call out. It must end when its context does.
	Do func(context.Context, Call) (Result, error)
	// Undo takes a finished call back: when a unit that it belongs to failed, or when who caused it wants that within
	// some minutes. It does nothing if nothing is left of the call. Optional.
	Undo func(context.Context, Call, Result) error
}

// IsMessage reports whether the action sends a message in its interface.
func (a *Action) IsMessage() bool { return strings.HasPrefix(a.Name, MessagePrefix) }

// Has reports whether the action has one of the effects.
func (a *Action) Has(effects Effect) bool {
	if a.Effects == 0 {
		return effectUndeclared&effects != 0
	}
	return a.Effects&effects != 0
}

// ReadOnly reports whether the action changes nothing, in the conversation or elsewhere.
func (a *Action) ReadOnly() bool {
	return !a.Outside && !a.Has(EffectWrites|EffectChanges|EffectRewrites)
}

// Allows is the permission in force.
func (a *Action) Allows() Permission {
	switch {
	case a.Permission != "":
		return a.Permission
	case a.Outside:
		return PermissionAdmins
	}
	return PermissionEveryone
}

// Call is one step of a plan on its way to an action.
type Call struct {
	Key        Key             // the step's place in the journal
	Path       Path            // where the turn takes place
	Private    bool            // that place is private
	Author     Author          // who caused the turn; without an id where that is nobody or several
	Authors    []Author        // all who caused it
	Answers    []string        // the platform ids of what the turn answers
	Payload    json.RawMessage // validated, defaults applied
	Deliveries Deliveries      // journals what is sent; never nil
	Sees       []Path          // this place, and those that share with it: what was said there may be shown here
	Planned    time.Time       // when the plan was asked for: times in the payload are meant as of then; zero: now
}

// Person is who caused the turn: the zero Path for the bot itself, and an error for several.
func (c *Call) Person() (Path, error) {
	if c.Author.Rank == RankBot {
		return Path{}, nil
	}
	if c.Author.ID == "" {
		const text = "several people spoke at once; it can be done when one of them asks for it alone"
		return Path{}, Errorf(Forbidden, text)
	}
	return c.Path.Person(c.Author.ID)
}

// Say is the step that sends a text to where the turn takes place.
func (c *Call) Say(text string) Step {
	payload := JSON(map[string]string{"text": text})
	return Step{Type: MessagePrefix + c.Path.Interface(), Payload: payload, Priority: DefaultPriority}
}

// Deliveries journals the messages that one step sends, so that none is sent twice.
type Deliveries interface {
	// Send calls do for the n-th part (1, 2, …) of the step, unless the journal holds it as sent. key is the same
	// whenever this part is tried (at most 25 characters, letters and digits): platforms that know idempotency keys
	// get it. do returns the platform's id of the message; its error comes back as it is. The part then counts as not
	// sent, unless the error is ErrUnknownOutcome or ctx has ended; with ErrUnwritten it was not tried. A part that
	// may have been sent is sent again when the step is taken up, at most twice over all lives (see Sent.Repeatable);
	// after that Send fails with an Error that is Unsure, and the rest of the step is sent all the same. What was
	// sent joins the history when the turn ends.
	Send(ctx context.Context, n int, what Sent, do func(ctx context.Context, key string) (id string, err error)) error

	// Since is when an earlier attempt began to send the n-th part, where nobody knows whether that worked; else the
	// zero time. Once a platform has forgotten the key, it can be asked whether the part is there since.
	Since(n int) time.Time
}

// SendsOn adds the error of one message of a step to those before, and reports whether the next one is sent. It is
// after one of which nobody will know whether it arrived (an Error that is Unsure); any other error ends the step.
func SendsOn(failed *error, err error) bool {
	*failed = errors.Join(*failed, err)
	e, ok := errors.AsType[*Error](err)
	return err == nil || ok && e.Kind == Unsure
}

// Sent is a message that the bot put into a place.
type Sent struct {
	Path Path      `json:"path"`
	ID   string    `json:"id,omitempty"` // the platform's
	Text string    `json:"text"`
	Time time.Time `json:"time,omitzero"`
	Data string    `json:"data,omitempty"` // what the log keeps with it, as Event.Data
	// Repeatable says that sending it again does no harm: the platform knows the
	// key, or the driver looks for what is there since Deliveries.Since.
	Repeatable bool `json:"-"`
}

// How often a message may be sent without knowing what became of it. The second bound is
// for a platform that takes it once however often it is sent.
const (
	maxSends      = 3
	maxRepeatable = 20
)

// MaxSends is how often the message may be sent without knowing what became of it.
func (s Sent) MaxSends() int {
	if s.Repeatable {
		return maxRepeatable
	}
	return maxSends
}

// Result is what came of a call.
type Result struct {
	Output json.RawMessage `json:"output,omitempty"` // for the model, in a follow-up round; nil: nothing worth words
	Next   []Step          `json:"next,omitempty"`   // further actions that this one asks for
	Shown  bool            `json:"shown,omitempty"`  // who asked sees what was done: nothing need be said of it
	// Undo is what the action's Undo has to know. It is journalled, and nobody else reads it.
	Undo json.RawMessage `json:"undo,omitempty"`
	// Named is the call's payload with names instead of ids, for users; nil: that has none.
	Named json.RawMessage `json:"named,omitempty"`
}

// Output returns a result whose output is a value as JSON.
func Output(v any) Result { return Result{Output: JSON(v)} }

// ErrorKind decides on retry, fallback and wording.
type ErrorKind string

// Kinds of error.
const (
	Invalid   ErrorKind = "invalid"   // the payload makes no sense
	Forbidden ErrorKind = "forbidden" // this person may not
	Occupied  ErrorKind = "busy"      // already running, or too often
	Temporary ErrorKind = "temporary" // may work later
	Broken    ErrorKind = "broken"    // will not work
	Unsure    ErrorKind = "unknown"   // may have worked, and is not to be repeated
	Mismatch  ErrorKind = "mismatch"  // was done, but what it returned breaks its own schema
)

// Error is an action's failure. Text is written for the person and the model; Err is for the log only.
type Error struct {
	Kind  ErrorKind
	Text  string
	After time.Duration // with Occupied and Temporary: when to try again; 0: unknown
	Err   error
}

// Errorf makes an Error with a text for people.
func Errorf(kind ErrorKind, format string, args ...any) *Error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...)}
}

func (e *Error) Error() string {
	if e.Err != nil {
		return string(e.Kind) + ": " + e.Text + ": " + e.Err.Error()
	}
	return string(e.Kind) + ": " + e.Text
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }
