package setup

import (
	"slices"
	"strings"
	"testing"
	"time"

	"synthbot/daemon"
)

// TestWalkConfig checks that walkConfig finds every secret of a configuration.
func TestWalkConfig(t *testing.T) {
	p := &daemon.Env{Getenv: func(string) string { return "" }, Clock: time.Now}
	c, err := p.Parse("config.toml", `[[engine]]
provider = "openai"
model = "m"
api_key = "env:A"
[interfaces.telegram]
token = "env:B"
[interfaces.telegram.webhook]
secret = "env:C"
[interfaces.discord]
token = "literal"
[[plugins.blueprint.source]]
path = "nowhere.json"
headers = {X = "file:d"}
command = ["run", "it"]
[[plugins.mcp.server]]
name = "x"
url = "https://x"
headers = {X = "file:e"}
[speech.out]
provider = "openai"
api_key = "env:F"
`)
	if err != nil && !strings.Contains(err.Error(), "nowhere.json") {
		t.Fatal(err)
	}
	var got []string
	walkConfig(c, func(key, text string) { got = append(got, key+" "+text) })
	slices.Sort(got)
	if want := []string{"X file:d", "X file:e", "api_key env:A", "api_key env:F", "command run", "secret env:C", "token (literal)", "token env:B"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
