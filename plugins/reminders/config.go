package reminders

import "time"

// Config is the table [plugins.reminders].
type Config struct {
	PerPerson int           `toml:"per_person" default:"50" min:"1" max:"10000" doc:"How many pending reminders one user may have."`
	MaxText   int           `toml:"max_text" default:"500" min:"10" max:"4000" doc:"The maximum length of a reminder, in characters."`
	MaxAhead  time.Duration `toml:"max_ahead" default:"43920h" min:"24h" max:"438000h" doc:"How far ahead a reminder may be, and the longest interval of a recurring one."`
	Late      time.Duration `toml:"late" default:"2m" min:"1s" max:"24h" doc:"The delay from which on a reminder says that it is late."`
}
