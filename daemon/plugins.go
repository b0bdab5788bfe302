package daemon

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"synthbot/config"
	"synthbot/core"
	"synthbot/core/gate"
	"synthbot/core/turn"
)

// available is a plugin that a configuration may turn on.
type available struct {
	name, doc string
	byDefault bool                 // it is on without a table
	wanted    func(c *Config) bool // or if this returns true; optional
	config    func() any           // makes its own configuration struct
	make      func(h core.Host, own any) (core.Plugin, error)
	// complete completes the plugin's struct, and returns the faults of the files that it
	// names. Optional.
	complete func(c *Config, own any) []string
}

// plugin describes a plugin by its constructor.
func plugin[C any, P core.Plugin](name, doc string, make func(core.Host, C) (P, error)) available {
	return available{
		name: name, doc: doc, config: func() any { return new(C) },
		make: func(h core.Host, own any) (core.Plugin, error) { return make(h, *own.(*C)) },
	}
}

func (a available) onByDefault() available {
	a.byDefault = true
	return a
}

func (a available) onIf(wanted func(*Config) bool) available {
	a.wanted = wanted
	return a
}

func (a available) completedBy(complete func(c *Config, own any) []string) available {
	a.complete = complete
	return a
}

// anyPlugin holds the keys that the table of every plugin may have.
type anyPlugin struct {
	Enabled bool `toml:"enabled" default:"true" doc:"Whether the plugin is on."`
}

// chosen is a plugin that a configuration turns on.
type chosen struct {
	available
	Own any
}

// decodePlugins reads the table of each plugin into its own struct. Some plugins are on
// without a table.
func decodePlugins(c *Config, d *config.Document) {
	for _, a := range availablePlugins {
		table, named := c.Plugins[a.name]
		if !named && !a.byDefault && (a.wanted == nil || !a.wanted(c)) {
			continue
		}
		common := anyPlugin{}
		table.Peek(&common)
		if named && !common.Enabled {
			table = table.Unresolved() // its secrets may be absent
		}
		own := a.config()
		if named && !common.Enabled && a.name == PairingName && c.Access.Private == PairingName {
			const text = "access.private is pairing, which needs it; take this out, or set another access"
			d.Fault(text, "plugins", a.name, "enabled")
		}
		table.Decode(&common, own)
		if named && !common.Enabled {
			continue
		}
		if a.complete != nil {
			for _, fault := range a.complete(c, own) {
				d.Fault(fault, "plugins", a.name)
			}
		}
		c.Chosen = append(c.Chosen, chosen{a, own})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Plugins)) {
		if !slices.ContainsFunc(availablePlugins, func(a available) bool { return a.name == name }) {
			d.Fault("unknown plugin; there is "+strings.Join(PluginNames(), ", "), "plugins", name)
		}
	}
}

// loaded is a plugin, and what it was made of.
type loaded struct {
	core.Plugin
	chosen
}

// plugins makes the plugins that are turned on. It keeps the former one if its table, the
// time zone and the language did not change, and it runs.
func (b *Bot) plugins(c *Config) (all []loaded, err error) {
	former := b.InForce()
	zone := func(c *Config) string { return c.Clock(b.env.Clock)().Location().String() }
	kept := zone(c) == zone(former.Config) && c.Bot.Language == former.Config.Bot.Language
	for _, next := range c.Chosen {
		i := slices.IndexFunc(former.plugins, func(l loaded) bool {
			return kept && l.name == next.name && reflect.DeepEqual(l.Own, next.Own) && !b.workers.failed(l.Plugin)
		})
		if i >= 0 {
			all = append(all, former.plugins[i])
			continue
		}
		p, err := next.make(b.host(c, next.name), next.Own)
		if err != nil {
			return nil, UsageError{fmt.Errorf("plugins.%s: %w", next.name, err)}
		}
		all = append(all, loaded{p, next})
	}
	return all, nil
}

// PairingName is the name of the plugin that lets unknown people in by a code, and of the
// access that needs it.
const PairingName = "pairing"

// exempt is a gate that lets people pass who have access by the configuration.
type exempt struct {
	gate.Gate
	access *turn.Access
}

// Judge implements gate.Gate.
func (e exempt) Judge(m *core.Message, again bool) gate.Verdict {
	if person, err := m.Path.Person(m.Author.ID); err == nil && e.access.Allows(person, m) {
		return gate.Verdict{}
	}
	return e.Gate.Judge(m, again)
}

// pluginTables returns the tables of plugins for the reference.
func pluginTables() (tables []config.Component) {
	for _, a := range availablePlugins {
		doc := a.doc
		if a.byDefault {
			doc += " On by default."
		}
		tables = append(tables, config.Component{Name: a.name, Doc: doc, Into: []any{new(anyPlugin), a.config()}})
	}
	return tables
}

// PluginNames returns the names of all plugins.
func PluginNames() []string {
	names := make([]string, len(availablePlugins))
	for i, a := range availablePlugins {
		names[i] = a.name
	}
	return names
}

// ChosenNames returns the names of the plugins that are turned on.
func (c *Config) ChosenNames() (names []string) {
	for _, p := range c.Chosen {
		names = append(names, p.name)
	}
	return names
}
