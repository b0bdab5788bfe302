package games

import (
	"math/rand/v2"
	"sync"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/command"
)

// Plugin is the plugin. Safe for concurrent use.
type Plugin struct {
	host   core.Host
	config Config
	pick   func(n int) int // a number below n
	wake   chan struct{}   // a poll was made

	mu sync.Mutex // held while votes and polls change
}

// New makes the plugin.
func New(h core.Host, c Config) (*Plugin, error) {
	return &Plugin{host: h, config: c, pick: rand.IntN, wake: make(chan struct{}, 1)}, nil
}

// Name implements core.Plugin.
func (p *Plugin) Name() string { return p.host.Name }

// Actions implements core.Plugin.
func (p *Plugin) Actions() []core.Action {
	return []core.Action{
		action.Typed(diceAction, p.rollDice),
		action.Typed(choiceAction, p.choose),
		p.createAction(),
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
			Name: "poll", Brief: "Start a poll in this place",
			Args: []command.Arg{{Name: "poll", Brief: "When do we play? Friday | Saturday | Sunday", Required: true,
				Rest: true}},
		}, Do: p.pollCommand},
		{Spec: command.Spec{
			Name: "vote", Idempotent: true, Brief: "Vote in a poll",
			Args: []command.Arg{{Name: "choice", Brief: "The option's number or words; with several polls the poll's" +
				" number first", Required: true, Rest: true}},
		}, Do: p.voteCommand},
		{Spec: command.Spec{Name: "polls", Idempotent: true, Brief: "Show the polls of this place"},
			Do: p.pollsCommand},
	}
}
