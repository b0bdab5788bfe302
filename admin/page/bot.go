package page

import (
	"context"
	"encoding/json"
	"time"

	"synthbot/core"
	"synthbot/core/llm"
)

// Use is the use of an engine on a day. Each use is listed twice: for a place, and for the user
// who caused it.
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
	Off                            string // what turns it off; "": it is on
	Schema                         json.RawMessage
	Help                           string
	Buttons                        []Button
}

// Setting is one row of the settings in effect.
type Setting struct {
	Name, Value, From string
	Default           string // the value in all places, or of an empty configuration
	Set               string // the value as Command takes it; "" if nothing sets it
	// Command and Arg name the chat command that changes it in a place, and the argument with its
	// value; "" if none does. Choices are all that it takes; empty: any text.
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

// State is how the bot is.
type State struct {
	Version    string
	Began      time.Time
	Engines    []Part
	Interfaces []Part
	Workers    []string // the processes that use the store, if there can be several, each in words
	Failing    []string // what else fails
	Guests     []Guest  // who waits to be let in
	Asleep     []core.Path
	Spent      Spending
	Errors     int    // in the log, since the bot was started
	Used, Free uint64 // bytes of the bot's files, and free ones on their disk
}

// Part is an engine or an interface.
type Part struct {
	Name  string
	Works bool
	Text  string    // how it fails, or failed last
	Since time.Time // of Text
}

// Guest is somebody who waits to be let in.
type Guest struct {
	Person core.Path
	Name   string
}

// Spending is what all users together used today. A limit of 0 is none.
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
	Actions(place core.Path) []Action   // with what turns them off there; zero: in all places
	Rooms() []string                    // of the log
	Settings(place core.Path) []Setting // of the zero Path: the configuration
	// Lists returns what a part of the page lists; none if the plugin is off that keeps it.
	Lists(ctx context.Context, name string) ([]List, error)
	// Names returns what places and users are called, as far as it is known.
	Names(ctx context.Context, paths ...core.Path) map[core.Path]string
	// Knows reports whether there is a command of that name.
	Knows(command string) bool
	// Do carries out a chat command in a place, or one that is for buttons only, as an admin would. It
	// returns its answer. Its *core.Error is for the admin.
	Do(ctx context.Context, place core.Path, command string, args map[string]string) (string, error)
}

// Exchange is what a user said, and what was answered.
type Exchange struct{ Said, Answer string }

// Personas are the persona files of the configuration. Errors are shown to the admin.
type Personas interface {
	Files() []File
	// Preview returns the persona of a text.
	Preview(id, text string) (core.Persona, error)
	// Try lets the engines answer the last text of a conversation as the persona of a text. It
	// returns the answer and the engine's name. Nothing is stored or carried out.
	Try(ctx context.Context, id, text string, talk []Exchange) (answer, engine string, err error)
	// Import keeps a persona file or a character card of that name, and puts it in force.
	Import(name string, data []byte) (id string, err error)
	// Avatar returns the picture of a card, as PNG.
	Avatar(id string) ([]byte, error)
	// Remove removes an imported file.
	Remove(id string) error
	// Save replaces the text was, if the file still contains it, and puts the new one in force.
	Save(id, text, was string) error
}
