package lorebook

import (
	"synthbot/core"
	"synthbot/core/lore"
)

// Config is the table [plugins.lorebook].
type Config struct {
	Sources   []Source `toml:"book" doc:"A lorebook in addition to that of the persona's card."`
	Depth     int      `toml:"depth" default:"4" min:"1" max:"50" doc:"How many of the latest messages are searched for keys, unless the book says otherwise."`
	Budget    int      `toml:"budget" default:"400" min:"20" max:"1000" doc:"How much of a book a prompt contains at most, in tokens. A book can say less."`
	Rounds    int      `toml:"rounds" default:"3" min:"0" max:"10" doc:"How often entries that were found are searched for further keys, in recursive books."`
	WordsOnly bool     `toml:"words_only" default:"false" doc:"Whether keys match whole words only. Otherwise they match parts of words, as most books expect."`

	// Dir is what relative paths are relative to; "": the working directory.
	Dir string
	// Cards are the books of the personas' own cards.
	Cards []Card
}

// Source is a book in a file.
type Source struct {
	Path   string      `toml:"path" required:"true" example:"lore/harbour.json" doc:"A character card or lorebook (.json), relative to the configuration file."`
	Places []core.Path `toml:"places" example:"discord/81384788765712384" doc:"The places where it is used, with all places below them; empty: everywhere."`
}

// Card is what a persona brings along, for the places at or below Path. Of
// several, the one with the longest path counts.
type Card struct {
	Path core.Path
	Char string // what {{char}} stands for
	Book Book   // without entries: the persona has none
}

// The parts of a book are defined in core.
type (
	Book  = lore.Book
	Entry = lore.Entry
)
