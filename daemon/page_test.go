package daemon

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"synthbot/config"
	"synthbot/core/engine"
	"synthbot/core/secret"
)

// TestNoPageCostsNothing holds that turns tell nobody how far they are where
// nobody can look.
func TestNoPageCostsNothing(t *testing.T) {
	var p pageServer
	if n := len(p.watchers(new(Config))); n != 0 {
		t.Errorf("%d watch turns for a page that is off", n)
	}
	if n := len(p.watchers(&Config{Tables: Tables{Admin: Listener{Listen: "127.0.0.1:0"}}})); n != 1 {
		t.Errorf("%d watch turns for a page that is on", n)
	}
}

func TestSettingsHideSecrets(t *testing.T) {
	var all []string
	row := func(path string, v reflect.Value) { all = append(all, path+"="+shownValue(path, v)) }
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
	config.Walk("", &c, row)
	want := "token= url=https://[secret]@example.org/x env=(1, not shown) headers=(1, not shown) inner.after=1m0s list[0].n=3"
	if got := strings.Join(all, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestDefaultsOfEngines: what an engine's table does not set is its default, as the page shows it.
func TestDefaultsOfEngines(t *testing.T) {
	var c Config
	c.Engines = make([]engine.Config, 2)
	config.Defaults(&c.Engines[0], &c.Engines[1])
	c.Engines[1].Model = "m"
	defaults := make(map[string]string)
	c.defaults().walk(func(path string, v reflect.Value) { defaults[path] = shownValue(path, v) })
	var other []string
	c.walk(func(path string, v reflect.Value) {
		if strings.HasPrefix(path, "engine[") && shownValue(path, v) != defaults[path] {
			other = append(other, path)
		}
	})
	if len(other) != 1 || other[0] != "engine[1].model" {
		t.Errorf("set are %q", other)
	}
}
