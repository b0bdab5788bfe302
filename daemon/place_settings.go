package daemon

import (
	"cmp"
	"slices"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/engine"
	"synthbot/core/turn"
	"synthbot/daemon/settings"
	"synthbot/persona"
)

// Override is one [[override]] table: the settings of a place and all places below it.
type Override struct {
	Path core.Path `toml:"path" kind:"place" required:"true" example:"discord/81384788765712384" doc:"The place, with all places below it."`
	settings.Settings
}

func (o *Override) personaFile() string {
	if o.Persona == nil {
		return ""
	}
	return *o.Persona
}

// Grant lets turns in one place, or below it, write to another one.
type Grant struct {
	From core.Path `toml:"from" kind:"place" required:"true" example:"discord/81384788765712384/1" doc:"The place in which users may ask for it, with all places below it."`
	To   core.Path `toml:"to" kind:"place" required:"true" example:"discord/81384788765712384/2" doc:"The place where the bot may write then, with all places below it."`
}

type (
	placeLayer   = settings.Layer[settings.Settings]
	placeChanges = settings.Changes[settings.Settings]
	resolver     = settings.Resolver[settings.Settings]
)

func (c *Config) resolver(changes *placeChanges, scopes func(core.Path) []core.Path) *resolver {
	var layers []placeLayer
	for _, p := range c.Budget.Places {
		values := settings.Settings{Tokens: &p.Tokens}
		layers = append(layers, placeLayer{Path: p.Path, From: "budget.place " + p.Path.String(), Values: values})
	}
	for _, o := range c.Overrides {
		layers = append(layers, placeLayer{Path: o.Path, From: "override " + o.Path.String(), Values: o.Settings})
	}
	return settings.New(settings.Base[settings.Settings](&c.Tables), layers, changes, scopes)
}

func (p *parts) turnSettings(place core.Path) turn.Settings {
	s, bot := p.settings.At(place), &p.Config.Bot
	return turn.Settings{
		Activation: s.Activation, Keywords: s.Keywords, Language: string(s.Language), Scope: s.Scope,
		AmbientMessages: bot.AmbientMessages, AmbientEvery: bot.AmbientEvery,
		Attention: *s.Attention, Blind: !*s.Observe, Bots: *s.Bots,
	}
}

// personaAt returns the persona of a place. It ignores a setting whose persona file is no longer available.
func (p *parts) personaAt(place core.Path) *persona.Persona {
	for _, l := range slices.Backward(p.settings.Layers(place)) {
		if l.Values.Persona == nil {
			continue
		}
		if who, ok := p.personas.byFile[*l.Values.Persona]; ok {
			return who
		}
	}
	return p.personas.Main
}

// PersonaAt returns the persona of a place by the configuration alone.
func (c *Config) PersonaAt(place core.Path) *persona.Persona {
	p := &parts{Config: c, personas: c.Personas, settings: c.resolver(new(placeChanges), nil)}
	return p.personaAt(place)
}

func (p *parts) policy() (policy action.Policy) {
	for _, g := range p.Config.Grants {
		policy.Grants = append(policy.Grants, action.Grant(g))
	}
	for _, l := range p.settings.All() {
		if len(l.Values.ActionsAllow) > 0 {
			policy.Only = append(policy.Only, action.Only{Path: l.Path, Actions: l.Values.ActionsAllow.Strings()})
		}
		if len(l.Values.ActionsDeny) > 0 {
			rule := action.Rule{Path: l.Path, Actions: l.Values.ActionsDeny.Strings(), Permission: action.Nobody}
			policy.Rules = append(policy.Rules, rule)
		}
	}
	return policy
}

// placeBudgets returns the budgets of [[budget.place]], and those of the setting tokens.
func (p *parts) placeBudgets() []engine.PlaceBudget {
	list := slices.Clone(p.Config.Budget.Places)
	for _, l := range p.settings.All() {
		if l.Values.Tokens == nil {
			continue
		}
		i := slices.IndexFunc(list, func(b engine.PlaceBudget) bool { return b.Path == l.Path })
		if i < 0 {
			i, list = len(list), append(list, engine.PlaceBudget{Path: l.Path})
		}
		list[i].Tokens = *l.Values.Tokens
	}
	return list
}

func claimedAdmins(changes *placeChanges) (people []core.Path) {
	for _, l := range changes.All() {
		if l.Path.IsPerson() && l.Values.Admin != nil && *l.Values.Admin {
			people = append(people, l.Path)
		}
	}
	return people
}

// runningSettings is PlaceSettings, with a note on patterns that match no action of the running bot.
func (p *parts) runningSettings(place core.Path) []settings.Row {
	rows := p.PlaceSettings(place)
	settings.NoteUnmatched(rows, p.Snapshot.Names())
	return rows
}

// PlaceSettings returns the settings that apply in a place, as users read them.
func (p *parts) PlaceSettings(place core.Path) []settings.Row {
	rows := p.settings.Rows(place)
	for i := range rows {
		row := &rows[i]
		switch row.Name {
		case "persona":
			row.Value = p.personaAt(place).Name
		case "engine":
			row.Value = cmp.Or(row.Value, p.Engines.Names()[0])
		case "language":
			row.Value = cmp.Or(row.Value, "as spoken, else "+string(p.Config.Bot.Language))
		}
	}
	return rows
}
