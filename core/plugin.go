package core

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Plugin is a part of the bot that offers actions. Name is unique among all
// plugins and interfaces. Actions may be asked often and from any goroutine;
// it returns the current list at once.
type Plugin interface {
	Name() string
	Actions() []Action
}

// Interface is a plugin through which people talk to the bot.
type Interface interface {
	Plugin
	// Listen takes events in until ctx ends or the interface cannot go on. It
	// blocks, and owns every goroutine that it starts. An event is acknowledged
	// to the platform only after in.Receive returned nil. It returns nil when ctx
	// ended. Its actions work before, meanwhile and afterwards: turns that run
	// when the bot stops still send.
	Listen(ctx context.Context, in Inbox) error
}

// Inbox takes in what happened on a platform.
type Inbox interface {
	// Receive appends the events in one commit and returns when they are on
	// disk. An event whose (place, id) is known already is not taken twice.
	// After an error none of them was taken. Safe for concurrent use.
	Receive(ctx context.Context, events ...Event) error
}

// ErrBadEvent is what Receive fails with where an event can never be taken in. Any
// other error says nothing about the events: they are to be handed in again.
var ErrBadEvent = errors.New("bad event")

// Runner is the ability of a plugin to work in the background. Run blocks until
// ctx ends and everything it started has ended; then it returns nil.
type Runner interface {
	Run(ctx context.Context) error
}

// Scoper is the ability of an interface to tell to what further subtrees a place
// belongs, as a channel does to a category. Scopes returns at once what is known.
type Scoper interface {
	Scopes(place Path) []Path
}

// Reacher is the ability of an interface to tell whether it can speak in a place
// now, as it cannot at a terminal where nobody sits. Without it, it always can.
// What was said in a place that no interface reaches waits. Reaches returns at
// once.
type Reacher interface {
	Reaches(place Path) bool
}

// Readier is the ability of an interface to tell whether it takes messages in. Ready
// returns at once: nil if it does, else what is wrong. A short interruption counts as
// taking in, and so does a wait that the platform asked for.
type Readier interface {
	Ready() error
}

// ErrAway is what an interface's actions fail with where it cannot speak for a
// while that nobody knows: the place is out of reach now, or the platform refuses
// the bot as a whole. Nothing was sent then. A turn of that interface is broken
// off, and goes on where it stopped when the place is within reach.
var ErrAway = errors.New("out of reach")

// ErrUnknownOutcome is what a send of an interface fails with where it may have
// worked: its reply was lost. A definite refusal, such as a rate limit or a bad
// request, is never unknown. Parts counts such sends. The turn is broken off as with
// ErrAway, and sends the same part later under the same key; no model is asked
// because of it.
var ErrUnknownOutcome = errors.New("outcome unknown")

// Thinker is the ability of an interface to show that the bot is at work.
// Think blocks until ctx ends, and the sign is gone when it returns.
type Thinker interface {
	Think(ctx context.Context, place Path)
}

// Drafter is the ability of an interface to show a message while it is being
// written. Draft is given the whole text so far; "" takes back what was shown.
// It returns at once, and keeps to the platform's limits by leaving texts out.
// The next message that a turn sends to the place takes the draft's place; what is
// sent Beside it does not.
type Drafter interface {
	Draft(place Path, text string)
}

// Choice is a button under a message. Data is at most 40 characters, letters,
// digits, '.', '-' and ':'.
type Choice struct{ Label, Data string }

// Chooser is the ability of an interface to put a question with buttons. A press
// comes in as an event of KindPress, whose Target is the message's id and whose
// Data is the choice's; nobody can make a press up.
type Chooser interface {
	// Choose sends a message as a part of a step, through parts.Send, with a
	// button for each choice. Its text is plain, is shown just as it is, and has at
	// most 1,000 bytes; so are those of Settle.
	Choose(ctx context.Context, parts Parts, what Sent, choices []Choice) error
	// Settle replaces the text of a message that Choose sent, and takes its
	// buttons away.
	Settle(ctx context.Context, m Sent) error
	// Whisper tells something to who pressed, and to nobody else.
	Whisper(ctx context.Context, press Message, text string) error
}

// Observer is the ability to be told what became of turns. Observe returns at
// once.
type Observer interface {
	Observe(TurnEnd)
}

// Stage is how far a turn is that runs.
type Stage string

