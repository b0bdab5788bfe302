package daemon

import (
	"slices"
	"strings"

	"synthbot/config"
	"synthbot/core/txt"
	"synthbot/persona"
)

// personas are all personas of a configuration.
type personas struct {
	Main   *persona.Persona
	Files  []string // that of the main persona first
	byFile map[string]*persona.Persona
}

// loadPersonas reads every persona that the configuration names.
func (c *Config) loadPersonas(d *config.Document) {
	main := c.Persona.Path
	a := &personas{Files: []string{main}, byFile: make(map[string]*persona.Persona)}
	a.Main = c.loadPersona(main, d, "persona", "path")
	a.byFile[main] = a.Main
	for i := range c.Overrides {
		file := c.Overrides[i].personaFile()
		if file != "" && a.byFile[file] == nil {
			a.Files = append(a.Files, file)
			a.byFile[file] = c.loadPersona(file, d, "override", i, "persona")
		}
	}
	slices.Sort(a.Files[1:])
	c.Personas = a
}

// file returns the file of a persona, by its name.
func (a *personas) file(name string) (file string, ok bool) {
	for _, file := range a.Files {
		if strings.EqualFold(name, a.byFile[file].Name) {
			return file, true
		}
	}
	return "", false
}

// known lists the names of all personas.
func (a *personas) known() (names []string) {
	for _, file := range a.Files {
		names = append(names, a.byFile[file].Name)
	}
	return slices.Compact(names)
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
