package commands

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"synthbot/config"
	"synthbot/core"
	"synthbot/daemon"
)

// pages returns the user documentation, by file name.
func pages(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("../../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := make(map[string]string)
	for _, name := range append(names, "../../../README.md") {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(raw)
	}
	if len(texts) < 10 {
		t.Fatalf("found %d pages, want at least 10", len(texts))
	}
	return texts
}

// TestPagesNameWhatIs checks that the commands and flags in the documentation exist.
func TestPagesNameWhatIs(t *testing.T) {
	p := newProgram(&daemon.Env{Out: io.Discard, Err: io.Discard, Getenv: os.Getenv, Clock: time.Now}, nil)
	command := regexp.MustCompile("(?:`|\\$ |sudo )synthbot ([a-z]+)([^`\\n#]*)")
	flag := regexp.MustCompile(` (--[a-z-]+)`)
	n := 0
	for name, text := range pages(t) {
		for _, m := range command.FindAllStringSubmatch(text, -1) {
			root := p.root()
			root.InitDefaultHelpCmd()
			root.InitDefaultCompletionCmd()
			found, _, err := root.Find(append([]string{m[1]}, strings.Fields(m[2])...))
			if err != nil || found.Name() == "synthbot" {
				t.Errorf("%s has %q, which is not a command", name, m[0])
				continue
			}
			n++
			for _, f := range flag.FindAllStringSubmatch(m[2], -1) {
				if !hasFlag(found, strings.TrimPrefix(f[1], "--")) {
					t.Errorf("%s has %q, but %s has no flag %s", name, m[0], found.CommandPath(), f[1])
				}
			}
		}
	}
	if n < 50 {
		t.Errorf("found %d commands in the pages, want at least 50", n)
	}
}

func hasFlag(c *cobra.Command, name string) bool {
	return name == "help" || c.Flags().Lookup(name) != nil || c.InheritedFlags().Lookup(name) != nil
}

// TestPagesConfigure checks that the configuration examples in the documentation are valid.
func TestPagesConfigure(t *testing.T) {
	p := newProgram(&daemon.Env{Getenv: func(string) string { return "" }, Clock: time.Now}, nil)
	n := 0
	for name, text := range pages(t) {
		for _, m := range regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "profile =") || strings.Contains(m[1], "[[question]]") || !strings.Contains(m[1], "[") {
				continue // a persona, a file of questions, or a part of a table
			}
			n++
			_, err := p.Parse(name, m[1])
			for _, f := range faultsOf(err) {
				if !strings.Contains(f.Text, "no such file") && !strings.Contains(f.Text, "not there") && !strings.Contains(f.Text, "missing") && !strings.Contains(f.Text, "unknown engine") {
					t.Errorf("%s: %s\n%s", f.String(), f.Text, m[1])
				}
			}
		}
	}
	if n < 20 {
		t.Errorf("found %d configuration examples in the pages, want at least 20", n)
	}
}

func faultsOf(err error) config.Faults {
	f, _ := err.(config.Faults)
	return f
}

// TestPagesLead checks that links between pages have a target, and that the chat commands in them exist.
func TestPagesLead(t *testing.T) {
	said := chatCommands(t)
	platforms := []string{"newbot", "revoke", "setprivacy", "setjoingroups", "mybots", "metrics", "healthz", "readyz", "start", "claim", "etc", "api", "home", "root"}
	for name, text := range pages(t) {
		for _, m := range regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`).FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
			}
		}
		for _, m := range regexp.MustCompile("`/([a-z_]+)(?: [^`/]*)?`").FindAllStringSubmatch(text, -1) {
			if !slices.Contains(said, m[1]) && !slices.Contains(platforms, m[1]) {
				t.Errorf("%s has /%s, which is not a chat command", name, m[1])
			}
		}
	}
}

// chatCommands returns the names of all chat commands, with every plugin enabled.
func chatCommands(t *testing.T) (names []string) {
	t.Helper()
	var tables strings.Builder
	tables.WriteString("[bot]\ndata_dir = \"data\"\n[access]\nprivate = \"pairing\"\n")
	for _, name := range daemon.PluginNames() {
		tables.WriteString("[plugins." + name + "]\n")
	}
	file := filepath.Join(t.TempDir(), "config.toml")
	write(t, file, tables.String())
	p := newProgram(&daemon.Env{File: file, Getenv: func(string) string { return "" }, Clock: time.Now, Err: io.Discard}, nil)
	c, err := p.load()
	if err != nil {
		t.Fatal(err)
	}
	look := func(b *daemon.Bot) error {
		for _, s := range b.InForce().Commands.Specs(core.RankBot) {
			names = append(names, s.Name)
		}
		return nil
	}
	open := func() (daemon.Store, error) { return daemon.EmptyStore{}, nil }
	l := daemon.RunOptions{Config: c, Log: p.Logger(c, 0), Open: open, Interfaces: daemon.EnabledInterfaces, Inspect: look}
	if err := p.Run(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	return names
}
