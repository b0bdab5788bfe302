// Package command holds what a chat command looks like to those who offer it:
// names, arguments, rank, help. Interfaces show commands in their platform's
// own way and hand a call in as a core.Event of kind core.KindCommand; what a
// command does is not their business.
package command

import "synthbot/core"

// Arg is one argument of a command.
type Arg struct {
	Name     string // [a-z0-9_]{1,32}
	Brief    string // one line under 100 characters
	Required bool
	Rest     bool     // takes the rest of the line, spaces included; the last one only
	Choices  []string // all that is allowed; empty: anything
}

// Spec is a chat command as it is offered.
type Spec struct {
	Name   string // [a-z0-9_]{1,32}
	Brief  string // one line under 100 characters, verb first
	Args   []Arg
	Rank   core.Rank         // the least rank that sees and may call it
	Briefs map[string]string // Brief in other languages, by language tag
}
