package daemon

import (
	"maps"
	"slices"
	"strings"

	"synthbot/config"
	"synthbot/core/txt"
	"synthbot/persona"
)

// cast is all personas of a configuration.
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
		file := c.Overrides[i].personaFile()
		if file != "" && c.Cast.others[file] == nil {
			c.Cast.others[file] = c.loadPersona(file, d, "override", i, "persona")
		}
	}
}

// named returns the persona of a file that the configuration names; nil if there is
// none.
func (a *cast) named(file string) *persona.Persona {
	if file == a.config.Persona.Path {
		return a.Main
	}
	return a.others[file]
}

// file returns the file of a persona that the configuration names, by its name.
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

// names lists the names and aliases of the bot in all places.
func (a *cast) names() []string {
	names := append([]string{a.config.Bot.Name, a.Main.Name}, a.Main.Aliases...)
	for _, p := range a.others {
		names = append(append(names, p.Name), p.Aliases...)
	}
	return names
}

// loadPersona reads a persona file; "" is the built-in persona. Problems become
// faults of the key that names it.
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
