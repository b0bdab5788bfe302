package core

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Plugin is a part of the bot that offers actions. Name is unique among all plugins and interfaces. Actions is called
// often and concurrently; it returns the current list at once.
type Plugin interface {
	Name() string
	Actions() []Action
}

// Interface is a plugin through which people talk to the bot.
type Interface interface {
	Plugin
	// Listen passes events to in until ctx ends, and then returns nil, or until the interface cannot continue. It
	// blocks, and waits for every goroutine that it starts. An event is acknowledged to the platform only after
	// in.Receive has returned nil. The actions also work before and after Listen: turns that run when the bot stops
	// still send.
	Listen(ctx context.Context, in Inbox) error
}

// Inbox receives what happens on a platform.
type Inbox interface {
	// Receive appends the events in one commit and returns when they are on disk. It ignores an event whose
	// (place, id) is known. After an error, none of the events is stored. Safe for concurrent use.
	Receive(ctx context.Context, events ...Event) error
}

// ErrBadEvent is returned by Receive if an event can never be stored. After any
// other error, the caller tries again with the same events.
var ErrBadEvent = errors.New("bad event")

// Runner is implemented by plugins that work in the background. Run blocks until
// ctx ends and everything that it started has ended; then it returns nil.
type Runner interface {
	Run(ctx context.Context) error
}

// Alone, embedded in a Runner, means that it works for all processes that use the store, and runs in
// only one of them at a time.
type Alone struct{}

// RunsAlone marks the Runner.
func (Alone) RunsAlone() {}

// Refresher is implemented by plugins that hold some of their stored values in memory. Refresh makes
// them read these again, because another process may have changed them. It returns at once.
type Refresher interface {
	Refresh()
}

// Scoper is implemented by interfaces whose places belong to further subtrees, as channels
// belong to categories. Scopes returns at once what is known.
type Scoper interface {
	Scopes(place Path) []Path
}

// Namer is implemented by interfaces that know the names of places or users. NameOf returns
// at once; "" if the name is unknown.
type Namer interface {
	NameOf(path Path) string
}

// Reachable is implemented by interfaces that sometimes cannot send to a place, such as a terminal that nobody uses.
// Other interfaces always can. Messages in a place that no interface reaches wait. Reaches returns at once.
type Reachable interface {
	Reaches(place Path) bool
}

// Readier is implemented by interfaces that know whether they receive messages. Ready returns at once: nil if they
// do, otherwise what is wrong. Short interruptions and pauses that the platform asked for are not errors.
type Readier interface {
	Ready() error
}

// ErrAway is returned by an interface's actions if nothing can be sent for an unknown time: the place cannot be
// reached, or the platform refuses the bot altogether. Nothing was sent then. If it is the turn's own interface, the
// turn stops, and continues from there when the place can be reached again.
var ErrAway = errors.New("out of reach")

// ErrUnknownOutcome is returned by an interface that may have sent a message, because the platform's reply was lost. A
// definite refusal, such as a rate limit or a bad request, is never unknown. Deliveries counts such attempts. The turn
// stops as with ErrAway, and sends the same part later with the same key; no model is asked because of it.
var ErrUnknownOutcome = errors.New("outcome unknown")

// RecordingIndicator is implemented by interfaces that can show that the bot records a voice
// message. ShowRecording blocks like ShowTyping.
type RecordingIndicator interface {
	ShowRecording(ctx context.Context, place Path)
}

// TypingIndicator is implemented by interfaces that can show that the bot is typing.
// ShowTyping blocks until ctx ends, and has removed the indicator when it returns.
type TypingIndicator interface {
	ShowTyping(ctx context.Context, place Path)
}

// Drafter is implemented by interfaces that can show a message while it is being written. Draft gets the whole text
// so far; "" deletes the draft. It returns at once, and skips texts to stay within the platform's limits. The next
// message that a turn sends to the place replaces the draft; a message of a chat command does not.
type Drafter interface {
	Draft(place Path, text string)
}

// Choice is a button under a message. Data has at most 40 letters, digits, '.', '-' and ':'.
// If Writes is set, the button opens a text field, whose content becomes the text of the
// press; interfaces without such fields omit the button.
type Choice struct {
	Label, Data string
	Writes      bool
}

// Chooser is implemented by interfaces that can ask a question with buttons. A press arrives as an event of KindPress,
// with the message's id as its Target and the choice's Data. Users cannot forge one.
type Chooser interface {
	// Choose sends a message with a button for each choice, through parts.Send as a part of a step. Its text is
	// shown as it is, without markup, and has at most 1,000 bytes; the same holds for Settle.
	Choose(ctx context.Context, parts Deliveries, what Sent, choices []Choice) error
	// Settle replaces the text of a message that Choose sent, and removes its buttons.
	Settle(ctx context.Context, m Sent) error
	// Whisper shows a text only to the user who pressed a button.
	Whisper(ctx context.Context, press Message, text string) error
}

// Scene is what a plugin may know about the turn that it contributes to.
type Scene struct {
	Path    Path
	Private bool
	Author  Author // who caused it; the zero Author if nobody did, or several users
	Text    string // the texts that the turn answers, one on each line
	Locale  string
	Now     time.Time
	Recent  []Entry // the place's latest, oldest first; read-only, and valid only during the call
	Sees    []Path  // this place, and those that share with it: what was said there may be shown here
}

// Injector is implemented by plugins that add something to a prompt's context.
type Injector interface {
	// Inject returns the value of one key of the context, as compact JSON; nil
	// for nothing. The key is the plugin's name.
	Inject(ctx context.Context, s Scene) (json.RawMessage, error)
}

// Follower is implemented by plugins that answer, without a model, users who reply to one of their
// messages or press a button under it. A message is a plugin's if it is the Reply of an event whose
// Data begins with the plugin's name and a colon, or the plugin's answer to a reply to such a message.
type Follower interface {
	// Follow answers a message. said is what it replies to, with the Data of the event. A zero
	// answer leaves the message to the model. It may be called again for the same message.
	Follow(ctx context.Context, m Message, said Entry) (Followed, error)
}

// Followed is the answer of a Follower.
type Followed struct {
	Text        string   // Markdown
	Suggestions []string // what the user may say next, shown as buttons if the interface supports that
}

// Linker is implemented by interfaces that can link to messages. Link returns at once; "" if there is no link.
type Linker interface {
	Link(place Path, id string) string
}

// Persona is the bot's character, ready for a prompt.
type Persona struct {
	Name     string
	Aliases  []string
	Text     string // who the bot is, for the front of the instructions
	Dialogue string // example dialogue, shown only while there is room
	Greeting string
	Voice    string // the speech provider's name of the voice; "": the configured one
}
