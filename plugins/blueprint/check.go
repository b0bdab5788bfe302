package blueprint

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/outbound"
	"synthbot/core/txt"
)

// Fault is something that is wrong with a blueprint, or that has changed in it.
type Fault struct {
	File    string // "": the source itself
	Tool    string // its name in the file; "": the file as a whole
	Text    string // what is wrong, and how to fix it
	Warning bool   // the blueprint can be used nevertheless
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

// Faults returns everything that is wrong with the sources and their files.
func (c *Config) Faults() []Fault {
	_, faults := c.load()
	return faults
}

// loaded is a blueprint with its source.
type loaded struct {
	*Blueprint
	source *Source
	data   []byte
}

// SourceOf returns the index of the source that a fault is about.
func (c *Config) SourceOf(f Fault) int {
	names := func(s Source) bool { return f.File == c.file(&s) || filepath.Dir(f.File) == c.file(&s) }
	return max(0, slices.IndexFunc(c.Sources, names))
}

// file returns the file or folder of a source.
func (c *Config) file(s *Source) string {
	if filepath.IsAbs(s.Path) {
		return filepath.Clean(s.Path)
	}
	return filepath.Join(c.Dir, s.Path)
}

func (c *Config) load() (all []loaded, faults []Fault) {
	for i := range c.Sources {
		s := &c.Sources[i]
		list, err := files(c.file(s))
		if err != nil {
			faults = append(faults, Fault{File: c.file(s), Text: err.Error()})
		}
		for _, file := range list {
			one, found := read(file, s)
			all, faults = append(all, one...), append(faults, found...)
		}
	}
	return all, append(faults, checkTogether(all)...)
}

// read reads and checks a file of a source. It returns no blueprint if that cannot be read.
func read(file string, s *Source) ([]loaded, []Fault) {
	unreadable := func(err error) ([]loaded, []Fault) {
		return nil, []Fault{{File: file, Text: err.Error()}}
	}
	f, err := os.Open(file)
	if err != nil {
		return unreadable(errors.Unwrap(err))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return unreadable(err)
	}
	b, err := Read(data)
	if err != nil {
		return unreadable(err)
	}
	b.File = file
	return []loaded{{b, s, data}}, b.check(s)
}

// checkTogether renames tools whose names the catalogue cannot tell apart. The new names depend only on the tool and
// its file. It returns what the catalogue refuses about the tools of each file.
func checkTogether(all []loaded) (faults []Fault) {
	count := make(map[string]int)
	for _, l := range all {
		for _, t := range l.offered() {
			count[action.Normal(t.made.Name)]++
		}
	}
	var refused []Fault
	for _, l := range all {
		names := make(map[string]bool)
		for _, t := range l.offered() {
			if count[action.Normal(t.made.Name)] > 1 {
				t.made.Name = action.MarkName(t.made.Name, filepath.Base(l.File), t.Name)
				text := fmt.Sprintf("another tool has the same name; this one is offered as %s; "+
					"a prefix of the source would tell them apart", t.made.Name)
				faults = append(faults, Fault{l.File, t.Name, text, true})
			}
			names[t.made.Name] = true
		}
		var list []core.Action
		for _, t := range l.offered() { // drop dependencies on tools that are not offered
			t.made.DependsOn = slices.DeleteFunc(t.made.DependsOn, func(name string) bool { return !names[name] })
			list = append(list, t.made)
		}
		for _, text := range action.Lint(owner, list...) {
			refused = append(refused, Fault{File: l.File, Text: text})
		}
	}
	return append(faults, refused...)
}

// owner is the plugin whose actions are linted.
const owner = "blueprint"

// semantic matches a semantic version; its groups are the numbers.
var semantic = txt.Pattern(`^v?(\d+)\.(\d+)\.(\d+)([-+].*)?$`)

// check removes the tools that a source cannot use, and returns the faults of the blueprint.
func (b *Blueprint) check(s *Source) (faults []Fault) {
	add := func(tool, text string, warning bool) {
		faults = append(faults, Fault{b.File, tool, text, warning})
	}
	b.checkEnvelope(s, add)
	for _, f := range b.unreadable {
		add(f.Tool, f.Text, f.Warning)
	}
	b.dropUnusable(s, add)
	for i := range b.Tools {
		for _, text := range b.Tools[i].notes {
			add(b.Tools[i].Name, text, true)
		}
		_, fault := b.rollback(&b.Tools[i])
		if fault != "" {
			add(b.Tools[i].Name, fault, true)
		}
	}
	if s.Tools != nil && !slices.ContainsFunc(b.Tools, func(t Tool) bool { return s.offers(t.Name) }) {
		add("", "no tool matches the patterns of the configuration", false)
	}
	return faults
}

func (b *Blueprint) checkEnvelope(s *Source, add func(tool, text string, warning bool)) {
	_, wrong := outbound.ServerURL(b.Endpoint)
	switch {
	case len(b.Tools)+len(b.unreadable) == 0:
		add("", "capabilities.tools is missing or empty", false)
	case len(s.Command) == 0 && s.URL == "" && b.Endpoint == "":
		add("", "the agent has no address: the file has no endpoint, and the configuration no url or command", false)
	case b.Endpoint != "" && wrong != "":
		add("", fmt.Sprintf("endpoint: %q %s", b.Endpoint, wrong), false)
	}
	for _, field := range [][2]string{{"name", b.Name}, {"description", b.Description}, {"version", b.Version}} {
		if strings.TrimSpace(field[1]) == "" {
			add("", field[0]+" is missing", true)
		}
	}
	if b.Version != "" && !semantic().MatchString(b.Version) {
		add("", fmt.Sprintf("version: %q is not a semantic version, like 1.2.0", b.Version), true)
	}
	if b.auth && len(s.Headers) == 0 && len(s.Command) == 0 {
		add("", "security.authRequired: the agent requires authorization; the configuration has no headers", true)
	}
}

func (b *Blueprint) dropUnusable(s *Source, add func(tool, text string, warning bool)) {
	var usable []Tool
	seen := make(map[string]bool)
	for i := range b.Tools {
		t := &b.Tools[i]
		reasons := t.makeAction(s)
		if len(reasons) == 0 && seen[t.Name] {
			reasons = []string{"the file has another tool of that name"}
		}
		seen[t.Name] = true
		for _, text := range reasons {
			add(t.Name, "is left out: "+text, true)
		}
		if len(reasons) == 0 {
			usable = append(usable, *t)
		}
	}
	b.Tools = usable
}

// makeAction makes the action of a tool. It leaves out examples and an output schema that the
// catalogue refuses. It returns why the tool cannot be used.
func (t *Tool) makeAction(s *Source) (faults []string) {
	if strings.HasPrefix(s.Prefix+actionName(t.Name), core.MessagePrefix) { // exported catalogues contain such tools
		return []string{core.MessagePrefix +
			"… is reserved for the interface of that name; if the tool does something else, give the source a prefix"}
	}
	faults = t.faults(s.Prefix)
	if len(faults) > 0 {
		return faults
	}
	t.made = s.actionOf(t)
	for _, leaveOut := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
		try := t.made
		try.DependsOn = nil
		if leaveOut[0] {
			try.Examples.Examples = nil
		}
		if leaveOut[1] {
			try.Output = nil
		}
		found := action.Lint(owner, try)
		if len(found) == 0 {
			t.noteLeftOut(&try, strings.Join(faults, "; "))
			try.DependsOn = t.made.DependsOn
			t.made = try
			return nil
		}
		if faults == nil {
			faults = found
		}
		if t.Meta.Own != nil { // an action that a bot exported is taken as it is, or not at all
			break
		}
	}
	return faults
}

// noteLeftOut notes which parts of a tool its action does not have, and why.
func (t *Tool) noteLeftOut(a *core.Action, why string) {
	if strings.TrimSpace(t.Description) == "" {
		t.notes = append(t.notes, "description is missing: the model does not know what the tool does")
	}
	switch {
	case a.Output == nil && t.made.Output != nil:
		t.notes = append(t.notes, "outputSchema is not used: "+why)
	case a.Examples.Examples == nil && len(t.Examples)+len(inputExamples(t.Input)) > 0:
		t.notes = append(t.notes, "the examples are not used: "+why)
	}
}

func (l *loaded) offered() (tools []*Tool) {
	for i := range l.Tools {
		if l.source.offers(l.Tools[i].Name) {
			tools = append(tools, &l.Tools[i])
		}
	}
	return tools
}
