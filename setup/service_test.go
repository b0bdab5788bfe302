package setup

import (
	"slices"
	"strings"
	"testing"
	"time"

	"synthbot/daemon"
)

// TestInspectConfig checks that inspectConfig finds every secret and program of a configuration, and takes no secret
// named command for a program.
func TestInspectConfig(t *testing.T) {
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
headers = {X = "file:d", command = "file:g"}
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
	s := &Service{Tools: true}
	s.inspectConfig(c)
	if !slices.Equal(s.programs, []string{"run"}) || !slices.Equal(s.secrets, []string{"d", "e", "g"}) {
		t.Errorf("found the programs %q and the files %q", s.programs, s.secrets)
	}
	var variables []string
	for _, note := range s.notes {
		name, _, _ := strings.Cut(strings.TrimPrefix(note, "the service has no "), ": put")
		variables = append(variables, name)
	}
	slices.Sort(variables)
	if want := []string{"env:A", "env:B", "env:C", "env:F"}; !slices.Equal(variables, want) {
		t.Errorf("found the variables %q, want %q", variables, want)
	}
}
