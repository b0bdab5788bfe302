package memory

import "time"

// Config is the plugin's table.
type Config struct {
	Hints        int           `toml:"hints" default:"5" min:"0" max:"8" doc:"How many memories a prompt contains at most."`
	HintChars    int           `toml:"hint_chars" default:"500" min:"100" max:"8000" doc:"The maximum length of these memories together, in characters."`
	Extract      bool          `toml:"extract" default:"true" doc:"Whether finished conversations are read again for memories, if an engine is configured. Private chats are excluded unless the user sent /extract on."`
	ExtractAfter time.Duration `toml:"extract_after" default:"15m" min:"1m" max:"24h" doc:"How long a conversation must have been silent before it is read again."`
	ExtractMin   int           `toml:"extract_min" default:"6" min:"1" max:"200" doc:"How many messages of users it must have."`
	ExtractDaily int           `toml:"extract_daily" default:"4" min:"1" max:"100" doc:"How often per day one place may be read again."`
	ExtractFacts int           `toml:"extract_facts" default:"5" min:"1" max:"20" doc:"How many memories one reading may add."`
}
