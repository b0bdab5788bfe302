package daemon

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/action"
)

// TestOverrides checks that each setting comes from the longest path that sets it.
func TestOverrides(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "gm.toml"), `name = "Gamemaster"`)
	file := filepath.Join(dir, "config.toml")
	write(t, file, `
[bot]
activation = "never"
[[engine]]
name = "home"
provider = "vllm"
model = "m"
base_url = "http://127.0.0.1:1"
[[grant]]
from = "discord/1/2"
to = "discord/1/3"
[[override]]
path = "discord/1"
persona = "gm.toml"
activation = "always"
actions_deny = ["web_*"]
[[override]]
path = "discord/1/2"
activation = "keyword"
keywords = ["dice"]
engine = "home"
`)
	p := &Env{File: file, Getenv: func(string) string { return "" }, Clock: time.Now}
	c, err := p.Load()
	if err != nil {
		t.Fatal(err)
	}
	parts := &parts{Config: c, personas: c.Personas, settings: c.resolver(new(placeChanges), nil)}
	for _, tc := range []struct{ place, activation, keyword, engine, persona string }{
		{"discord/9", "never", "", "", "Aria"},
		{"discord/1", "always", "", "", "Gamemaster"},
		{"discord/1/2/7", "keyword", "dice", "home", "Gamemaster"},
		{"discord/11/2", "never", "", "", "Aria"},
	} {
		place := core.MustPath(tc.place)
		s, who := parts.settings.At(place), c.PersonaAt(place)
		if s.Activation != tc.activation || strings.Join(s.Keywords, " ") != tc.keyword || s.Engine != tc.engine || who.Name != tc.persona {
			t.Errorf("%s: %+v, persona %s", place, s, who.Name)
		}
	}
	policy := parts.policy()
	if len(policy.Grants) != 1 || policy.Grants[0] != (action.Grant{From: core.MustPath("discord/1/2"), To: core.MustPath("discord/1/3")}) {
		t.Errorf("grants %+v", policy.Grants)
	}
	if len(policy.Rules) != 1 || policy.Rules[0].Permission != action.Nobody || policy.Rules[0].Actions[0] != "web_*" {
		t.Errorf("rules %+v", policy.Rules)
	}
}

// TestFaultsOfReferences checks that missing files and unknown names are reported all at once, each with its
// key.
func TestFaultsOfReferences(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.toml")
	write(t, file, `[persona]
path = "nobody.toml"
[[engine]]
provider = "offline"
[[engine]]
provider = "offline"
[[override]]
path = "discord/1"
persona = "nowhere.png"
engine = "nothere"
[plugins.oracle]
enabled = true
[metrics]
listen = "0.0.0.0:9787"
`)
	p := &Env{File: file, Getenv: func(string) string { return "" }, Clock: time.Now}
	_, err := p.Load()
	if err == nil {
		t.Fatal("Load found no fault")
	}
	for _, want := range []string{":2: persona.path: ", ":4: engine[0].provider: ", ": engine[1].name: ", ":9: override[0].persona: ", ":10: override[0].engine: ", ": plugins.oracle: ", ":14: metrics.listen: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
}
