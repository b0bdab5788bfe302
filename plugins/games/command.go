package games

import (
	"context"
	"strings"

	"synthbot/core"
	"synthbot/core/command"
)

// pollCommand starts a poll without a model. Where the platform has polls of its
// own, those are for it, and a command cannot make them.
func (p *Plugin) pollCommand(ctx context.Context, c command.Call) (string, error) {
	if _, ok := p.native[c.Path.Interface()]; ok && !c.Private {
		return "", core.Errorf(core.Invalid,
			"There are polls of its own here: start one from the menu, or ask me for one in your words.")
	}
	payload := readPollText(c.Args["poll"])
	if len(payload.Options) < 2 {
		return "", core.Errorf(core.Invalid, "Write it like `/poll When do we play? Friday | Saturday | Sunday`.")
	}
	if err := payload.check(); err != nil {
		return "", err
	}
	made, err := p.open(ctx, core.Call{Path: c.Path, Private: c.Private, Author: c.Author}, payload)
	if err != nil {
		return "", err
	}
	core.Notify(p.wake)
	return made.shown(), nil
}

// readPollText reads "Question? one | two", "Question | one | two", and the same a
// line each.
func readPollText(text string) (c createPayload) {
	parts := strings.FieldsFunc(text, func(r rune) bool { return r == '|' || r == '\n' })
	for _, part := range parts {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		if c.Question != "" {
			c.Options = append(c.Options, part)
			continue
		}
		question, first, asks := strings.Cut(part, "? ")
		c.Question = question
		if asks {
			c.Question += "?"
		}
		first = strings.TrimSpace(first)
		if first != "" {
			c.Options = append(c.Options, first)
		}
	}
	return c
}
