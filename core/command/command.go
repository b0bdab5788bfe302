// Package command is the registry of chat commands: their names, who may call them, how
// their arguments are read, and what they do. Interfaces show commands in their platform's
// way and report a call as a core.Event of kind core.KindCommand; turns carry it out.
package command

import (
	"context"

	"synthbot/core"
)

// Arg is one argument of a command.
type Arg struct {
	Name     string // [a-z0-9_]{1,32}
	Brief    string // one line under 100 characters
	Required bool
	Rest     bool     // takes the rest of the line, spaces included; the last one only
	Choices  []string // all that is allowed; empty: anything
	Implied  string   // the choice that is meant if the word is none of them and belongs to the next argument
}

// Spec is a chat command as it is offered.
type Spec struct {
	Name    string // [a-z0-9_]{1,32}
	Brief   string // one line under 100 characters, verb first
	Args    []Arg
	Form    string            // how usage shows the arguments; "": by their names
	Rank    core.Rank         // the lowest rank that sees the command and may call it
	Private bool              // only in private places: its answer is for one user
	Open    bool              // users whom gates do not admit may call it, too
	Briefs  map[string]string // Brief in other languages, by language tag
	// Idempotent commands run again after a crash. After other ones, the answer is that nobody knows whether they ran.
	Idempotent bool
}

// Command is a Spec and the code that runs it.
type Command struct {
	Spec
	// Do carries out the call and returns the answer, as Markdown. It may run at the same time as
	// a turn of the place. A *core.Error is shown to the user, any other error is logged.
	Do func(ctx context.Context, c Call) (string, error)
}

// Call is one use of a command. Its author has the rank that the Spec asks for.
type Call struct {
	Path    core.Path
	Private bool
	Author  core.Author
	Person  core.Path // the author's
	Locale  string
	Args    map[string]string // by Arg.Name
	Target  string            // the id of the message that it was called on or replied to; "": none
	Writer  core.Author       // who wrote that message, if the platform says so
	Foreign []core.Foreign    // the foreign texts of the message that called it
	Sees    []core.Path       // this place, and those that share with it
	// Attach adds a file to the answer. If the interface cannot send files, the answer says so.
	Attach func(core.Upload)
	// Noted receives what NoteDone notes; it may be nil.
	Noted func(core.Step, core.Result)
}

// NoteDone notes that the call did the same as a call of an action, so that /undo can undo it.
func (c *Call) NoteDone(action string, payload any, done core.Result) {
	if c.Noted != nil {
		c.Noted(core.Step{Type: action, Payload: core.JSON(payload)}, done)
	}
}

// Commander is implemented by plugins that offer commands. Commands always returns the same list.
type Commander interface {
	Commands() []Command
}

type contextKey struct{}

// Context marks the context of a chat command. A command may run at the same time as a turn of
// its place, whose draft must stay.
func Context(ctx context.Context) context.Context { return context.WithValue(ctx, contextKey{}, true) }

// IsContext reports whether the context is that of a chat command.
func IsContext(ctx context.Context) bool { return ctx.Value(contextKey{}) != nil }
