package daemon

import (
	"slices"

	"synthbot/core"
	"synthbot/persona"
	"synthbot/plugins/beats"
	"synthbot/plugins/blueprint"
	"synthbot/plugins/clock"
	"synthbot/plugins/diary"
	"synthbot/plugins/filter"
	"synthbot/plugins/games"
	"synthbot/plugins/limits"
	"synthbot/plugins/lorebook"
	"synthbot/plugins/mcp"
	"synthbot/plugins/memory"
	"synthbot/plugins/moderation"
	"synthbot/plugins/pairing"
	"synthbot/plugins/people"
	"synthbot/plugins/reminders"
	"synthbot/plugins/standard"
	"synthbot/plugins/web"
)

// abilities is the list of all plugins that this program holds, in the order in
// which they are made.
var abilities = []ability{
	{name: "memory", doc: "Facts that the bot keeps, finds and forgets.", usual: true, config: func() any { return new(memory.Config) }, make: own(memory.New)},
	{name: "reminders", doc: "Reminders, once or again and again.", usual: true, config: func() any { return new(reminders.Config) }, make: own(reminders.New)},
	{name: "people", doc: "Short bios of people, from what they say of themselves.", config: func() any { return new(people.Config) }, make: own(people.New)},
	{name: "diary", doc: "The bot's own diary, place by place.", config: func() any { return new(diary.Config) }, make: own(diary.New)},
	{name: "games", doc: "Dice, random choice and polls.", config: func() any { return new(games.Config) }, make: own(games.New)},
	{name: "standard", doc: "The standard actions of the plan schema: display, notify, wait, confirm, api_call, speak. It is there where blueprints are.", config: func() any { return new(standard.Config) }, make: own(standard.New), wanted: shows},
	{name: BlueprintName, doc: "Actions out of agent blueprints (ai-tools.json), over HTTP or by local commands.", config: func() any { return new(blueprint.Config) }, make: own(blueprint.New), settle: settleBlueprints},
	{name: "mcp", doc: "Actions out of Model Context Protocol servers.", config: func() any { return new(mcp.Config) }, make: own(mcp.New), settle: settleServers},
	{name: "moderation", doc: "Blocks, mutes, limits, guards and rules, for moderators and admins.", config: func() any { return new(moderationTable) }, make: own(newModeration)},
	{name: "lorebook", doc: "Lore that the talk touches: of the persona's card, and of books. It is there where a persona has a book.", config: func() any { return new(lorebook.Config) }, make: own(lorebook.New), wanted: lore, settle: settleLore},
	{name: "clock", doc: "What time, day and season it is, and the weather.", config: func() any { return new(clock.Config) }, make: own(clock.New)},
	{name: "beats", doc: "The bot's own initiative, on a schedule.", config: func() any { return new(beats.Config) }, make: own(beats.New)},
	{name: "web", doc: "Reading and searching the web.", config: func() any { return new(web.Config) }, make: own(web.New)},
	{name: PairingName, doc: "Lets unknown people in by a code; it is there where access.private is pairing.", config: func() any { return new(pairing.Config) }, make: own(pairing.New), wanted: func(c *Config) bool { return c.Access.Private == PairingName }},
}

// moderationTable is the table of moderation, of which three packages read a part.
type moderationTable struct {
	limitsConfig
	moderationConfig
	filterConfig
}

type (
	limitsConfig     = limits.Config
	moderationConfig = moderation.Config
	filterConfig     = filter.Config
)

// newModeration makes the plugin with its further gates.
func newModeration(h core.Host, c moderationTable) (*moderation.Plugin, error) {
	p, err := moderation.New(h, c.moderationConfig)
	if err != nil {
		return nil, err
	}
	f, err := filter.New(h.Clock, c.filterConfig, p)
	if err != nil {
		return nil, err
	}
	p.AddGates(f, limits.New(h.Clock, c.limitsConfig, p))
	return p, nil
}

// BlueprintName is the plugin that makes actions of blueprints.
const BlueprintName = "blueprint"

// shows reports whether there are blueprints, whose results are shown by an action
// of another plugin.
func shows(c *Config) bool {
	table, named := c.Plugins[BlueprintName]
	common := anyPlugin{Enabled: true}
	if named {
		table.Peek(&common)
	}
	return named && common.Enabled
}

// settleBlueprints reads the blueprints that the configuration names.
func settleBlueprints(c *Config, own any) (faults []string) {
	b := own.(*blueprint.Config)
	b.Dir = c.Beside(".")
	for _, f := range b.Faults() {
		if !f.Warning {
			faults = append(faults, f.String())
		}
	}
	return faults
}

// lore reports whether a persona brings lore along.
func lore(c *Config) bool {
	for _, p := range c.Personas.byFile {
		if p.Book != nil {
			return true
		}
	}
	return false
}

// settleLore hands the books of the personas over: each persona's own, in the
// places where it speaks.
func settleLore(c *Config, own any) []string {
	b := own.(*lorebook.Config)
	b.Dir = c.Beside(".")
	b.Cards = []lorebook.Card{cardOf(c.Personas.Main, core.Path{})}
	for _, o := range c.Overrides {
		file := o.personaFile()
		if file != "" {
			b.Cards = append(b.Cards, cardOf(c.Personas.byFile[file], o.Path))
		}
	}
	return nil
}

// cardOf is a persona's book; one without entries where it has none, so that the
// main persona's does not speak for it.
func cardOf(p *persona.Persona, at core.Path) lorebook.Card {
	card := lorebook.Card{Path: at, Char: p.Name}
	if p.Book != nil {
		card.Book = *p.Book
	}
	return card
}

// settleServers refuses names of servers that are those of others: their actions
// would clash.
func settleServers(c *Config, own any) (faults []string) {
	for _, s := range own.(*mcp.Config).Servers {
		_, plugin := c.Plugins[s.Name]
		_, iface := c.Interfaces[s.Name]
		if plugin || iface || slices.ContainsFunc(c.Chosen, func(other chosen) bool { return other.name == s.Name }) {
			faults = append(faults, "a server is called "+s.Name+", as a plugin or an interface is; give it another name")
		}
	}
	return faults
}
