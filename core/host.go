package core

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"synthbot/core/llm"
	"synthbot/core/passage"
)

// Host is what the bot offers to a plugin. All of it can be used, also concurrently,
// from New until the plugin's Run has returned.
type Host struct {
	Name     string           // the plugin's
	Log      *slog.Logger     // logs what users said only at debug level
	Clock    func() time.Time // in the bot's time zone
	Language string           // the bot's, BCP 47
	Items    Items            // the plugin's own values
	Zones    Items            // the users' time zones; see package timezone
	Facts    Facts
	Passages passage.Index // finds passages of documents by words and meaning; nil if only the configuration is checked
	Inbox    Inbox         // receives the plugin's events, such as reminders
	Reader   Reader        // reads what was said
	// Asker asks the engines within their budgets. If the built-in engine is the only one, it returns ErrNoEngine.
	Asker     Asker
	Messenger Messenger
	// Speak turns a Markdown text into a voice message with the voice of the place, within the budgets of these users.
	// If speech is not available, or not for that text, the error's Kind is Broken or Invalid.
	Speak func(ctx context.Context, place Path, people []Path, text string) (Upload, error)
	// PDF returns the text of a PDF. A separate process reads it, within limits. Nil: PDFs cannot be read.
	PDF func(ctx context.Context, data []byte) (string, error)
	// Changed tells the bot that the list of Actions has changed. It returns at once.
	Changed func()
}

// Reader reads what a Store holds.
type Reader interface {
	// View calls f with one consistent state. f must not use the network or write to the store.
	View(ctx context.Context, f func(View) error) error
}

// Read returns what read returns for one View.
func Read[T any](ctx context.Context, r Reader, read func(View) (T, error)) (value T, err error) {
	err = r.View(ctx, func(v View) (err error) {
		value, err = read(v)
		return err
	})
	return value, err
}

// ReadEntry returns the entry with an id of a place. ok is false if there is none.
func ReadEntry(ctx context.Context, r Reader, place Path, id string) (e Entry, ok bool, err error) {
	err = r.View(ctx, func(v View) (err error) {
		e, ok, err = v.Entry(place, id)
		return err
	})
	if err != nil {
		return e, false, fmt.Errorf("message %s of %s: %w", id, place, err)
	}
	return e, ok, nil
}

// Question is a request to a language model.
type Question struct {
	Path   Path   // the place
	People []Path // the users who caused it, who share its cost equally; none: the bot itself
	// Behind, if set, returns the other users who wait for its answer, because their messages in the
	// place are answered after it. It is safe for concurrent use.
	Behind func() []Path
	// Unshown means that neither a draft of the answer nor a typing indicator is shown, because
	// the turn may send nothing at all.
	Unshown bool
	// Build returns the request for an engine with these limits. It is called for each engine that is tried.
	Build func(llm.Limits) (llm.Request, error)
}

// ErrNoEngine is returned by Ask if there is no engine that could be asked.
var ErrNoEngine = errors.New("no engine is configured")

// Asker answers a Question with the first engine that can.
type Asker interface {
	Ask(ctx context.Context, q Question) (llm.Answer, error)
}

// Messenger lets a plugin use the bot's interfaces.
type Messenger interface {
	// Tell sends a text to a place, or to a user in private, outside of any turn. It sends it
	// at most once, and does not add it to the history.
	Tell(ctx context.Context, to Path, text string) error
	// NotifyAdmins sends a text to all admins. It returns at once.
	NotifyAdmins(text string)
	// SendFile sends a file to a place, as the n-th part of a step. If the interface cannot, the error is Broken.
	SendFile(ctx context.Context, parts Deliveries, n int, what Sent, f Upload) error
	// Link returns the address of a message; "" if it has none.
	Link(place Path, id string) string
	// IsAdmin reports whether the user is one of the bot's admins.
	IsAdmin(person Path) bool
}

// Upload is a file that the bot sends.
type Upload struct {
	Name string // with its extension
	MIME string
	Data []byte
	Alt  string // describes a picture
	Kind Media  // how it is shown
	// Length and Waveform are set for sounds, if known. A sound with a Waveform is a voice
	// message. Each byte, of 256 at most, is the loudness at one moment.
	Length   time.Duration
	Waveform []byte
}

// BioSource is implemented by plugins that describe users in a prompt.
type BioSource interface {
	// Bios returns JSON about users, by Author.ID, at most 400 bytes each. It must hold
	// only what may be shown in the scene.
	Bios(ctx context.Context, s Scene, people []Author) (map[string]json.RawMessage, error)
}

// DataKeeper is implemented by plugins that store data about users elsewhere than
// under the users' paths in their Items.
type DataKeeper interface {
	// Kept returns what is stored about a user, as JSON objects.
	Kept(ctx context.Context, person Path) ([]json.RawMessage, error)
	// Erase deletes it.
	Erase(ctx context.Context, person Path) error
}

// Fetcher is implemented by interfaces that can fetch the attachments of messages.
type Fetcher interface {
	// Fetch returns the content, at most max bytes; a larger one is an error.
	Fetch(ctx context.Context, a Attachment, max int64) ([]byte, error)
}

// Finding is the result of one check that is made before the bot runs.
type Finding struct {
	What  string // in a word or two ("identity")
	Found string // what is there ("@aria_bot")
	Fix   string // what the admin should do; "": nothing
	Fatal bool   // the bot cannot run without the fix
}

// Prober is implemented by interfaces that can ask their platform who the bot is there, and whether it has the
// permissions that it needs. Probe works without Listen, and does not disturb a running bot with the same account.
type Prober interface {
	Probe(ctx context.Context) []Finding
}

// Teller is implemented by interfaces that can send a text outside of any turn, to a place or
// to a user in private. Tell makes one attempt, and splits long texts.
type Teller interface {
	Tell(ctx context.Context, to Path, text string) error
}

// FileSender is implemented by interfaces that can send files. SendFile sends one with the caption
// what.Text, through parts.Send as the n-th part of a step.
type FileSender interface {
	SendFile(ctx context.Context, parts Deliveries, n int, what Sent, f Upload) error
}
