package daemon

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"synthbot/config"
	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/turn"
	"synthbot/core/txt"
	"synthbot/persona"
)

// Override is what differs in a subtree. Of each setting, the one with the
// longest matching path wins.
type Override struct {
	Path         core.Path      `toml:"path" required:"true" example:"discord/81384788765712384" doc:"The place, with all below it."`
	Persona      string         `toml:"persona" example:"persona/gm.toml" doc:"Who the bot is there: a persona file or a character card."`
	Engine       string         `toml:"engine" example:"home" doc:"The engine that is asked first there."`
	Activation   *string        `toml:"activation" oneof:"mention|keyword|ambient|always|never" example:"mention" doc:"What the bot answers in groups there, as in [bot]."`
	Keywords     []string       `toml:"keywords" example:"help, bot" doc:"The words that wake it there, with activation = \"keyword\"."`
	Observe      *bool          `toml:"observe" example:"false" doc:"Whether talk that is not for the bot is kept there, as in [bot]."`
	Bots         *bool          `toml:"bots" example:"true" doc:"Whether other bots are answered there, as in [bot]."`
	Attention    *time.Duration `toml:"attention" example:"1m" doc:"How long after an answer the same person need not address the bot again there, as in [bot]."`
	Language     string         `toml:"language" example:"it" doc:"The language to answer in there, whatever is spoken."`
	Scope        *string        `toml:"scope" oneof:"chat|interface|unified" example:"interface" doc:"How far history_recent reaches there, always within one [[share]]."`
	ActionsAllow []string       `toml:"actions_allow" example:"dice_*, memory_*" doc:"Where given, the only actions that are to be had there, besides what an interface does in its own places; * stands for any letters."`
	ActionsDeny  []string       `toml:"actions_deny" example:"web_*" doc:"Actions that are not to be had there; * stands for any letters. What a shorter path denies stays denied."`
	PersonTokens *int64         `toml:"person_tokens" min:"0" example:"50000" doc:"Tokens that one person may cause in a day, where he asks there, in place of what [budget] says; 0 for no limit."`
	Tokens       *int64         `toml:"tokens" min:"0" example:"500000" doc:"Tokens in a day of the place and all below it; 0 for no limit. It is asked besides those of other paths, [budget] and [[budget.place]]."`
}

// Check implements the configuration's own check.
func (o *Override) Check(fault func(text string, at ...any)) {
	for key, patterns := range map[string][]string{"actions_deny": o.ActionsDeny, "actions_allow": o.ActionsAllow} {
		for i, pattern := range patterns {
			if _, err := path.Match(pattern, ""); err != nil {
				fault(fmt.Sprintf("%q is no pattern; write a name, or a part of one with *", pattern), key, i)
			}
		}
	}
}

func setsPersona(o *Override) bool      { return o.Persona != "" }
func setsEngine(o *Override) bool       { return o.Engine != "" }
func setsActivation(o *Override) bool   { return o.Activation != nil }
func setsLanguage(o *Override) bool     { return o.Language != "" }
func setsScope(o *Override) bool        { return o.Scope != nil }
func setsPersonTokens(o *Override) bool { return o.PersonTokens != nil }

// longest returns the override with the longest path that holds the place and
// that sets something. A category's is as long as those of its channels, which win.
func (c *Config) longest(place core.Path, sets func(*Override) bool) *Override {
	var best *Override
	for i := range c.Overrides {
		o := &c.Overrides[i]
		if c.holds(o.Path, place) && sets(o) && (best == nil || core.Nearer(o.Path, best.Path, place)) {
			best = o
		}
	}
	return best
}

// holds reports whether a place lies below a path, or belongs to it as a channel
// does to a category.
func (c *Config) holds(root, place core.Path) bool {
	if place.Within(root) {
		return true
	}
	return c.scopes != nil && slices.ContainsFunc(c.scopes(place), func(s core.Path) bool { return s.Within(root) })
}

