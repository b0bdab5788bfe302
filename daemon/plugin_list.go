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
	{
		name: "memory", constructor: constructorOf(memory.New), byDefault: true,
		doc: "Memories: facts that the bot stores, finds and forgets.",
	},
	{
		name: "reminders", constructor: constructorOf(reminders.New), byDefault: true,
		doc: "Reminders, single or recurring.",
	},
	{
		name: "people", constructor: constructorOf(people.New),
		doc: "Short bios of users, from what they say about themselves.",
	},
	{name: "diary", constructor: constructorOf(diary.New), doc: "The bot's own diary, one for each place."},
	{name: "games", constructor: constructorOf(games.New), doc: "Dice, random choices and polls."},
	{
		name: "standard", constructor: constructorOf(standard.New), wanted: hasBlueprints, complete: checkVoice,
		doc: "The standard actions of the plan schema: display, notify, wait, confirm, api_call, speak. " +
			"On if there are blueprints.",
	},
	{
		name: BlueprintName, constructor: constructorOf(blueprint.New), complete: completeBlueprints,
		doc: "Actions from agent blueprints (ai-tools.json), over HTTP or by local commands.",
	},
	{
		name: "mcp", constructor: constructorOf(mcp.New), complete: completeServers,
		doc: "Actions from Model Context Protocol servers.",
	},
	{
		name: "moderation", constructor: constructorOf(newModeration),
		doc: "Blocks, mutes, limits, guards and rules, for moderators and admins.",
	},
	{
		name: "lorebook", constructor: constructorOf(lorebook.New), wanted: hasLore, complete: completeLore,
		doc: "Lore that matches the conversation, from the persona's card and from books. On if a persona has a book.",
	},
	{
		name: "knowledge", constructor: constructorOf(knowledge.New), complete: completeKnowledge,
		doc: "Answers from documents: folders, web pages, feeds, and what users teach.",
	},
	{name: "clock", constructor: constructorOf(clock.New), doc: "The time, the day, the season and the weather."},
	{name: "beats", constructor: constructorOf(beats.New), doc: "What the bot does on its own, on a schedule."},
	{name: "web", constructor: constructorOf(web.New), doc: "Reading and searching the web."},
	{
		name: "review", constructor: constructorOf(review.New),
		doc: "Sends replies back to the model that promise what no action does, or break the limits of a place.",
	},
	{
		name: PairingName, constructor: constructorOf(pairing.New),
		wanted: func(c *Config) bool { return c.Access.Private == PairingName },
		doc:    "Lets unknown users in by a code. On if access.private is pairing.",
	},
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
