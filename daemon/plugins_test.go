package daemon

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/command"
)

// assembled returns the bot of a configuration without a store, as commands that only inspect it get it.
func assembled(t *testing.T, toml string) *Bot {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.toml")
	write(t, file, "[bot]\ndata_dir = \"data\"\n"+toml)
	p := &Env{File: file, Getenv: func(string) string { return "" }, Clock: time.Now, In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}
	c, err := p.Load()
	if err != nil {
		t.Fatal(err)
	}
	var b *Bot
	l := RunOptions{
		Config: c, Log: p.Logger(c, 0), Open: func() (Store, error) { return EmptyStore{}, nil },
		Interfaces: InspectionInterfaces, Inspect: func(made *Bot) error { b = made; return nil },
	}
	if err := p.Run(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestHelpIsTranslated checks that /help is translated into each language of the offline engine.
func TestHelpIsTranslated(t *testing.T) {
	help, _ := assembled(t, "").InForce().Commands.Find("help")
	for language, want := range map[string]string{
		"en": "Just talk to me", "de": "Schreib mir", "es": "Escríbeme", "fr": "Écris-moi", "it": "Scrivimi",
	} {
		c := command.Call{Locale: language, Private: true, Author: core.Author{Rank: core.RankModerator}}
		if got, err := help.Do(t.Context(), c); err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s, %v", language, got, err)
		}
	}
}

// actionInScript matches an action that a script makes the model plan.
var actionInScript = regexp.MustCompile(`(?m)^does< ([a-z0-9_.-]+)|"type":"([a-z0-9_.-]+)"`)

// scriptedActions returns the names of all actions in the scripts below a folder.
func scriptedActions(t *testing.T, folder string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains([]string{".txt", ".txtar"}, filepath.Ext(path)) {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range actionInScript.FindAllStringSubmatch(string(text), -1) {
			names = append(names, m[1]+m[2])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// everyPlugin returns a configuration with all plugins and all of their actions with fixed names.
func everyPlugin() string {
	var tables strings.Builder
	tables.WriteString("[speech.out]\nprovider = \"program\"\nprogram = [\"/bin/true\"]\n")
	for _, a := range availablePlugins {
		tables.WriteString("[plugins." + a.name + "]\n")
	}
	return strings.NewReplacer(
		"[plugins.web]\n", "[plugins.web]\nsearxng = \"http://127.0.0.1:8888\"\n",
		"[plugins.standard]\n", "[plugins.standard]\nactions = [\"display\", \"notify\", \"wait\", \"confirm\", \"api_call\", \"speak\"]\n"+
			"[[plugins.standard.api]]\nname = \"bank\"\nurl = \"https://bank.example.org\"\n",
	).Replace(tables.String())
}

// TestEveryActionDeclaresItsEffects checks that each action of every plugin and interface declares its effects,
// and that its schemas, defaults and examples fit each other. A start does not check that.
func TestEveryActionDeclaresItsEffects(t *testing.T) {
	b := assembled(t, "[interfaces.telegram]\ntoken = \"1:a\"\n[interfaces.discord]\ntoken = \"a.b.c\"\n"+everyPlugin())
	all := b.InForce().Snapshot.All()
	for _, d := range all {
		if d.Effects == 0 || d.Effects&core.EffectNone != 0 && d.Effects != core.EffectNone {
			t.Errorf("%s of %s declares the effects %b", d.Name, d.Owner, d.Effects)
		}
		alone := d.Action
		alone.DependsOn = nil
		for _, fault := range action.Lint(d.Owner, alone) {
			t.Errorf("%s of %s: %s", d.Name, d.Owner, fault)
		}
	}
	for name, effect := range map[string]core.Effect{
		"web_fetch": core.EffectReadsForeign | core.EffectRequests, "web_search": core.EffectReadsForeign | core.EffectFinds,
		"mute_here": core.EffectChanges, "delete_telegram": core.EffectChanges, "delete_discord": core.EffectChanges | core.EffectRanked,
		"memory_forget": core.EffectChanges, "photo_telegram": core.EffectRequests, "api_call": core.EffectReadsForeign,
	} {
		if d, ok := b.InForce().Snapshot.Resolve(name); !ok || d.Effects&effect != effect {
			t.Errorf("%s: does not have the effects %b", name, effect)
		}
	}
	if len(all) < 40 {
		t.Errorf("got %d actions, want at least 40", len(all))
	}
}

// TestEveryActionHasAConversation checks that each action with a fixed name occurs in a scripted conversation
// of its plugin.
func TestEveryActionHasAConversation(t *testing.T) {
	all := everyPlugin()
	seen := make(map[string]int)
	for _, d := range assembled(t, all).InForce().Snapshot.All() {
		folder := filepath.Join("..", "plugins", d.Owner, "testdata")
		if !slices.ContainsFunc(availablePlugins, func(a available) bool { return a.name == d.Owner }) {
			continue
		}
		seen[d.Owner]++
		if !slices.Contains(scriptedActions(t, folder), d.Name) {
			t.Errorf("%s of %s occurs in no script below %s", d.Name, d.Owner, folder)
		}
	}
	for owner, least := range map[string]int{"memory": 4, "reminders": 3, "people": 2, "diary": 2, "games": 5, "standard": 6, "moderation": 4, "clock": 1, "web": 2} {
		if seen[owner] < least {
			t.Errorf("%s has %d actions here, want at least %d", owner, seen[owner], least)
		}
	}
	scripted := scriptedActions(t, "../plugins/mcp/testdata")
	for _, kind := range []string{"_resource_read", "_prompt_get", "_"} {
		if !slices.ContainsFunc(scripted, func(name string) bool { return strings.Contains(name, kind) }) {
			t.Errorf("no script has an MCP action with %s in its name", kind)
		}
	}
	bank, err := os.ReadFile("../plugins/blueprint/testdata/bank/ai-tools.json")
	if err != nil {
		t.Fatal(err)
	}
	var tools struct {
		Capabilities struct{ Tools []struct{ Name string } }
	}
	if err := json.Unmarshal(bank, &tools); err != nil || len(tools.Capabilities.Tools) < 7 {
		t.Fatalf("the bank's tools: got %v, %v, want at least 7", tools, err)
	}
	scripted = scriptedActions(t, "../plugins/blueprint/testdata")
	for _, tool := range tools.Capabilities.Tools {
		if !slices.Contains(scripted, tool.Name) {
			t.Errorf("%s of the bank occurs in no script", tool.Name)
		}
	}
}

// TestEveryPluginConforms checks that each plugin has a test that calls plugintest.Conform.
func TestEveryPluginConforms(t *testing.T) {
	for _, a := range availablePlugins {
		files, err := filepath.Glob(filepath.Join("..", "plugins", a.name, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(text), "plugintest.Conform(t,")
		}) {
			t.Errorf("no test of plugins/%s calls plugintest.Conform", a.name)
		}
	}
}

// TestFewActionsAtFirst checks that a configuration with interfaces only offers an ordinary user at most ten
// actions on each platform.
func TestFewActionsAtFirst(t *testing.T) {
	b := assembled(t, "[interfaces.telegram]\ntoken = \"1:a\"\n[interfaces.discord]\ntoken = \"a.b.c\"\n")
	for _, place := range []string{"console/main", "telegram/1000", "telegram/-1001234567890/7", "discord/81384788765712384/2", "discord/@me/3"} {
		path := core.MustPath(place)
		offer := b.InForce().Snapshot.Offer(action.Requester{Path: path, Private: !strings.Contains(place, "-100") && !strings.Contains(place, "/2"), Authors: []core.Author{{ID: "5"}}})
		var names []string
		for _, d := range offer {
			names = append(names, d.Name)
		}
		if len(names) > 10 || !slices.Contains(names, "message_"+path.Interface()) || !slices.Contains(names, "memory_save") {
			t.Errorf("%s: %d actions, want at most 10: %v", place, len(names), names)
		}
	}
}
