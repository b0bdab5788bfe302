package daemon

import (
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/engine"
)

// budgeted asks the engines of p while there is something left to spend, in the
// place, for the person and altogether.
func (b *Bot) budgeted(p *parts, clock func() time.Time) core.Asker {
	all := p.Config.Budget
	all.Places = nil
	for _, l := range b.placeLimits(p.Config) {
		all.Places = append(all.Places, l.PlaceBudget)
	}
	return engine.Budgeted(p.Engines, all, engine.BudgetOptions{
		Ledger: b.ledger, Cost: p.Config.Cost, Used: b.metrics.Used, Clock: clock, Zone: clock().Location(), Log: inRoom(b.log, "core/engine"),
		PersonTokens: func(place core.Path) int64 { tokens, _ := b.personTokens(p.Config, place); return tokens },
	})
}

// personTokens is what a person may use in a day where he asks there; 0: no limit.
// from is the path that says so by command or override, else zero.
func (b *Bot) personTokens(c *Config, place core.Path) (tokens int64, from core.Path) {
	if x, at, ok := b.nearer(c, place, setsPersonTokens, func(x changed) bool { return x.Person != nil }); ok {
		return *x.Person, at
	}
	if o := c.longest(place, setsPersonTokens); o != nil {
		return *o.PersonTokens, o.Path
	}
	return c.Budget.PersonTokens, core.Path{}
}

// placeLimit is what a place and all below it may use in a day.
type placeLimit struct {
	engine.PlaceBudget
	from string
}

// placeLimits are those of the configuration and its overrides; what was set by
// command stands for theirs of the same path.
func (b *Bot) placeLimits(c *Config) (all []placeLimit) {
	said := make(map[core.Path]int64)
	b.overlay.each(func(at core.Path, x changed) {
		if x.Tokens != nil {
			said[at] = *x.Tokens
		}
	})
	add := func(p engine.PlaceBudget, from string) {
		if tokens, ok := said[p.Path]; ok {
			p.Tokens, from = tokens, "a command in "+p.Path.String()
			delete(said, p.Path)
		}
		all = append(all, placeLimit{p, from})
	}
	for _, p := range c.Budget.Places {
		add(p, "budget.place "+p.Path.String())
	}
	for i := range c.Overrides {
		if o := &c.Overrides[i]; o.Tokens != nil {
			add(engine.PlaceBudget{Path: o.Path, Tokens: *o.Tokens}, "override "+o.Path.String())
		}
	}
	for at, tokens := range said {
		all = append(all, placeLimit{engine.PlaceBudget{Path: at, Tokens: tokens}, "a command in " + at.String()})
	}
	slices.SortStableFunc(all, func(a, b placeLimit) int { return strings.Compare(a.Path.String(), b.Path.String()) })
	return all
}

// policy is what grants, overrides and commands say about actions.
func (b *Bot) policy(c *Config) action.Policy {
	p := c.policy()
	b.overlay.each(func(at core.Path, x changed) {
		if x.Allow != nil {
			p.Only = append(p.Only, action.Only{Path: at, Actions: patternsOf(*x.Allow)})
		}
		if x.Deny != nil {
			p.Rules = append(p.Rules, action.Rule{Path: at, Actions: patternsOf(*x.Deny), Permission: action.Nobody})
		}
	})
	return p
}

// patternsOf are the patterns of a list with commas.
func patternsOf(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}
