package games

import (
	"fmt"
	"strings"
	"time"
)

// Config is the table [plugins.games].
type Config struct {
	PollFor time.Duration `toml:"poll_for" default:"24h" min:"1m" max:"720h" doc:"How long a poll stays open by default."`
	Keep    time.Duration `toml:"keep" default:"720h" min:"1h" max:"8760h" doc:"How long the result of a poll is kept."`
	Native  []string      `toml:"native" default:"discord:answers:hours, telegram:options" doc:"Interfaces with native polls: the interface's name, the parameter of its poll action for the options, and the one for the hours, if it has one."`
}

// Check implements the configuration's own check.
func (c *Config) Check(fault func(text string, at ...any)) {
	for i, text := range c.Native {
		if _, err := parseNative(text); err != nil {
			fault(err.Error(), "native", i)
		}
	}
}

// native says how an interface's own poll action is called.
type native struct{ iface, options, hours string }

func parseNative(text string) (native, error) {
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" || parts[1] == "" {
		return native{}, fmt.Errorf(`%q does not say how to make a poll; write it like "discord:answers:hours"`, text)
	}
	n := native{iface: parts[0], options: parts[1]}
	if len(parts) == 3 {
		n.hours = parts[2]
	}
	return n, nil
}
