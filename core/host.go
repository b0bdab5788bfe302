package core

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"synthbot/core/passage"
)

// Host is what the bot lends to a plugin. All of it is there and safe for
// concurrent use, from New until the plugin's Run has returned.
type Host struct {
	Name     string           // the plugin's
	Log      *slog.Logger     // never for what people said, but at Debug
	Clock    func() time.Time // in the bot's time zone
	Language string           // the bot's, BCP 47
	Items    Items            // what the plugin keeps
	Zones    Items            // in which time zones people are; see package timezone
	Facts    Facts
	Passages passage.Index // documents by words and meaning; nil if the bot only looks at its configuration
	Inbox    Inbox         // puts reminders, beats and the like into places
	Reader   Reader        // what was said
	// Asker asks the engines within their budgets. Where the bot has no engine
	// but the built-in one, its error is ErrNoEngine.
	Asker     Asker
	Messenger Messenger
	// Speak returns a voice message that says a Markdown text in the voice of the place, within the budgets of these
	// people. Where nobody can speak, or not that text, the error's Kind is Broken or Invalid.
	Speak func(ctx context.Context, place Path, people []Path, text string) (Upload, error)
	// PDF returns the text of a PDF, which a process of its own reads within limits. Nil: PDFs cannot be read.
	PDF func(ctx context.Context, data []byte) (string, error)
	// Changed tells the bot that Actions returns another list from now on. It returns at once.
	Changed func()
}

// Reader reads what a Store holds.
type Reader interface {
	// View calls f with one consistent state. No call across a network, and no writing, belongs inside.
	View(ctx context.Context, f func(View) error) error
}

// Read returns what one View has.
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

// Messenger passes on what a plugin wants of the bot's interfaces.
type Messenger interface {
	// Tell writes to a place, or to a person in private, at once and outside of
	// any turn: at most once, and not into the history.
	Tell(ctx context.Context, to Path, text string) error
	// NotifyAdmins tells all admins. It returns at once.
	NotifyAdmins(text string)
	// SendFile sends a file into a place as a part of a step. Where the interface cannot, the error's Kind is Broken.
	SendFile(ctx context.Context, parts Deliveries, n int, what Sent, f Upload) error
	// Link returns the address of a message; "" if it has none.
	Link(place Path, id string) string
	// IsAdmin reports whether the person is one of the bot's admins.
	IsAdmin(person Path) bool
}

// Upload is a file that the bot sends.
type Upload struct {
	Name string // with its ending
	MIME string
	Data []byte
	Alt  string // says in words what a picture shows
	Kind Media  // as what it is shown
	// Length and Waveform are of sounds, if they are known: a sound with a Waveform is a voice
	// message. Its bars, 256 at most, show the loudness over time.
	Length   time.Duration
	Waveform []byte
}

// BioSource is the ability of a plugin to tell about people.
type BioSource interface {
	// Bios returns, by Author.ID, what a prompt tells of people beside their
	// names, at most 400 bytes each: only what may be shown in the scene.
	Bios(ctx context.Context, s Scene, people []Author) (map[string]json.RawMessage, error)
}

// DataKeeper is the ability of a plugin that keeps data about people elsewhere than
// under their own path in its Items.
type DataKeeper interface {
	// Kept returns what is kept about a person, as JSON objects.
	Kept(ctx context.Context, person Path) ([]json.RawMessage, error)
	// Erase takes it away.
	Erase(ctx context.Context, person Path) error
}

// Fetcher is the ability of an interface to fetch what was attached to a message.
type Fetcher interface {
	// Fetch returns the content, at most max bytes; a larger one is an error.
	Fetch(ctx context.Context, a Attachment, max int64) ([]byte, error)
}

// Finding is one thing that was looked at before the bot is let run.
type Finding struct {
	What  string // in a word or two ("identity")
	Found string // what is there ("@aria_bot")
	Fix   string // what is to be done; "": it is as it should be
	Fatal bool   // the bot cannot do without
}

// Prober is the ability of an interface to ask its platform who the bot is there, and whether it may do what it
// needs. It does not need Listen, and disturbs no bot that runs with the same account.
type Prober interface {
	Probe(ctx context.Context) []Finding
}

// Teller is the ability of an interface to write outside of any turn, to a place
// or to a person in private. It tries once, and longer texts are split.
type Teller interface {
	Tell(ctx context.Context, to Path, text string) error
}

// FileSender is the ability of an interface to send a file: as the n-th part of a
// step, through parts.Send, what.Text being its caption.
type FileSender interface {
	SendFile(ctx context.Context, parts Deliveries, n int, what Sent, f Upload) error
}
