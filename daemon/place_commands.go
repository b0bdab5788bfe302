package daemon

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/turn"
	"synthbot/daemon/settings"
)

// ofPlaces returns the commands of moderators, and of users in their private place.
func (b *chatCommands) ofPlaces() []command.Command {
	activations := []string{
		turn.ActivationMention, turn.ActivationKeyword, turn.ActivationAmbient, turn.ActivationAlways,
		turn.ActivationNever, settings.Default,
	}
	return []command.Command{
		{Spec: command.Spec{
			Name: "sleep", Idempotent: true, Brief: "Keep me silent here until /wake; I still listen",
		}, Do: b.asleep(true)},
		{Spec: command.Spec{Name: "wake", Idempotent: true, Brief: "Let me answer here again"}, Do: b.asleep(false)},
		{Spec: command.Spec{
			Name: "activation", Idempotent: true, Brief: "Show or change what I answer here", Rank: core.RankModerator,
			Args: []command.Arg{{Name: "what", Brief: "What I answer in this group", Choices: activations}},
		}, Do: b.activation},
	}
}

// asleep puts a place to sleep, or wakes it.
func (b *chatCommands) asleep(sleeps bool) func(context.Context, command.Call) (string, error) {
	return func(ctx context.Context, c command.Call) (string, error) {
		if !c.Private && c.Author.Rank < core.RankModerator {
			return "", core.Errorf(core.Forbidden, "Only moderators can do that here.")
		}
		err := b.changes.Change(ctx, c.Path, func(s *settings.Settings) {
			s.Asleep = nil
			if sleeps {
				s.Asleep = &sleeps
			}
		})
		if sleeps {
			return "Good night. I listen, and say nothing until somebody writes /wake.", err
		}
		return "I am awake.", err
	}
}

func (b *chatCommands) activation(ctx context.Context, c command.Call) (string, error) {
	what := c.Args["what"]
	if what != "" {
		if err := b.changes.Set(ctx, c.Path, "activation", what); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("Here I answer as `%s` says.", b.InForce().settings.At(c.Path).Activation), nil
}

// persona shows or changes the persona of a place.
func (b *chatCommands) persona(ctx context.Context, c command.Call) (string, error) {
	now := b.InForce()
	all := strings.Join(now.personas.known(), ", ")
	name := c.Args["name"]
	if name != "" {
		file, ok := now.personas.file(name)
		if !ok && name != settings.Default {
			return "", core.Errorf(core.Invalid, "There is no persona %q. There is %s.", name, all)
		}
		if name == settings.Default {
			file = name
		}
		if err := b.changes.Set(ctx, c.Path, "persona", file); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("Here I am %s. There is %s.", now.personaAt(c.Path).Name, all), nil
}

// engine shows or changes which engine is asked first in a place.
func (b *chatCommands) engine(ctx context.Context, c command.Call) (string, error) {
	now := b.InForce()
	names := now.Engines.Names()
	all, name := strings.Join(names, ", "), c.Args["name"]
	if name != "" {
		if name != settings.Default && !slices.Contains(names, name) {
			return "", core.Errorf(core.Invalid, "There is no engine %q. There is %s.", name, all)
		}
		if err := b.changes.Set(ctx, c.Path, "engine", name); err != nil {
			return "", err
		}
	}
	first := cmp.Or(now.settings.At(c.Path).Engine, names[0])
	return fmt.Sprintf("Here %s is asked first. There is %s.", first, all), nil
}

// setCommand is /set.
func (b *chatCommands) setCommand() command.Command {
	names := settings.Names[settings.Settings]()
	return command.Command{
		Spec: command.Spec{
			Name: "set", Idempotent: true, Brief: "Show or change the settings of this chat", Rank: core.RankAdmin,
			Args: []command.Arg{
				{Name: "what", Brief: "The setting; leave it out to see all", Choices: names},
				{Name: "value", Brief: "The value for this chat and its threads, or " + settings.Default, Rest: true},
			},
		}, Do: b.set,
	}
}

// set shows the settings of a place, or changes one of them.
func (b *chatCommands) set(ctx context.Context, c command.Call) (string, error) {
	what, value := c.Args["what"], c.Args["value"]
	if value != "" {
		if err := b.changes.Set(ctx, c.Path, what, value); err != nil {
			return "", err
		}
		b.reloads.settingsChanged()
	}
	var s strings.Builder
	for _, row := range b.InForce().PlaceSettings(c.Path) {
		if what == "" || what == row.Name {
			fmt.Fprintf(&s, "- %s: %s (%s)\n", row.Name, cmp.Or(row.Value, "–"), row.From)
		}
	}
	return strings.TrimSpace(s.String()), nil
}