// settings are what holds in a place.
func (c *Config) settings(place core.Path) turn.Settings {
	b := &c.Bot
	s := turn.Settings{
		Activation: b.Activation, Keywords: b.Keywords, AmbientMessages: b.AmbientMessages, AmbientEvery: b.AmbientEvery,
		Attention: b.Attention, Blind: !b.Observe, Bots: b.Bots,
	}
	if len(c.Overrides) == 0 {
		return s
	}
	if o := c.longest(place, setsActivation); o != nil {
		s.Activation = *o.Activation
	}
	if o := c.longest(place, func(o *Override) bool { return len(o.Keywords) > 0 }); o != nil {
		s.Keywords = o.Keywords
	}
	if o := c.longest(place, func(o *Override) bool { return o.Observe != nil }); o != nil {
		s.Blind = !*o.Observe
	}
	if o := c.longest(place, func(o *Override) bool { return o.Bots != nil }); o != nil {
		s.Bots = *o.Bots
	}
	if o := c.longest(place, func(o *Override) bool { return o.Attention != nil }); o != nil {
		s.Attention = *o.Attention
	}
	if o := c.longest(place, setsLanguage); o != nil {
		s.Language = o.Language
	}
	if o := c.longest(place, setsScope); o != nil {
		s.Scope = *o.Scope
	}
	return s
}

// Grant lets turns of one subtree write to another one.
type Grant struct {
	From core.Path `toml:"from" required:"true" example:"discord/81384788765712384/1" doc:"Where it may be asked for, with all below it."`
	To   core.Path `toml:"to" required:"true" example:"discord/81384788765712384/2" doc:"Where the bot may write then, with all below it."`
}

// policy is what grants and overrides say about actions.
func (c *Config) policy() action.Policy {
	var p action.Policy
	for _, g := range c.Grants {
		p.Grants = append(p.Grants, action.Grant{From: g.From, To: g.To})
	}
	for _, o := range c.Overrides {
		if len(o.ActionsAllow) > 0 {
			p.Only = append(p.Only, action.Only{Path: o.Path, Actions: o.ActionsAllow})
		}
		if len(o.ActionsDeny) > 0 {
			p.Rules = append(p.Rules, action.Rule{Path: o.Path, Actions: o.ActionsDeny, Permission: action.Nobody})
		}
	}
	return p
}

// prefer is the engine that is asked first in a place; "" for the first one.
func (c *Config) prefer(place core.Path) string {
	if o := c.longest(place, setsEngine); o != nil {
		return o.Engine
	}
	return ""
}

// cast is who the bot is, place by place.
type cast struct {
	config *Config
	Main   *persona.Persona
	others map[string]*persona.Persona // by file
}

// loadCast reads every persona that the configuration names.
func (c *Config) loadCast(d *config.Document) {
	c.Cast = &cast{config: c, others: make(map[string]*persona.Persona)}
	c.Cast.Main = c.loadPersona(c.Persona.Path, d, "persona", "path")
	for i := range c.Overrides {
		if file := c.Overrides[i].Persona; file != "" && c.Cast.others[file] == nil {
			c.Cast.others[file] = c.loadPersona(file, d, "override", i, "persona")
		}
	}
}

// At is who the bot is in a place.
func (a *cast) At(place core.Path) *persona.Persona {
	if o := a.config.longest(place, setsPersona); o != nil {
		return a.others[o.Persona]
	}
	return a.Main
}

// named is the persona of a file that the configuration names; nil if there is
// none.
func (a *cast) named(file string) *persona.Persona {
	if file == a.config.Persona.Path {
		return a.Main
	}
	return a.others[file]
}

// file is the file of a persona that the configuration names, by its name.
func (a *cast) file(name string) (file string, ok bool) {
	if strings.EqualFold(name, a.Main.Name) {
		return a.config.Persona.Path, true
	}
	for _, file := range slices.Sorted(maps.Keys(a.others)) {
		if strings.EqualFold(name, a.others[file].Name) {
			return file, true
		}
	}
	return "", false
}

// known lists the names of all personas.
func (a *cast) known() []string {
	names := []string{a.Main.Name}
	for _, file := range slices.Sorted(maps.Keys(a.others)) {
		names = append(names, a.others[file].Name)
	}
	return slices.Compact(names)
}

// names lists what the bot is called, anywhere.
func (a *cast) names() []string {
	names := append([]string{a.config.Bot.Name, a.Main.Name}, a.Main.Aliases...)
	for _, p := range a.others {
		names = append(append(names, p.Name), p.Aliases...)
	}
	return names
}

// loadPersona reads a persona file; no file is the persona that is built in.
// What is wrong becomes a fault of the key that names it.
func (c *Config) loadPersona(file string, d *config.Document, at ...any) *persona.Persona {
	if file == "" {
		return persona.Embedded()
	}
	who, err := persona.Load(c.Beside(file))
	if err != nil {
		d.Fault(txt.Line(err.Error()), at...)
		return persona.Embedded()
	}
	return who
}
