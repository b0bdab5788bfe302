package daemon

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"synthbot/config"
	"synthbot/core"
	"synthbot/core/turn"
)

// ability is a plugin that a configuration may turn on.
type ability struct {
	name, doc string
	usual     bool                 // it is there without being asked for
	wanted    func(c *Config) bool // or where this says so. Optional.
	config    func() any
	make      func(h core.Host, own any) (core.Plugin, error)
	// settle completes the plugin's struct, and returns what is wrong with the
	// files that it names. Optional.
	settle func(c *Config, own any) []string
}

// own makes an ability's constructor of a plugin's.
func own[C any, P core.Plugin](make func(core.Host, C) (P, error)) func(core.Host, any) (core.Plugin, error) {
	return func(h core.Host, c any) (core.Plugin, error) { return make(h, *c.(*C)) }
}

// anyPlugin is what the table of every plugin may hold.
type anyPlugin struct {
	Enabled bool `toml:"enabled" default:"true" doc:"Whether the plugin is there."`
}

// chosen is a plugin that a configuration turns on.
type chosen struct {
	ability
	Own any
}

// decodePlugins reads each plugin's table with its own struct; those that are
// usual are there without one.
func decodePlugins(c *Config, d *config.Document) {
	for _, a := range abilities {
		table, named := c.Plugins[a.name]
		if !named && !a.usual && (a.wanted == nil || !a.wanted(c)) {
			continue
		}
		common := anyPlugin{}
		table.Peek(&common)
		if named && !common.Enabled {
			table = table.Unresolved() // its secrets may be absent
		}
		own := a.config()
		if named && !common.Enabled && a.name == PairingName && c.Access.Private == PairingName {
			d.Fault("access.private is pairing, which needs it; take this out, or set another access", "plugins", a.name, "enabled")
		}
		if table.Decode(&common, own); named && !common.Enabled {
			continue
		}
		if a.settle != nil {
			for _, fault := range a.settle(c, own) {
				d.Fault(fault, "plugins", a.name)
			}
		}
		c.Chosen = append(c.Chosen, chosen{a, own})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Plugins)) {
		if !slices.ContainsFunc(abilities, func(a ability) bool { return a.name == name }) {
			d.Fault("there is no such plugin; there is "+strings.Join(PluginNames(), ", "), "plugins", name)
		}
	}
}

// loaded is a plugin that was made, and what it was made of.
type loaded struct {
	core.Plugin
	chosen
	zone, language string // that it was lent
}

// Name is the plugin's.
func (l loaded) Name() string { return l.Plugin.Name() }

// load makes the plugins that are turned on; one whose table is the same as
// before, in the same time zone and language, is taken over as it is.
func (b *Bot) load(c *Config, former *parts) ([]loaded, error) {
	var all, before []loaded
	if former != nil {
		before = former.plugins
	}
	zone, language := c.Clock(b.env.Clock)().Location().String(), string(c.Bot.Language)
	for _, next := range c.Chosen {
		i := slices.IndexFunc(before, func(l loaded) bool {
			return l.name == next.name && l.zone == zone && l.language == language && reflect.DeepEqual(l.Own, next.Own)
		})
		if i >= 0 && !b.workers.failed(before[i].Plugin) {
			all = append(all, before[i])
			continue
		}
		p, err := next.make(b.host(c, next.name), next.Own)
		if err != nil {
			return nil, UsageError{fmt.Errorf("plugins.%s: %w", next.name, err)}
		}
		all = append(all, loaded{p, next, zone, language})
	}
	return all, nil
}

// PairingName is the plugin that lets unknown people in by a code, and the access
// that asks for it.
const PairingName = "pairing"

// exempt is a gate that asks nothing of whom the configuration lets in.
type exempt struct {
	core.Gate
	access *turn.Access
}

// Judge implements core.Gate.
func (e exempt) Judge(m *core.Message, again bool) core.Verdict {
	if person, err := m.Path.Person(m.Author.ID); err == nil && e.access.Lets(person, m) {
		return core.Verdict{}
	}
	return e.Gate.Judge(m, again)
}

// host is what a plugin is lent.
func (b *Bot) host(c *Config, name string) core.Host {
	return core.Host{
		Name: name, Log: inRoom(b.log, "plugins/"+name).With("plugin", name), Clock: c.Clock(b.env.Clock), Language: string(c.Bot.Language),
		Items: b.Data.Items(name), Zones: core.Zones{Items: b.Data.Items("zones")}, Facts: b.Data.Facts(),
		Inbox: inbox{b}, Reader: b.Data.Store, Asker: asker{b}, Desk: b.outbox,
		Changed: func() { notify(b.reloads.outdated) },
	}
}

// pluginTables are the plugins' tables in the reference.
func pluginTables() (tables []config.Component) {
	for _, a := range abilities {
		doc := a.doc
		if a.usual {
			doc += " It is there without a table, too."
		}
		tables = append(tables, config.Component{Name: a.name, Doc: doc, Into: []any{new(anyPlugin), a.config()}})
	}
	return tables
}

// PluginNames are the names of all plugins that this program holds.
func PluginNames() []string {
	names := make([]string, len(abilities))
	for i, a := range abilities {
		names[i] = a.name
	}
	return names
}

// ChosenNames are the plugins that are turned on.
func (c *Config) ChosenNames() (names []string) {
	for _, p := range c.Chosen {
		names = append(names, p.name)
	}
	return names
}