// Stages of a turn. It may go back from acting to thinking.
const (
	Waiting  Stage = "waiting"  // it has begun, and asks no model yet
	Thinking Stage = "thinking" // a model is asked
	Acting   Stage = "acting"   // its plan is carried out
	Over     Stage = "over"     // nothing of it runs; it may be tried again
)

// TurnStage tells that a turn began, or got to another stage. It holds nothing
// of what was said.
type TurnStage struct {
	Turn    TurnID
	Stage   Stage
	Began   time.Time
	Person  Path // as in TurnEnd
	Private bool
}

// Watcher is the ability to be told what turns do while they run. Watch returns
// at once. In a place one turn runs at a time, and beside it one chat command. The
// last stage is Over, and comes after Observer's TurnEnd.
type Watcher interface {
	Watch(TurnStage)
}

// Lasting is the ability of an Injector whose value holds for a while: it is not
// asked again in the same place for the same person before that time is over, or
// somebody was forgotten.
type Lasting interface {
	Lasts() time.Duration
}

// Section is one piece of a prompt, for whoever wants to see where it grows.
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
	Took     time.Duration `json:"took"`
	Usage    Usage         `json:"usage,omitzero"`
	Sections []Section     `json:"sections,omitempty"`
	Faults   []string      `json:"faults,omitempty"` // what was wrong with the answer
	Err      string        `json:"err,omitempty"`
}

// Trace is how a turn came to its answer. It holds people's words (Memories,
// Plans): it is for admins, and leaves the place for nobody else.
type Trace struct {
	Began    time.Time     `json:"began"`
	Took     time.Duration `json:"took"`
	Thought  time.Duration `json:"thought"` // of it, waiting for models
	Asks     []Ask         `json:"asks,omitempty"`
	Memories []string      `json:"memories,omitempty"`
	Plans    []Plan        `json:"plans,omitempty"`
	Steps    []Outcome     `json:"steps,omitempty"`
}

// TurnEnd tells that a turn is over and journalled, or, with a Turn whose Seq is
// 0, that a private message or a command will have none.
type TurnEnd struct {
	Turn     TurnID
	Messages []string // the platform ids of what it answered
	Answered bool     // something was sent
	Aside    bool     // given up after too many tries
	Command  bool     // it carried out a chat command; a turn of the place may go on
	GoesOn   string   // the id of the entry by which the bot goes on by itself; "": it does not
	// What the model took the messages for, as it said; "" and 0 if it did not.
	Intent     string
	Confidence float64
	Person     Path   // who caused it; zero: the bot, or many
	Private    bool   // the place is
	Trace      *Trace // nil where nothing was tried
	// Stale reports whether somebody whom it tells of was forgotten since the turn
	// began. Whoever keeps a TurnEnd asks when he takes it, and each time that
	// somebody was forgotten. Nil: nobody can be.
	Stale func() bool `json:"-"`
}

// Scene is what a plugin may know about the turn that it contributes to.
type Scene struct {
	Path    Path
	Private bool
	Author  Author // who caused it; the zero Author where that is nobody or many
	Text    string // all that is said in what the turn answers, a line each
	Locale  string
	Now     time.Time
	Recent  []Entry // the place's latest, oldest first; not to be changed
	Sees    []Path  // this place, and those that share with it: what was said there may be told here
}

// Injector is the ability to put something into a prompt's context.
type Injector interface {
	// Inject returns the value of one key of the context, as compact JSON; nil
	// for nothing. The key is the plugin's name.
	Inject(ctx context.Context, s Scene) (json.RawMessage, error)
}

// HintKind sorts what a Recon contributes.
type HintKind string

// Kinds of hint.
const (
	Snippet          HintKind = "snippet"
	Instruction      HintKind = "instruction"
	LanguageHint     HintKind = "language_hint"
	MessageTone      HintKind = "tone_hint"
	ConversationTone HintKind = "conversation_tone_hint"
	MemoryHint       HintKind = "memory"
)

// Hint is one contribution of a Recon; among hints of a kind the highest
// priority wins.
type Hint struct {
	Kind     HintKind
	Text     string
	Priority int
}

// Recon is the ability to say something about a message before it is answered.
type Recon interface {
	Recon(ctx context.Context, s Scene) ([]Hint, error)
}

// Persona is who speaks, ready for a prompt.
type Persona struct {
	Name     string
	Aliases  []string
	Text     string // who the bot is, for the front of the instructions
	Dialogue string // example dialogue, told only while there is room
	Greeting string
}
