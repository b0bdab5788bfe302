package daemon

import (
	"cmp"
	"fmt"
	"strings"

	"synthbot/core"
)

// EachInEffect calls row for each setting that holds in a place.
func (b *Bot) EachInEffect(place core.Path, row func(name, value, from string)) {
	c := b.InForce().Config
	s := b.settings(c, place)
	row("persona", b.castAt(b.InForce(), place).Name, b.from(c, place, "persona.path",
		setsPersona, func(x changed) bool { return x.Persona != nil }))
	engine := b.prefer(c, place)
	if engine == "" {
		engine = b.InForce().Engines.Names()[0]
	}
	row("engine", engine, b.from(c, place, "the first engine",
		setsEngine, func(x changed) bool { return x.Engine != nil }))
	row("activation", s.Activation, b.from(c, place, "bot.activation",
		setsActivation, func(x changed) bool { return x.Activation != nil }))
	asleep, _, _ := b.overlay.at(place, func(x changed) bool { return x.Asleep != nil })
	row("asleep", fmt.Sprint(asleep.Asleep != nil && *asleep.Asleep), b.from(c, place, "-",
		func(*Override) bool { return false }, func(x changed) bool { return x.Asleep != nil }))
	never := func(changed) bool { return false }
	row("keywords", strings.Join(s.Keywords, ", "), b.from(c, place, "bot.keywords", func(o *Override) bool { return len(o.Keywords) > 0 }, never))
	row("observe", fmt.Sprint(!s.Blind), b.from(c, place, "bot.observe", func(o *Override) bool { return o.Observe != nil }, never))
	row("bots", fmt.Sprint(s.Bots), b.from(c, place, "bot.bots", func(o *Override) bool { return o.Bots != nil }, never))
	row("attention", s.Attention.String(), b.from(c, place, "bot.attention", func(o *Override) bool { return o.Attention != nil }, never))
	row("language", cmp.Or(s.Language, "as spoken, else "+c.Bot.Language), b.from(c, place, "bot.language", setsLanguage, func(x changed) bool { return x.Language != nil }))
	row("scope", cmp.Or(s.Scope, c.Prompt.Scope), b.from(c, place, "prompt.scope", setsScope, func(x changed) bool { return x.Scope != nil }))
	b.limitsInEffect(c, place, row)
}

// limitsInEffect calls row for what may be done in a place, and how much of it.
func (b *Bot) limitsInEffect(c *Config, place core.Path, row func(name, value, from string)) {
	policy := b.policy(c)
	allowed, from, nearest := "all", "-", core.Path{}
	for _, o := range policy.Only {
		if c.holds(o.Path, place) && core.Nearer(o.Path, nearest, place) {
			allowed, nearest = strings.Join(o.Actions, ", "), o.Path
			from = b.source(o.Path, func(x changed) bool { return x.Allow != nil })
		}
	}
	row("actions_allow", allowed, from)
	denied := false
	for _, r := range policy.Rules {
		if list := strings.Join(r.Actions, ", "); c.holds(r.Path, place) {
			row("actions_deny", list, b.source(r.Path, func(x changed) bool { return x.Deny != nil && *x.Deny == list }))
			denied = true
		}
	}
	if !denied {
		row("actions_deny", "", "-")
	}
	tokens, at := b.personTokens(c, place)
	if from = "budget.person_tokens"; !at.IsZero() {
		from = b.source(at, func(x changed) bool { return x.Person != nil })
	}
	row("person_tokens", orNoLimit(tokens), from)
	limited := false
	for _, l := range b.placeLimits(c) {
		if place.Within(l.Path) {
			row("tokens", orNoLimit(l.Tokens), l.from)
			limited = true
		}
	}
	if !limited {
		row("tokens", orNoLimit(0), "-")
	}
}

// source says where what is set at a path comes from.
func (b *Bot) source(at core.Path, changes func(changed) bool) string {
	if _, here, ok := b.overlay.at(at, changes); ok && here == at {
		return "a command in " + at.String()
	}
	return "override " + at.String()
}

func orNoLimit(n int64) string {
	if n == 0 {
		return "no limit"
	}
	return fmt.Sprint(n)
}

// from says where a setting comes from: what was changed by command, an override,
// or else.
func (b *Bot) from(c *Config, place core.Path, otherwise string, sets func(*Override) bool, changes func(changed) bool) string {
	if _, at, ok := b.nearer(c, place, sets, changes); ok {
		return "a command in " + at.String()
	}
	if o := c.longest(place, sets); o != nil {
		return "override " + o.Path.String()
	}
	return otherwise
}

// ChosenNames are the plugins that are turned on.
func (c *Config) ChosenNames() (names []string) {
	for _, p := range c.Chosen {
		names = append(names, p.name)
	}
	return names
}
