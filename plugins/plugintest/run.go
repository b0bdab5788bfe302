package plugintest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rogpeppe/go-internal/txtar"

	"synthbot/config"
	"synthbot/core"
	"synthbot/core/turn"
)

var update = flag.Bool("update-scripts", false, "write the scripts of conversations anew with what was said")

// Option configures the scripts of a Run.
type Option func(*plan)

// plan is the configuration of the scripts of a Run.
type plan struct {
	builders []builder
	vars     map[string]string
	verbs    map[string]func(s *Script, arg string)
	tune     []func(*turn.Options)
	live     bool
	caught   func(fault string) // nil but in the package's own tests: a fault fails the test
}

// builder makes a plugin, again after each restart.
type builder struct {
	name string
	make func(h core.Host, table []byte, getenv func(string) string) (core.Plugin, error)
}

// Of adds a plugin with the name of its package. Its Config is read from the
// script's file NAME.toml or, if it is the only plugin, config.toml.
func Of[C any, P core.Plugin](make func(core.Host, C) (P, error)) Option {
	t := reflect.TypeFor[P]()
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	path := strings.TrimSuffix(t.PkgPath(), "_test")
	return Named(path[strings.LastIndexByte(path, '/')+1:], make)
}

// Named is [Of] for a plugin whose name is not that of its package.
func Named[C any, P core.Plugin](name string, make func(core.Host, C) (P, error)) Option {
	build := func(h core.Host, table []byte, getenv func(string) string) (core.Plugin, error) {
		var c C
		if err := config.Read(name+".toml", table, &c, config.Options{Getenv: getenv}); err != nil {
			return nil, err
		}
		return make(h, c)
	}
	return func(p *plan) { p.builders = append(p.builders, builder{name, build}) }
}

// With adds a plugin that needs neither Host nor Config, such as a coretest.Plugin; it lives through restarts.
func With(other core.Plugin) Option {
	build := func(core.Host, []byte, func(string) string) (core.Plugin, error) { return other, nil }
	return func(p *plan) { p.builders = append(p.builders, builder{other.Name(), build}) }
}

// Var sets a variable of the scripts: the address of a server, say. A
// configuration reads it as ${name}, too, and a secret as env:name.
func Var(name, value string) Option {
	return func(p *plan) { p.vars[name] = value }
}

// Verb adds a command to the language: a line that begins with the word. It may fail the script with s.Fatalf.
func Verb(word string, do func(s *Script, arg string)) Option {
	return func(p *plan) { p.verbs[word] = do }
}

// Tune changes the options of the turns, after each start.
func Tune(f func(*turn.Options)) Option {
	return func(p *plan) { p.tune = append(p.tune, f) }
}

// Live runs the scripts in real time, for plugins that use the network or processes; see the package's section on time.
func Live() Option {
	return func(p *plan) { p.live = true }
}

// Run runs each script whose file matches the pattern as a subtest.
func Run(t *testing.T, pattern string, options ...Option) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no script is called %s (%v)", pattern, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		t.Run(name, func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			run(t, file, archive, options)
			if *update && !t.Failed() {
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// Text runs a script in the test itself.
func Text(t *testing.T, script string, options ...Option) {
	t.Helper()
	run(t, "script", txtar.Parse([]byte(script)), options)
}

func run(t *testing.T, file string, archive *txtar.Archive, options []Option) {
	p := plan{vars: make(map[string]string), verbs: make(map[string]func(*Script, string))}
	for _, o := range options {
		o(&p)
	}
	lines, err := parse(string(archive.Comment))
	if err != nil {
		p.fail(t, fmt.Sprintf("%s:%v", file, err))
		return
	}
	play := func(t *testing.T) {
		s := newScript(t, &p, file, archive, lines)
		defer s.caught()
		defer s.end()
		for i := range lines {
			s.line = &lines[i]
			s.do()
		}
		lines = append(lines, line{number: strings.Count(string(archive.Comment), "\n") + 1, text: "the end"})
		s.line = &lines[len(lines)-1]
		s.settle()
		s.quiet()
		s.answered()
	}
	if p.live {
		play(t)
	} else {
		synctest.Test(t, play)
	}
	if *update {
		archive.Comment = []byte(rewritten(string(archive.Comment), lines))
	}
}

// fail ends a script before it begins.
func (p *plan) fail(t *testing.T, text string) {
	if p.caught == nil {
		t.Fatal(text)
	}
	p.caught(text)
}

// table returns the configuration of a plugin in the script's files.
func table(archive *txtar.Archive, name string, alone bool) []byte {
	for _, f := range archive.Files {
		if f.Name == name+".toml" || alone && f.Name == "config.toml" {
			return f.Data
		}
	}
	return nil
}

// checkName returns an error unless a plugin has the name that its host gave it.
func checkName(p core.Plugin, name string) error {
	if p.Name() != name {
		return fmt.Errorf("the plugin calls itself %q, its host calls it %q", p.Name(), name)
	}
	return nil
}
