package daemon

import (
	"errors"
	"io/fs"
	"slices"

	"synthbot/core"
	"synthbot/persona"
	"synthbot/plugins/beats"
	"synthbot/plugins/blueprint"
	"synthbot/plugins/clock"
	"synthbot/plugins/diary"
	"synthbot/plugins/filter"
	"synthbot/plugins/games"
	"synthbot/plugins/knowledge"
	"synthbot/plugins/limits"
	"synthbot/plugins/lorebook"
	"synthbot/plugins/mcp"
	"synthbot/plugins/memory"
	"synthbot/plugins/moderation"
	"synthbot/plugins/pairing"
	"synthbot/plugins/people"
	"synthbot/plugins/reminders"
	"synthbot/plugins/review"
	"synthbot/plugins/standard"
	"synthbot/plugins/web"
)

// CheckItem implements memory.CheckItem.
func CheckItem(plugin string, item core.Item) error {
	if plugin == "reminders" {
		return reminders.CheckItem(item)
	}
	return nil
}

// availablePlugins lists all plugins, in the order in which they are made.
var availablePlugins = []available{
	plugin("memory", "Memories: facts that the bot stores, finds and forgets.", memory.New, options{byDefault: true}),
	plugin("reminders", "Reminders, single or recurring.", reminders.New, options{byDefault: true}),
	plugin("people", "Short bios of users, from what they say about themselves.", people.New, options{}),
	plugin("diary", "The bot's own diary, one for each place.", diary.New, options{}),
	plugin("games", "Dice, random choices and polls.", games.New, options{}),
	plugin("standard", "The standard actions of the plan schema: display, notify, wait, confirm, api_call, speak. "+
		"On if there are blueprints.", standard.New, options{wanted: hasBlueprints, complete: checkVoice}),
	plugin(BlueprintName, "Actions from agent blueprints (ai-tools.json), over HTTP or by local commands.",
		blueprint.New, options{complete: completeBlueprints}),
	plugin("mcp", "Actions from Model Context Protocol servers.", mcp.New, options{complete: completeServers}),
	plugin("moderation", "Blocks, mutes, limits, guards and rules, for moderators and admins.",
		newModeration, options{}),
	plugin("lorebook", "Lore that matches the conversation, from the persona's card and from books. "+
		"On if a persona has a book.", lorebook.New, options{wanted: hasLore, complete: completeLore}),
	plugin("knowledge", "Answers from documents: folders, web pages, feeds, and what users teach.",
		knowledge.New, options{complete: completeKnowledge}),
	plugin("clock", "The time, the day, the season and the weather.", clock.New, options{}),
	plugin("beats", "What the bot does on its own, on a schedule.", beats.New, options{}),
	plugin("web", "Reading and searching the web.", web.New, options{}),
	plugin("review", "Sends replies back to the model that promise what no action does, "+
		"or break the limits of a place.", review.New, options{}),
	plugin(PairingName, "Lets unknown users in by a code. On if access.private is pairing.", pairing.New,
		options{wanted: func(c *Config) bool { return c.Access.Private == PairingName }}),
}

func checkVoice(c *Config, own any, fault func(text string, at ...any)) {
	if own.(*standard.Config).Speaks() && c.Speech.Out.Provider == "" {
		fault("the action speak has no voice; set a provider in [speech.out]")
	}
}

// moderationTable is the table of the plugin moderation, which three packages implement.
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

// BlueprintName is the name of the plugin that makes actions from blueprints.
const BlueprintName = "blueprint"

// hasBlueprints reports whether the plugin blueprint is on. Its results need the plugin standard.
func hasBlueprints(c *Config) bool {
	table, named := c.Plugins[BlueprintName]
	var common anyPlugin
	table.Peek(&common)
	return named && common.Enabled
}

func completeBlueprints(c *Config, own any, fault func(text string, at ...any)) {
	b := own.(*blueprint.Config)
	b.Dir = c.Beside(".")
	checkListen(fault, b.Serve.Listen, "127.0.0.1:8790", "serve", "listen")
	for _, f := range b.Faults() {
		if !f.Warning {
			fault(f.String(), "source", b.SourceOf(f), "path")
		}
	}
}

func completeKnowledge(c *Config, own any, _ func(text string, at ...any)) {
	own.(*knowledge.Config).Dir = c.Beside(".")
}

// Knowledge returns the plugin knowledge; nil if it is off.
func (b *Bot) Knowledge() *knowledge.Plugin { return pluginOf[*knowledge.Plugin](b.InForce()) }

func hasLore(c *Config) bool {
	for _, p := range c.Personas.byFile {
		if len(p.Book.Entries) > 0 {
			return true
		}
	}
	return false
}

// completeLore adds the books of the personas, each in the places of its persona, and reports faults of other books.
func completeLore(c *Config, own any, fault func(text string, at ...any)) {
	b := own.(*lorebook.Config)
	b.Dir = c.Beside(".")
	for i, s := range b.Sources {
		_, err := lorebook.Load(c.Beside(s.Path))
		if err != nil && s.Path != "" && !errors.Is(err, fs.ErrNotExist) {
			fault(err.Error(), "book", i, "path")
		}
	}
	b.Cards = []lorebook.Card{cardOf(c.Personas.Main, core.Path{})}
	for _, o := range c.Overrides {
		file := o.personaFile()
		if file != "" {
			b.Cards = append(b.Cards, cardOf(c.Personas.byFile[file], o.Path))
		}
	}
}

// cardOf returns the book of a persona for its places. An empty one keeps the main persona's book away there.
func cardOf(p *persona.Persona, at core.Path) lorebook.Card {
	return lorebook.Card{Path: at, Char: p.Name, Book: p.Book}
}

// completeServers also reports servers with the name of a plugin or an interface: their actions would conflict.
func completeServers(c *Config, own any, fault func(text string, at ...any)) {
	all := own.(*mcp.Config).Servers
	for i := range all {
		s := &all[i]
		if s.Dir != "" {
			s.Dir = c.Beside(s.Dir)
		} else if len(s.Command) > 0 {
			s.Command[0] = c.programBeside(s.Command[0])
		}
		_, plugin := c.Plugins[s.Name]
		_, iface := c.Interfaces[s.Name]
		if plugin || iface || slices.Contains(c.ChosenNames(), s.Name) {
			text := "a server is called " + s.Name + ", as a plugin or an interface is; give it another name"
			fault(text, "server", i, "name")
		}
	}
}
