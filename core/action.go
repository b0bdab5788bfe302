package core

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// MessagePrefix begins the name of an interface's message action; the interface's name follows.
const MessagePrefix = "message_"

// Permission says who may cause an action. It is checked against the user who caused the turn.
type Permission string

// Permissions. The empty one means everyone, or admins if the action has effects outside of the conversation.
const (
	PermissionEveryone   Permission = "everyone"
	PermissionConcerned  Permission = "concerned" // the user whom Action.Concerns names
	PermissionModerators Permission = "moderators"
	PermissionAdmins     Permission = "admins"
	PermissionBot        Permission = "bot" // only turns that the bot itself began
)

// Rank returns the lowest rank that has the permission. ok is false, and the rank one that no user has, if the
// permission is unknown or does not depend on the rank.
func (p Permission) Rank() (r Rank, ok bool) {
	switch p {
	case PermissionEveryone:
		return RankMember, true
	case PermissionModerators:
		return RankModerator, true
	case PermissionAdmins:
		return RankAdmin, true
	}
	return RankBot, p == PermissionBot
}

// Busy says what happens to a second call of an action by the same user while the first one runs.
type Busy string

// Values of Busy. The empty one lets both calls run.
const (
	BusyQueue  Busy = "queue"
	BusyRefuse Busy = "refuse"
)

// RateLimit allows each user Count calls within Per; the zero value allows any number.
type RateLimit struct {
	Count int
	Per   time.Duration
}

// Effect is a set of things that an action does with what others wrote or own. An action that declares no effects is
// treated as if it had all those that restrict it.
type Effect uint16

// Effects, combined with |.
const (
	EffectNone         Effect = 1 << iota // none of the following
	EffectReadsChat                       // the output contains what users said in the bot's places
	EffectReadsForeign                    // the output contains what strangers wrote: pages, files, output of programs
	EffectFinds                           // addresses under "url" in the output come from a configured search server
	EffectRequests                        // requests the web addresses in the payload
	EffectChanges                         // deletes or changes what belongs to others, or cannot be undone
	EffectRanked                          // does more for users of a higher rank
	EffectRewrites                        // changes or deletes the message that "message_id" in the payload names
	EffectWrites                          // sends, shows or stores something
)

// effectUndeclared are the effects of an action that declares none.
const effectUndeclared = EffectReadsChat | EffectReadsForeign | EffectRequests | EffectChanges | EffectRanked |
	EffectWrites

// Examples explain an action in detail. They are shown to a model only after it made a mistake.
type Examples struct {
	Description  string       `json:"description,omitempty"`
	Instructions Instructions `json:"instructions,omitzero"`
	SideEffects  []string     `json:"side_effects,omitempty"`
	Similar      []string     `json:"similar_actions,omitempty"`
	Examples     []Example    `json:"examples,omitempty"`
}

// Note returns e with these notes.
func (e Examples) Note(notes ...string) Examples {
	e.Instructions.Notes = notes
	return e
}

// SeeAlso returns e with these similar actions.
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

// Example is one correct use of an action.
type Example struct {
	Scenario string          `json:"scenario"`
	Payload  json.RawMessage `json:"payload"`
}

// NewExample returns an example; the payload is JSON.
func NewExample(scenario, payload string) Example {
	return Example{Scenario: scenario, Payload: json.RawMessage(payload)}
}

