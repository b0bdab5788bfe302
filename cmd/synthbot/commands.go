package main

import (
	"context"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/command"
)

// commands are all chat commands: the bot's own and those of plugins.
func (b *bot) commands(plugins []loaded) (*command.Registry, error) {
	lists := [][]command.Command{b.own()}
	for _, l := range plugins {
		if c, ok := l.Plugin.(command.Commander); ok {
			lists = append(lists, c.Commands())
		}
	}
	r, err := command.New(lists...)
	if err != nil {
		return nil, usage{err}
	}
	return r, nil
}

// own are the bot's own commands.
func (b *bot) own() []command.Command {
	return slices.Concat([]command.Command{
		{Spec: command.Spec{Name: "help", Brief: "Tell what you can say to me", Briefs: map[string]string{
			"it": "Dice che cosa puoi chiedermi", "de": "Sagt, was du mir sagen kannst", "fr": "Dit ce que vous pouvez me demander", "es": "Dice lo que puedes pedirme",
		}}, Do: b.help},
	})
}

// help lists the commands that are open to who asks.
func (b *bot) help(_ context.Context, c command.Call) (string, error) {
	b.mu.Lock()
	commands := b.parts.commands
	b.mu.Unlock()
	var s strings.Builder
	for _, spec := range commands.Specs(c.Author.Rank) {
		if !spec.Private || c.Private {
			s.WriteString("/" + spec.Name + " – " + briefIn(spec, c.Locale) + "\n")
		}
	}
	return strings.TrimSpace(s.String()), nil
}

// briefIn is the brief in somebody's language, where there is one.
func briefIn(s command.Spec, locale string) string {
	language, _, _ := strings.Cut(locale, "-")
	if brief := s.Briefs[language]; brief != "" {
		return brief
	}
	return s.Brief
}

var _ core.Gate = (*overlay)(nil)
