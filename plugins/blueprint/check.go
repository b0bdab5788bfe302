package blueprint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	l := loaded{b, &Source{}, -1, nil}
	faults := b.check(l.source, -1)
	faults = append(faults, distinguish([]loaded{l})...)
	return append(faults, l.together()...)
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
	faults = append(faults, distinguish(all)...)
	for i := range all {
		faults = append(faults, all[i].together()...)
	}
	return all, faults
}

func (c *Config) beside(path string) string {
	if filepath.IsAbs(path) || c.Dir == "" {
		return path
	}
	return filepath.Join(c.Dir, path)
}

// maxName is how long an action's name may be.
const maxName = 64

// distinguish gives tools whose names the catalogue cannot keep apart names that
// depend on nothing but the tool and its file.
func distinguish(all []loaded) (faults []Fault) {
	plain := strings.NewReplacer("_", "", "-", "", ".", "")
	taken := make(map[string]int)
	each := func(f func(l *loaded, t *Tool, name string)) {
		for i := range all {
			l := &all[i]
			for k := range l.Tools {
				if t := &l.Tools[k]; l.source.offers(t.Name) {
					f(l, t, plain.Replace(l.source.Prefix+actionName(t.Name)))
				}
			}
		}
	}
	each(func(_ *loaded, _ *Tool, name string) { taken[name]++ })
	each(func(l *loaded, t *Tool, name string) {
		if taken[name] < 2 {
			return
		}
		sum := sha256.Sum256([]byte(filepath.Base(l.File) + "\x00" + t.Name))
		mark := "_" + hex.EncodeToString(sum[:3])
		t.as = actionName(t.Name)
		t.as = t.as[:min(len(t.as), maxName-len(l.source.Prefix)-len(mark))] + mark
		faults = append(faults, Fault{l.index, l.File, t.Name, fmt.Sprintf(
			"another tool has the same name; this one is offered as %s; a prefix of the source would tell them apart",
			l.source.Prefix+t.actionName()), true})
	})
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
	case len(b.Tools)+len(b.unread) == 0:
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
	for _, f := range b.unread {
		add(f.Tool, f.Text, f.Warning)
	}
	seen := make(map[string]bool)
	b.Tools = slices.DeleteFunc(b.Tools, func(t Tool) bool {
		reasons := b.reasons(&t, s)
		if len(reasons) == 0 && seen[t.Name] {
			reasons = []string{"the file has another tool of that name"}
		}
		seen[t.Name] = true
		for _, text := range reasons {
			add(t.Name, "is left out: "+text, true)
		}
		return len(reasons) > 0
	})
	for i := range b.Tools {
		b.Tools[i].remark(s, add)
	}
	if s.Tools != nil && !slices.ContainsFunc(b.Tools, func(t Tool) bool { return s.offers(t.Name) }) {
		add("", "no tool matches the patterns of the configuration", false)
	}
	return faults
}

// reasons say why a tool cannot be used.
func (b *Blueprint) reasons(t *Tool, s *Source) []string {
	if s.speaks(t.Name) {
		return []string{core.MessagePrefix + "… is kept for the interface of that name; give the source a prefix, if it is something else"}
	}
	if faults := t.faultsOf(s.Prefix); len(faults) > 0 {
		return faults
	}
	a := t.fitting(s.adopt(t, b.names()))
	a.DependsOn = nil
	return lint(a)
}

// remark says what is odd about a tool that is used all the same.
func (t *Tool) remark(s *Source, add func(tool, text string, warning bool)) {
	for _, note := range t.notes {
		add(t.Name, note, true)
	}
	if strings.TrimSpace(t.Description) == "" {
		add(t.Name, "description is missing: the model is told nothing of what it does", true)
	}
	given := s.adopt(t, nil)
	used := t.fitting(given)
	if used.Output == nil && given.Output != nil {
		add(t.Name, "outputSchema is not used: "+strings.Join(lint(given), "; "), true)
	} else if used.Examples.Examples == nil && len(t.Examples)+len(inputExamples(t.Input)) > 0 {
		add(t.Name, "the examples are not used: "+strings.Join(lint(given), "; "), true)
	}
}

// together is what is wrong with the tools of a file taken together.
func (l *loaded) together() (faults []Fault) {
	var all shelf
	for i := range l.Tools {
		all = append(all, l.Tools[i].fitting(l.source.adopt(&l.Tools[i], l.names())))
	}
	for _, text := range all.faults() {
		faults = append(faults, Fault{l.index, l.File, "", text, false})
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

// fitting leaves out examples and an output schema that the catalogue does not take.
// What the bot exported stays whole.
func (t *Tool) fitting(a core.Action) core.Action {
	if t.Meta.Own != nil {
		return a
	}
	plain := a
	plain.Examples.Examples = nil
	silent := a
	silent.Output = nil
	both := plain
	both.Output = nil
	for _, try := range []core.Action{a, plain, silent, both} {
		if len(lint(try)) == 0 {
			return try
		}
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