// Action is something that the model can do: how it is described to the model, and the code that does it. Name, Brief,
// Schema and Do are required.
type Action struct {
	Name     string   // [a-z0-9_.-]{1,64}
	Similes  []string // other names that mean exactly the same
	Brief    string   // one line under 100 characters, verb first
	Schema   json.RawMessage
	Examples Examples

	Output    json.RawMessage // schema of Result.Output; nil: not checked
	DependsOn []string        // actions that must have succeeded before, in the same turn

	Effects    Effect     // what it does with what others wrote or own
	Essential  bool       // stays in a lite prompt
	External   bool       // comes from a file or another program: if names clash, those of other actions win
	Outside    bool       // has effects outside of the conversation
	Permission Permission // who may cause it
	Concerns   string     // the payload property that holds the id of the user concerned
	Confirm    bool       // the user must confirm each call

	Timeout    time.Duration // of one try of Do; 0: the runtime's default
	Retries    int           // further tries after a temporary error
	Idempotent bool          // may run again when it is unknown whether it ran
	Busy       Busy
	RateLimit  RateLimit
	Cache      time.Duration // how long a result is reused for an equal payload

	// Then returns the steps in the payload's property "then". They are checked with the call,
	// and shown if it must be confirmed. Optional.
	Then func(payload json.RawMessage) []Step
	// Check returns an error if the call makes no sense now, and so refuses it. Optional.
	Check func(context.Context, Call) error
	// Do carries out the call. It must return when its context ends.
	Do func(context.Context, Call) (Result, error)
	// Undo reverses a finished call: if a step of the same unit failed, or if the user who caused it asks for that
	// within some minutes. It does nothing if the effect of the call is already gone. Optional.
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

// Allows returns the permission that applies.
func (a *Action) Allows() Permission {
	switch {
	case a.Permission != "":
		return a.Permission
	case a.Outside:
		return PermissionAdmins
	}
	return PermissionEveryone
}

// Call is one call of an action, for one step of a plan.
type Call struct {
	Key        Key             // the step's place in the journal
	Path       Path            // where the turn takes place
	Private    bool            // that place is private
	Author     Author          // who caused the turn; without an id if nobody did, or several users
	Authors    []Author        // all who caused it
	Answers    []string        // the platform ids of the messages and commands that the turn answers
	Payload    json.RawMessage // validated, defaults applied
	Deliveries Deliveries      // journals what is sent; never nil
	Sees       []Path          // this place, and those that share with it: what was said there may be shown here
	Planned    time.Time       // when the model was asked: relative times in the payload count from then; zero: now
}

// Person returns the path of the user who caused the turn: the zero Path for the bot itself. It returns an error if
// several users did.
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

// Say returns a step that sends a text to the place of the turn.
func (c *Call) Say(text string) Step {
	payload := JSON(map[string]string{"text": text})
	return Step{Type: MessagePrefix + c.Path.Interface(), Payload: payload, Priority: DefaultPriority}
}

// Deliveries journals the messages that one step sends, so that none is sent twice.
type Deliveries interface {
	// Send calls do to send the n-th part (1, 2, …) of the step, unless the journal says that it was sent. key is the
	// same in every attempt at this part: at most 25 letters and digits, for platforms that support idempotency keys.
	// do returns the platform's id of the message. After an error, the part counts as not sent, unless do returned
	// ErrUnknownOutcome or ctx has ended; then Send returns ErrUnknownOutcome. ErrUnwritten means that do was not
	// called. A part that may have been sent is sent again by later calls, also after a restart, but only so often
	// (see Sent.MaxSends). After that, Send returns an Error of kind Unsure, and the caller sends the next part. What
	// was sent joins the history when the turn ends.
	Send(ctx context.Context, n int, what Sent, do func(ctx context.Context, key string) (id string, err error)) error

	// Since returns when an earlier attempt to send the n-th part began, if its outcome is unknown; otherwise the zero
	// time. If the platform has forgotten the key, a driver can search the messages since then for the part.
	Since(n int) time.Time
}

// SendsOn joins err, the error of sending one message of a step, to failed. It reports whether the next message is
// sent: if err is nil, or an Error of kind Unsure. Any other error ends the step.
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
	Data string    `json:"data,omitempty"` // stored with it in the log, as Event.Data
	// Repeatable means that further attempts do not send it twice: the platform recognises
	// the key, or the driver searches the messages since Deliveries.Since for it.
	Repeatable bool `json:"-"`
}

// How many attempts with an unknown outcome a message may have.
const (
	maxSends      = 3
	maxRepeatable = 20 // if it is Repeatable
)

// MaxSends returns how many attempts with an unknown outcome the message may have.
func (s Sent) MaxSends() int {
	if s.Repeatable {
		return maxRepeatable
	}
	return maxSends
}

// Result is the result of a call.
type Result struct {
	Output json.RawMessage `json:"output,omitempty"` // for the model, in a follow-up round; nil: nothing to report
	Next   []Step          `json:"next,omitempty"`   // further steps that the action asks for
	Shown  bool            `json:"shown,omitempty"`  // the user sees what was done: the bot need not mention it
	// Undo is what the action's Undo needs to know. It is stored in the journal, and nothing else reads it.
	Undo json.RawMessage `json:"undo,omitempty"`
	// Named is the call's payload with names instead of ids, for users; nil if the payload has no ids.
	Named json.RawMessage `json:"named,omitempty"`
}

// Output returns a result whose output is a value as JSON.
func Output(v any) Result { return Result{Output: JSON(v)} }

// JSON encodes a value; one that cannot be encoded becomes null.
func JSON(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSpace(b.Bytes())
}

// ErrorKind decides whether a call is tried again, whether its fallback runs, and how the error is worded.
type ErrorKind string

// Kinds of error.
const (
	Invalid   ErrorKind = "invalid"   // the payload makes no sense
	Forbidden ErrorKind = "forbidden" // this user may not do that
	Occupied  ErrorKind = "busy"      // already running, or called too often
	Temporary ErrorKind = "temporary" // may work later
	Broken    ErrorKind = "broken"    // will not work
	Unsure    ErrorKind = "unknown"   // may have worked, and must not be repeated
	Mismatch  ErrorKind = "mismatch"  // was done, but its output does not match its schema
)

// Error is an action's failure. Text is written for the user and the model; Err is for the log only.
type Error struct {
	Kind  ErrorKind
	Text  string
	After time.Duration // with Occupied and Temporary: when to try again; 0: unknown
	Err   error
}

// Errorf returns an Error with a text for the user and the model.
func Errorf(kind ErrorKind, format string, args ...any) *Error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...)}
}

func (e *Error) Error() string {
	if e.Err != nil {
		return string(e.Kind) + ": " + e.Text + ": " + e.Err.Error()
	}
	return string(e.Kind) + ": " + e.Text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
