package beats

import (
	"fmt"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/txt"
)

// Config is the table [plugins.beats].
type Config struct {
	Beats    []Beat        `toml:"beat" doc:"Something that the bot does on its own, and when."`
	PerPlace int           `toml:"per_place" default:"3" min:"1" max:"100" doc:"How many beats one place gets per day at most."`
	PerDay   int           `toml:"per_day" default:"100" min:"1" max:"100000" doc:"How many beats all places together get per day at most."`
	Night    string        `toml:"night" default:"22:00-08:00" doc:"When the bot writes to nobody, in the place's time zone; none: no such time." example:"23:00-07:30"`
	Silence  time.Duration `toml:"silence" default:"15m" min:"1m" max:"24h" doc:"How long a place must have been silent before a beat begins there."`
}

// Beat is one thing that the bot does on its own account.
type Beat struct {
	Name    string        `toml:"name" required:"true" example:"good-morning" doc:"Its name: a-z, 0-9, - and _."`
	Kind    string        `toml:"kind" default:"outreach" oneof:"outreach|internal" doc:"outreach: it may write to users who agreed; internal: for the bot itself, invisible to users."`
	At      []string      `toml:"at" example:"09:00, 18:30" doc:"The times of day, in the place's time zone; or set every."`
	Every   time.Duration `toml:"every" example:"6h" min:"0s" max:"8760h" doc:"The interval, at least 15m; or set at."`
	Days    []string      `toml:"days" example:"mon, thu" doc:"The days of the week: mon, tue, wed, thu, fri, sat, sun; empty: all."`
	Prompt  string        `toml:"prompt" required:"true" example:"Ask how everybody is, in one short line, or let it be." doc:"The instruction for the model."`
	Places  []core.Path   `toml:"places" example:"telegram/-1001234567890" doc:"The places, with all places below them. Empty: for outreach, places with /beats on; for internal, places where something was said since. A place that is listed itself needs no /beats on."`
	After   time.Duration `toml:"after" default:"24h" min:"0s" max:"8760h" doc:"For outreach: how long the place must have been silent."`
	Actions []string      `toml:"actions" example:"diary_*" doc:"The actions that it may use, by name or pattern. Empty: outreach sends messages, internal uses diary and memories."`
	Speak   bool          `toml:"speak" default:"false" doc:"Lets an internal beat write to users as well; the rules for outreach then apply."`
}

// Kinds of beat.
const (
	kindOutreach = "outreach"
	kindInternal = "internal"
)

const leastEvery = 15 * time.Minute

var beatName = txt.Pattern(`^[a-z0-9_-]{1,32}$`)

// Check implements the configuration's own check.
func (c *Config) Check(fault func(text string, at ...any)) {
	if _, err := readNight(c.Night); err != nil {
		fault(err.Error(), "night")
	}
	seen := make(map[string]bool)
	for i := range c.Beats {
		b := &c.Beats[i]
		b.check(func(text string, at ...any) { fault(text, append([]any{"beat", i}, at...)...) })
		if seen[b.Name] {
			fault("there are two beats of that name", "beat", i, "name")
		}
		seen[b.Name] = true
	}
}

func (b *Beat) check(fault func(text string, at ...any)) {
	if !beatName().MatchString(b.Name) {
		fault("a name is of a-z, 0-9, - and _, at most 32 letters", "name")
	}
	if (b.Every > 0) == (len(b.At) > 0) {
		fault(`give either at or every`, "at")
	}
	if b.Every > 0 && b.Every < leastEvery {
		fault(fmt.Sprintf("that is too often; at least %s", leastEvery), "every")
	}
	for i, text := range b.At {
		if _, err := readClock(text); err != nil {
			fault(err.Error(), "at", i)
		}
	}
	for i, text := range b.Days {
		if _, err := readDay(text); err != nil {
			fault(err.Error(), "days", i)
		}
	}
	action.CheckPatterns(b.Actions, fault, "actions")
}
