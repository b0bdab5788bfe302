package daemon

import (
	"slices"
	"strings"
	"testing"
	"time"

	"synthbot/config"
	"synthbot/core/engine"
	"synthbot/core/secret"
)

// TestNoPageCostsNothing checks that turns have no watcher while the admin page is off.
func TestNoPageCostsNothing(t *testing.T) {
	var p pageServer
	if n := len(p.watchers(new(Config))); n != 0 {
		t.Errorf("got %d watchers with the page off, want none", n)
	}
	if n := len(p.watchers(&Config{Tables: Tables{Admin: Listener{Listen: "127.0.0.1:0"}}})); n != 1 {
		t.Errorf("got %d watchers with the page on, want one", n)
	}
}

func TestSettingsHideSecrets(t *testing.T) {
	var all []string
	row := func(s config.Setting) { all = append(all, s.Key.String()+"="+shownValue(s)) }
	c := struct {
		Token secret.Secret     `toml:"token"`
		URL   string            `toml:"url"`
		Env   []string          `toml:"env"`
		Head  map[string]string `toml:"headers"`
		Inner struct {
			After time.Duration `toml:"after"`
		} `toml:"inner"`
		List []struct {
			N int `toml:"n"`
		} `toml:"list"`
		None *int `toml:"none"`
		own  int
	}{URL: "https://me:swordfish@example.org/x", Env: []string{"K=swordfish"}, Head: map[string]string{"a": "swordfish"}}
	c.Inner.After, c.own = time.Minute, 1
	c.List = append(c.List, struct {
		N int `toml:"n"`
	}{3})
	config.Walk(nil, &c, row)
	want := "token= url=https://[secret]@example.org/x env=(1, not shown) headers=(1, not shown) inner.after=1m0s list[0].n=3"
	if got := strings.Join(all, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestSettingsOfLists checks that the page shows defaults for unset keys of list elements, or leaves them out.
func TestSettingsOfLists(t *testing.T) {
	c := Config{File: "config.toml"}
	c.Engines, c.Overrides = make([]engine.Config, 2), make([]Override, 2)
	config.Defaults(&c.Tables, &c.Engines[0], &c.Engines[1], &c.Overrides[0], &c.Overrides[1])
	c.Engines[1].Model, c.Overrides[1].Scope = "m", "chat"
	shown := make(map[string]string)
	var set []string
	for _, row := range c.shownSettings() {
		shown[row.Name] = row.Value
		if row.From == c.File {
			set = append(set, row.Name)
		}
	}
	slices.Sort(set)
	if want := []string{"engine[1].model", "override[1].scope"}; !slices.Equal(set, want) {
		t.Errorf("set: got %q, want %q", set, want)
	}
	for name, want := range map[string]bool{
		"engine[0].timeout": true, "override[0].keywords": false, "override[0].scope": false, "bot.keywords": true,
	} {
		if _, ok := shown[name]; ok != want {
			t.Errorf("%s: shown = %t, want %t", name, ok, want)
		}
	}
}
