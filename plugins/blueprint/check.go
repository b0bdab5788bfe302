package blueprint

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/action"
)

// Fault is something that is wrong with a blueprint.
type Fault struct {
	Source  int    // which source of the Config, from 0; -1: none
	File    string // "": the source itself
	Tool    string // as the file calls it; "": the file
	Text    string // what is wrong, and the mend
	Warning bool   // it works all the same
}

func (f Fault) String() string {
	text := f.Text
	if f.Tool != "" {
		text = f.Tool + ": " + text
	}
	if f.File != "" {
		text = f.File + ": " + text
	}
	return text
}

// Check reads a blueprint and says everything that is wrong with it.
func Check(file string) []Fault {
	b, _, err := load(file)
	if err != nil {
		return []Fault{{Source: -1, File: file, Text: strings.TrimPrefix(err.Error(), file+": ")}}
	}
	return b.check(&Source{}, -1)
}

// Faults says everything that is wrong with the sources and their files.
func (c *Config) Faults() []Fault {
	_, faults := c.load()
	return faults
}

// loaded is a blueprint with its source.
type loaded struct {
	*Blueprint
	source *Source
	index  int // of the source
	data   []byte
}

// load reads all sources.
func (c *Config) load() (all []loaded, faults []Fault) {
	for i := range c.Sources {
		s := &c.Sources[i]
		s.defaults()
		s.Check(func(text string, at ...any) {
			faults = append(faults, Fault{Source: i, Text: fmt.Sprint(at...) + ": " + text})
		})
		list, err := files(c.beside(s.Path))
		if err != nil {
			faults = append(faults, Fault{Source: i, Text: err.Error()})
		}
		for _, file := range list {
			b, data, err := load(file)
			if err != nil {
				faults = append(faults, Fault{Source: i, File: file, Text: strings.TrimPrefix(err.Error(), file+": ")})
				continue
			}
			faults = append(faults, b.check(s, i)...)
			all = append(all, loaded{b, s, i, data})
		}
	}
	return all, append(faults, clashes(all)...)
}

func (c *Config) beside(path string) string {
	if filepath.IsAbs(path) || c.Dir == "" {
		return path
	}
	return filepath.Join(c.Dir, path)
}

// clashes are tools of several files that want the same name.
func clashes(all []loaded) (faults []Fault) {
	taken := make(map[string]string)
	plain := strings.NewReplacer("_", "", "-", "", ".", "")
	for _, l := range all {
		for i := range l.Tools {
			t := &l.Tools[i]
			if !l.source.offers(t.Name) {
				continue
			}
			name := plain.Replace(l.source.Prefix + actionName(t.Name))
			if other, ok := taken[name]; ok && other != l.File {
				faults = append(faults, Fault{Source: -1, File: l.File, Tool: t.Name, Text: "the name is taken by a tool of " + other + "; give one of the sources a prefix"})
			}
			taken[name] = l.File
		}
	}
	return faults
}

// version is a semantic version; its groups are its numbers.
var version = regexp.MustCompile(`^v?(\d+)\.(\d+)\.(\d+)([-+].*)?$`)

// check says what is wrong with a blueprint as a source means to use it.
func (b *Blueprint) check(s *Source, source int) (faults []Fault) {
	add := func(tool, text string, warning bool) {
		faults = append(faults, Fault{source, b.File, tool, text, warning})
	}
	switch {
	case len(b.Tools) == 0:
		add("", "capabilities.tools is missing or empty", false)
	case len(s.Command) == 0 && s.URL == "" && b.Endpoint == "":
		add("", "nobody knows where the agent is: the file has no endpoint, and the configuration no url or command", source < 0)
	case b.Endpoint != "" && !webAddress(b.Endpoint):
		add("", fmt.Sprintf("endpoint: %q is no address; write it as https://host/path", b.Endpoint), false)
	}
	for _, field := range [][2]string{{"name", b.Name}, {"description", b.Description}, {"version", b.Version}} {
		if strings.TrimSpace(field[1]) == "" {
			add("", field[0]+" is missing", true)
		}
	}
	if b.Version != "" && !version.MatchString(b.Version) {
		add("", fmt.Sprintf("version: %q is no semantic version, like 1.2.0", b.Version), true)
	}
	if b.auth && source >= 0 && len(s.Headers) == 0 && len(s.Command) == 0 {
		add("", "security.authRequired: the agent wants to know who asks; the configuration has no headers", true)
	}
	for i := range b.Tools {
		b.Tools[i].check(s, add)
	}
	if s.Tools != nil && !slices.ContainsFunc(b.Tools, func(t Tool) bool { return s.offers(t.Name) }) {
		add("", "no tool matches the patterns of the configuration", false)
	}
	return append(faults, b.compile(s, source)...)
}

func (t *Tool) check(s *Source, add func(tool, text string, warning bool)) {
	if s.speaks(t.Name) {
		add(t.Name, "is left out: "+core.MessagePrefix+"… is kept for the interface of that name; give the source a prefix, if it is something else", true)
	}
	for _, text := range t.faultsOf(s.Prefix) {
		add(t.Name, text, false)
	}
	if strings.TrimSpace(t.Description) == "" {
		add(t.Name, "description is missing: the model is told nothing of what it does", true)
	}
}

// compile lets the catalogue look at the tools: it knows what a right action is.
func (b *Blueprint) compile(s *Source, source int) (faults []Fault) {
	for i := range b.Tools {
		t := &b.Tools[i]
		if s.speaks(t.Name) {
			continue
		}
		a := t.fitting(s.adopt(t, b.names()))
		a.DependsOn = nil
		for _, text := range lint(a) {
			faults = append(faults, Fault{source, b.File, t.Name, text, false})
		}
	}
	if len(faults) > 0 {
		return faults
	}
	var all shelf
	for i := range b.Tools {
		if !s.speaks(b.Tools[i].Name) {
			all = append(all, b.Tools[i].fitting(s.adopt(&b.Tools[i], b.names())))
		}
	}
	for _, text := range all.faults() {
		faults = append(faults, Fault{source, b.File, "", text, false})
	}
	return faults
}

func (b *Blueprint) names() []string {
	names := make([]string, len(b.Tools))
	for i := range b.Tools {
		names[i] = b.Tools[i].action().Name
	}
	return names
}

// fitting drops a made-up example that the schema does not take.
func (t *Tool) fitting(a core.Action) core.Action {
	if t.Meta.Own != nil || len(t.Examples) > 0 || len(inputExamples(t.Input)) > 0 || len(lint(a)) == 0 {
		return a
	}
	without := a
	without.Examples.Examples = nil
	if len(lint(without)) == 0 {
		return without
	}
	return a
}

// shelf is a plugin that only shows actions.
type shelf []core.Action

// Name implements core.Plugin.
func (shelf) Name() string { return "blueprint" }

// Actions implements core.Plugin.
func (s shelf) Actions() []core.Action {
	list := slices.Clone(s)
	for i := range list {
		list[i].Do = func(context.Context, core.Call) (core.Result, error) { return core.Result{}, errors.ErrUnsupported }
	}
	return list
}

// faults is what the catalogue does not like about the actions.
func (s shelf) faults() []string {
	_, err := action.Build(s)
	if err == nil {
		return nil
	}
	var texts []string
	for text := range strings.SplitSeq(err.Error(), "\n") {
		texts = append(texts, text)
	}
	return texts
}

// lint is what the catalogue does not like about one action.
func lint(a core.Action) []string {
	list := shelf{a}.faults()
	for i := range list {
		list[i] = strings.TrimPrefix(list[i], "action "+a.Name+" of blueprint: ")
	}
	return list
}
