package daemon

import (
	"synthbot/core/command"
)

// commands are all chat commands: the bot's own and those of plugins.
func (b *Bot) commands(c *Config, plugins []loaded) (*command.Registry, error) {
	claim, err := b.claim.commands(c)
	if err != nil {
		return nil, err
	}
	users := &userCommands{inForce: b.InForce, data: b.PersonalData()}
	places := &placeCommands{inForce: b.InForce, changes: b.changes, reloads: b.reloads}
	admins := &adminCommands{bot: b, places: places}
	lists := [][]command.Command{users.list(), places.list(), admins.list(), claim}
	for _, l := range plugins {
		if c, ok := l.Plugin.(command.Commander); ok {
			lists = append(lists, c.Commands())
		}
	}
	r, err := command.New(lists...)
	if err != nil {
		return nil, UsageError{err}
	}
	return r, nil
}
