package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"synthbot/core"
)

// effective prints the settings that hold in a place, and where each comes from.
func (b *bot) effective(p *program, place core.Path) error {
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SETTING\tVALUE\tFROM")
	b.eachInEffect(place, func(name, value, from string) { fmt.Fprintf(w, "%s\t%s\t%s\n", name, value, from) })
	return w.Flush()
}

// eachInEffect calls row for each setting that holds in a place.
func (b *bot) eachInEffect(place core.Path, row func(name, value, from string)) {
	c := b.inForce().config
	s := b.settings(c, place)
	row("persona", b.castAt(b.inForce(), place).Name, b.from(c, place, "persona.path",
		func(o *Override) bool { return o.Persona != "" }, func(x changed) bool { return x.Persona != nil }))
	engine := b.prefer(c, place)
	if engine == "" {
		engine = b.inForce().engines.Names()[0]
	}
	row("engine", engine, b.from(c, place, "the first engine",
		func(o *Override) bool { return o.Engine != "" }, func(x changed) bool { return x.Engine != nil }))
	row("activation", s.Activation, b.from(c, place, "bot.activation",
		func(o *Override) bool { return o.Activation != nil }, func(x changed) bool { return x.Activation != nil }))
	asleep, _, _ := b.overlay.at(place, func(x changed) bool { return x.Asleep != nil })
	row("asleep", fmt.Sprint(asleep.Asleep != nil && *asleep.Asleep), b.from(c, place, "-",
		func(*Override) bool { return false }, func(x changed) bool { return x.Asleep != nil }))
	never := func(changed) bool { return false }
	row("keywords", strings.Join(s.Keywords, ", "), b.from(c, place, "bot.keywords", func(o *Override) bool { return len(o.Keywords) > 0 }, never))
	row("observe", fmt.Sprint(!s.Blind), b.from(c, place, "bot.observe", func(o *Override) bool { return o.Observe != nil }, never))
	row("bots", fmt.Sprint(s.Bots), b.from(c, place, "bot.bots", func(o *Override) bool { return o.Bots != nil }, never))
	row("attention", s.Attention.String(), b.from(c, place, "bot.attention", func(o *Override) bool { return o.Attention != nil }, never))
	row("language", orElse(s.Language, "as spoken, else "+c.Bot.Language), b.from(c, place, "bot.language", func(o *Override) bool { return o.Language != "" }, never))
	row("scope", orElse(s.Scope, c.Prompt.Scope), b.from(c, place, "prompt.scope", func(o *Override) bool { return o.Scope != nil }, never))
	row("actions_allow", orElse(patterns(c, place, func(o *Override) []string { return o.ActionsAllow }), "all"),
		b.from(c, place, "-", func(o *Override) bool { return len(o.ActionsAllow) > 0 }, never))
	row("actions_deny", patterns(c, place, func(o *Override) []string { return o.ActionsDeny }),
		b.from(c, place, "-", func(o *Override) bool { return len(o.ActionsDeny) > 0 }, never))
}

// from says where a setting comes from: what was changed by command, an override,
// or else.
func (b *bot) from(c *Config, place core.Path, otherwise string, sets func(*Override) bool, changes func(changed) bool) string {
	o := c.longest(place, sets)
	_, at, said := b.overlay.at(place, changes)
	switch {
	case said && (o == nil || at.Within(o.Path)):
		return "a command in " + at.String()
	case o != nil:
		return "override " + o.Path.String()
	}
	return otherwise
}

// patterns are those of the longest override that has any.
func patterns(c *Config, place core.Path, of func(*Override) []string) string {
	o := c.longest(place, func(o *Override) bool { return len(of(o)) > 0 })
	if o == nil {
		return ""
	}
	return strings.Join(of(o), ", ")
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
