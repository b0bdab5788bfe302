package core

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Plugin is a part of the bot that offers actions. Name is unique among all plugins and interfaces. Actions may be
// asked often and from any goroutine; it returns the current list at once.
type Plugin interface {
	Name() string
	Actions() []Action
}

// Interface is a plugin through which people talk to the bot.
type Interface interface {
	Plugin
	// Listen takes events in until ctx ends or the interface cannot go on. It blocks, and owns every goroutine that
	// it starts. An event is acknowledged to the platform only after in.Receive returned nil. It returns nil when ctx
	// ended. Its actions work before, meanwhile and afterwards: turns that run when the bot stops still send.
	Listen(ctx context.Context, in Inbox) error
}

// Inbox takes in what happened on a platform.
type Inbox interface {
	// Receive appends the events in one commit and returns when they are on disk. An event whose (place, id) is known
	// already is not taken twice. After an error none of them was taken. Safe for concurrent use.
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

// Alone, embedded in a Runner, says that its work is for all processes that use the store: it runs in
// one of them at a time.
type Alone struct{}

// RunsAlone says so.
func (Alone) RunsAlone() {}

// Refresher is the ability of a plugin to read again what it keeps, of which it holds something in
// memory: another process may have changed it. Refresh returns at once.
type Refresher interface {
	Refresh()
}

// Scoper is the ability of an interface to tell to what further subtrees a place
// belongs, as a channel does to a category. Scopes returns at once what is known.
type Scoper interface {
	Scopes(place Path) []Path
}

// Namer is the ability of an interface to tell what a place or a user is called. NameOf
// returns at once what is known; "" for nothing.
type Namer interface {
	NameOf(path Path) string
}

// Reachable is the ability of an interface to tell whether it can speak in a place now, as it cannot at a terminal
// where nobody sits. Without it, it always can. What was said in a place that no interface reaches waits. Reaches
// returns at once.
type Reachable interface {
	Reaches(place Path) bool
}

// Readier is the ability of an interface to tell whether it takes messages in. Ready returns at once: nil if it does,
// else what is wrong. A short interruption counts as taking in, and so does a wait that the platform asked for.
type Readier interface {
	Ready() error
}

// ErrAway is what an interface's actions fail with where it cannot speak for a while that nobody knows: the place is
// out of reach now, or the platform refuses the bot as a whole. Nothing was sent then. A turn of that interface is
// broken off, and goes on where it stopped when the place is within reach.
var ErrAway = errors.New("out of reach")

// ErrUnknownOutcome is what a send of an interface fails with where it may have worked: its reply was lost. A
// definite refusal, such as a rate limit or a bad request, is never unknown. Deliveries counts such sends. The turn
// is broken off as with ErrAway, and sends the same part later under the same key; no model is asked because of it.
var ErrUnknownOutcome = errors.New("outcome unknown")

// RecordingIndicator is the ability of an interface to show that the bot records a voice
// message. ShowRecording blocks like ShowTyping.
type RecordingIndicator interface {
	ShowRecording(ctx context.Context, place Path)
}

// TypingIndicator is the ability of an interface to show that the bot is at work.
// ShowTyping blocks until ctx ends, and the sign is gone when it returns.
type TypingIndicator interface {
	ShowTyping(ctx context.Context, place Path)
}

// Drafter is the ability of an interface to show a message while it is being written. Draft is given the whole text
// so far; "" takes back what was shown. It returns at once, and keeps to the platform's limits by leaving texts out.
// The next message that a turn sends to the place takes the draft's place; what a chat command sends does not.
type Drafter interface {
	Draft(place Path, text string)
}

// Choice is a button under a message. Data is at most 40 characters, letters,
// digits, '.', '-' and ':'. One that Writes opens a field for an answer in words, which
// becomes the text of its press; an interface that has no such field leaves it out.
type Choice struct {
	Label, Data string
	Writes      bool
}

// Chooser is the ability of an interface to put a question with buttons. A press comes in as an event of KindPress,
// whose Target is the message's id and whose Data is the choice's; nobody can make a press up.
type Chooser interface {
	// Choose sends a message as a part of a step, through parts.Send, with a button for each choice. Its text is
	// plain, is shown just as it is, and has at most 1,000 bytes; so are those of Settle.
	Choose(ctx context.Context, parts Deliveries, what Sent, choices []Choice) error
	// Settle replaces the text of a message that Choose sent, and takes its buttons away.
	Settle(ctx context.Context, m Sent) error
	// Whisper tells something to who pressed, and to nobody else.
	Whisper(ctx context.Context, press Message, text string) error
}

// Scene is what a plugin may know about the turn that it contributes to.
type Scene struct {
	Path    Path
	Private bool
	Author  Author // who caused it; the zero Author where that is nobody or many
	Text    string // all that is said in what the turn answers, a line each
	Locale  string
	Now     time.Time
	Recent  []Entry // the place's latest, oldest first; not to be changed, and not to be read later
	Sees    []Path  // this place, and those that share with it: what was said there may be shown here
}

// Injector is the ability to put something into a prompt's context.
type Injector interface {
	// Inject returns the value of one key of the context, as compact JSON; nil
	// for nothing. The key is the plugin's name.
	Inject(ctx context.Context, s Scene) (json.RawMessage, error)
}

// Follower is the ability of a plugin to answer, without a model, those who reply to what it
// said, or press a button under it. That is the Reply of an event whose Data begins with the
// plugin's name and a colon, and each answer to a reply.
type Follower interface {
	// Follow answers a message. said is what it replies to, with the Data of the event. A zero
	// answer leaves the message to the model. It may be called again for the same message.
	Follow(ctx context.Context, m Message, said Entry) (Followed, error)
}

// Followed is the answer of a Follower.
type Followed struct {
	Text        string   // Markdown
	Suggestions []string // what may be said next, shown as buttons where the interface has them
}

// Linker is the ability of an interface to make links to messages. Link returns "" for what has none, at once.
type Linker interface {
	Link(place Path, id string) string
}

// Persona is who speaks, ready for a prompt.
type Persona struct {
	Name     string
	Aliases  []string
	Text     string // who the bot is, for the front of the instructions
	Dialogue string // example dialogue, shown only while there is room
	Greeting string
	Voice    string // the speech provider's name of its voice; "": the configuration's
}
