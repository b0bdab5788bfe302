package page

import (
	"context"
	"encoding/json"
	"time"

	"synthbot/core"
	"synthbot/core/llm"
)

// Use is the usage of an engine on a day. Each use is listed twice: for its place, and for the users who caused it.
type Use struct {
	Day    string // 2006-01-02
	Whose  core.Path
	Engine string
	llm.Usage
	Cost float64
}

// Action is one row of the catalogue.
type Action struct {
	Name, Owner, Brief, Permission string
	Offered                        bool   // to users without a rank
	Off                            string // the settings that turn it off; "": it is on
	Schema                         json.RawMessage
	Help                           string
	Buttons                        []Button
}

// Setting is one row of the settings in effect.
type Setting struct {
	Name, Value, From string
	Default           string // the value in all places, or in an empty configuration
	Set               string // the value as Command takes it; "" if nothing sets it
	// Command is the chat command that changes it in a place, and Arg its argument for the value; "" if none does.
	// Choices are all possible values; empty: any text.
	Command, Arg string
	Choices      []string
}

// File is a persona file. ID is the caller's; URLs contain it.
type File struct {
	ID, Name, Path string
	Text           string // "" if it is not text
	Editable       bool   // it is text that can be written
	Imported       bool   // it was imported, and can be removed
	Avatar         bool   // it has a picture
}

// State is the state of the bot.
type State struct {
	Version    string
	Began      time.Time
	Engines    []Part
	Interfaces []Part
	Workers    []string // descriptions of the processes that use the store, if there can be several
	Failing    []string // what else fails
	Guests     []Guest  // users who wait for access
	Asleep     []core.Path
	Spent      Spending
	Errors     int    // in the log, since the bot was started
	Used, Free uint64 // bytes of the bot's files, and free ones on their disk
}

// Part is an engine or an interface.
type Part struct {
	Name  string
	Works bool
	Text  string    // why it fails, or failed last
	Since time.Time // of Text
}

// Guest is a user who waits for access.
type Guest struct {
	Person core.Path
	Name   string
}

// Spending is what all users together used today. A limit of 0 means no limit.
type Spending struct {
	Tokens, TokensLimit int64
	Cost, CostLimit     float64

	Over bool // set by the page: a limit is reached
}

// Bot is what the page shows of the bot, and what its buttons do. Safe for concurrent use.
type Bot interface {
	State(ctx context.Context) (State, error)
	Listing(ctx context.Context, l core.FactPage) (facts []core.Fact, next string, err error)
	Uses(ctx context.Context, first, last string) ([]Use, error)
	Actions(place core.Path) []Action   // in a place; the zero Path: in all places
	Rooms() []string                    // of the log
	Settings(place core.Path) []Setting // in a place; the zero Path: the whole configuration
	// Lists returns the lists of a page by its name; none if their plugin is off.
	Lists(ctx context.Context, name string) ([]List, error)
	// Names returns the known names of places and users.
	Names(ctx context.Context, paths ...core.Path) map[core.Path]string
	// Knows reports whether there is a command of that name.
	Knows(command string) bool
	// Do executes a chat command, or a command that is for buttons only, in a place with the rights of an admin.
	// It returns the answer. The admin sees a *core.Error.
	Do(ctx context.Context, place core.Path, command string, args map[string]string) (string, error)
}

// Exchange is a message and its answer.
type Exchange struct{ Said, Answer string }

// Personas are the persona files of the configuration. Errors are shown to the admin.
type Personas interface {
	Files() []File
	// Preview returns the persona of a text.
	Preview(id, text string) (core.Persona, error)
	// Try lets an engine answer the last message of a conversation as the persona of a text. It
	// returns the answer and the engine's name. Nothing is stored or executed.
	Try(ctx context.Context, id, text string, talk []Exchange) (answer, engine string, err error)
	// Import stores a persona file or a character card with a file name, and puts it in force.
	Import(name string, data []byte) (id string, err error)
	// Avatar returns the picture of a card, as PNG.
	Avatar(id string) ([]byte, error)
	// Remove removes an imported file.
	Remove(id string) error
	// Save replaces the text of a file and puts it in force, unless the file no longer contains was.
	Save(id, text, was string) error
}
