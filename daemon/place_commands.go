package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/turn"
)

// usual takes back what was changed by command.
const usual = "default"

// forKeepers are the commands by which a place is looked after: by its moderators,
// and in private by the person himself.
func (b *Bot) forKeepers() []command.Command {
	return []command.Command{
		{Spec: command.Spec{Name: "sleep", Idempotent: true, Brief: "Let me listen here without answering, until /wake"}, Do: b.asleep(true)},
		{Spec: command.Spec{Name: "wake", Idempotent: true, Brief: "Let me answer here again"}, Do: b.asleep(false)},
		{Spec: command.Spec{Name: "activation", Idempotent: true, Brief: "Show or change what I answer here", Rank: core.Moderator,
			Args: []command.Arg{{Name: "what", Brief: "What I answer in this group", Choices: []string{turn.OnMention, turn.OnKeyword, turn.Ambient, turn.Always, turn.Never, usual}}},
		}, Do: b.activation},
	}
}

// asleep puts a place to sleep, or wakes it.
func (b *Bot) asleep(sleeps bool) func(context.Context, command.Call) (string, error) {
	return func(ctx context.Context, c command.Call) (string, error) {
		if !c.Private && c.Author.Rank < core.Moderator {
			return "", core.Errorf(core.Forbidden, "Only moderators can do that here.")
		}
		err := b.overlay.change(ctx, c.Path, func(x *changed) {
			if x.Asleep = nil; sleeps {
				x.Asleep = &sleeps
			}
		})
		if sleeps {
			return "Good night. I listen, and say nothing until somebody writes /wake.", err
		}
		return "I am awake.", err
	}
}

func (b *Bot) activation(ctx context.Context, c command.Call) (string, error) {
	what := c.Args["what"]
	if what != "" {
		err := b.overlay.change(ctx, c.Path, func(x *changed) {
			if x.Activation = &what; what == usual {
				x.Activation = nil
			}
		})
		if err != nil {
			return "", err
		}
	}
	now := b.settings(b.InForce().Config, c.Path).Activation
	return fmt.Sprintf("Here I answer as `%s` says.", now), nil
}

// persona shows or changes who the bot is in a place.
func (b *Bot) persona(ctx context.Context, c command.Call) (string, error) {
	p := b.InForce()
	if name := c.Args["name"]; name != "" {
		file, ok := p.cast.file(name)
		if !ok && name != usual {
			return "", core.Errorf(core.Invalid, "There is no persona %q. There is %s.", name, strings.Join(p.cast.known(), ", "))
		}
		err := b.overlay.change(ctx, c.Path, func(x *changed) {
			if x.Persona = &file; name == usual {
				x.Persona = nil
			}
		})
		if err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("Here I am %s. There is %s.", b.castAt(p, c.Path).Name, strings.Join(p.cast.known(), ", ")), nil
}

// engine shows or changes which engine is asked first in a place.
func (b *Bot) engine(ctx context.Context, c command.Call) (string, error) {
	p := b.InForce()
	names := p.Engines.Names()
	if name := c.Args["name"]; name != "" {
		if name != usual && !slices.Contains(names, name) {
			return "", core.Errorf(core.Invalid, "There is no engine %q. There is %s.", name, strings.Join(names, ", "))
		}
		err := b.overlay.change(ctx, c.Path, func(x *changed) {
			if x.Engine = &name; name == usual {
				x.Engine = nil
			}
		})
		if err != nil {
			return "", err
		}
	}
	first := b.prefer(p.Config, c.Path)
	if first == "" {
		first = names[0]
	}
	return fmt.Sprintf("Here %s is asked first. There is %s.", first, strings.Join(names, ", ")), nil
}
