// Package diary lets the bot keep a diary: what happened in a place, how it felt about it, and
// private thoughts. Facts belong to package memory, bios to package people.
//
// # Storage
//
// A day is an item under its place's path, with the day's entries and, later, their digest. The origin of an entry is
// its place. It is shown there and below, and in places that share with it, but nowhere else.
//
// # Private thoughts
//
// They never leave the diary. A view of a day, from which all prompts, commands and exports are made, has no field for
// them. Their only use is the digest: a model that reads them may answer only with a mood, one word of a fixed list.
// The text of the digest is requested separately, without them.
//
// # Digests
//
// The action diary_digest, for the bot's own beats only, puts a day into a few sentences. Without a configured engine,
// the shortened summaries are the digest. Prompts show the digest of a day instead of its entries.
//
// # Users
//
// An entry lists the users that it names or that caused it, by path, so that they can see the
// entries about them and erase them: entries about them alone are deleted, their names are
// removed from the others, and digests of such days are deleted.
package diary

import (
	"synthbot/core"
	"synthbot/core/action"
)

// Plugin keeps the bot's diary. Safe for concurrent use.
type Plugin struct {
	host   core.Host
	config Config
}

func New(h core.Host, c Config) (*Plugin, error) { return &Plugin{host: h, config: c}, nil }

func (p *Plugin) Name() string { return "diary" }

func (p *Plugin) Actions() []core.Action {
	write := action.Typed(writeAction, p.write)
	write.Undo = action.Undo(p.undoWrite)
	return []core.Action{write, action.Typed(digestAction, p.digest)}
}

const (
	summaryMax = 400 // characters
	thoughtMax = 400
	wordMax    = 32 // characters of a feeling or a tag
	nameMax    = 64
)

// Config is the plugin's table.
type Config struct {
	Daily int `toml:"daily" default:"12" min:"1" max:"100" doc:"How many entries per day the diary of one place may have."`
	Days  int `toml:"days" default:"3" min:"0" max:"14" doc:"How many past days of the diary a prompt contains; 0: none."`
	Bytes int `toml:"bytes" default:"800" min:"100" max:"2000" doc:"How much of the diary a prompt contains at most, in bytes."`
	Keep  int `toml:"keep" default:"365" min:"7" max:"36500" doc:"How many days the diary is kept."`
}
