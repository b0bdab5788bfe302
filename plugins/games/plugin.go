// Package games contains dice, random choices and polls. It keeps no scores and has no turn-based games.
//
// # Polls
//
// If an interface has native polls ([Config].Native), poll_create passes the poll on to it. Elsewhere, and in private,
// the bot counts the votes. A poll is an item of its place, and a vote an item of its voter, so that each user has one
// vote, can see it, and erases it with /forgetme. Users vote with the command vote, or by telling the bot, whose model
// then calls poll_vote. A poll ends at its time, or when its maker or a moderator closes it. At its time, a turn
// announces the result. The numbers are kept for Config.Keep.
package games

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/command"
)

// Plugin is the plugin. Safe for concurrent use.
type Plugin struct {
	core.Alone
	host   core.Host
	config Config
	pick   func(n int) int // returns a random number from 0 to n-1
	wake   chan struct{}   // holds a token if a poll was made

	mu sync.Mutex // held while votes and polls change
}

func New(h core.Host, c Config) (*Plugin, error) {
	return &Plugin{host: h, config: c, pick: rand.IntN, wake: make(chan struct{}, 1)}, nil
}

func (p *Plugin) Name() string { return p.host.Name }

func (p *Plugin) Actions() []core.Action {
	create := action.Typed(createAction, p.create)
	create.Undo = p.undoCreate
	return []core.Action{
		action.Typed(diceAction, p.rollDice),
		action.Typed(choiceAction, p.choose),
		create,
		action.Typed(voteAction, p.castVote),
		action.Typed(closeAction, p.closePoll),
	}
}

// Commands implements command.Commander.
func (p *Plugin) Commands() []command.Command {
	return []command.Command{
		{Spec: command.Spec{
			Name: "roll", Idempotent: true, Brief: "Roll dice, like 2d6+3",
			Args: []command.Arg{{Name: "dice", Brief: "What to roll: 1d6 if left out", Rest: true}},
		}, Do: p.rollCommand},
		{Spec: command.Spec{
			Name: "poll", Brief: "Start a poll in this place", Form: pollForm,
			Args: []command.Arg{{Name: "poll", Brief: "When do we play? Friday | Saturday | Sunday", Required: true,
				Rest: true}},
		}, Do: p.pollCommand},
		{Spec: command.Spec{
			Name: "vote", Idempotent: true, Brief: "Vote in a poll", Form: "[POLL] OPTION",
			Args: []command.Arg{{Name: "option", Brief: "Its number or its words, like 2 or Saturday; if several" +
				" polls are open, the poll's number first", Required: true, Rest: true}},
		}, Do: p.voteCommand},
		{Spec: command.Spec{Name: "polls", Idempotent: true, Brief: "Show the polls of this place"},
			Do: p.pollsCommand},
	}
}

// Config is the table [plugins.games].
type Config struct {
	PollFor time.Duration `toml:"poll_for" default:"24h" min:"1m" max:"720h" doc:"How long a poll stays open by default."`
	Keep    time.Duration `toml:"keep" default:"720h" min:"1h" max:"8760h" doc:"How long the result of a poll is kept."`
	Native  []string      `toml:"native" default:"discord:answers:hours, telegram:options" doc:"Interfaces with native polls: the interface's name, the parameter of its poll action for the options, and the one for the hours, if it has one."`
}

func (c *Config) Check(fault func(text string, at ...any)) {
	for i, text := range c.Native {
		if _, err := parseNative(text); err != nil {
			fault(err.Error(), "native", i)
		}
	}
}

// native contains the parameters of an interface's native poll action.
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
