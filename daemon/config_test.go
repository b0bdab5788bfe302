package daemon

import (
	"slices"
	"strings"
	"testing"
	"time"

	"synthbot/config"
	"synthbot/core"
)

// TestWalkConfig checks that WalkConfig finds every secret of a configuration.
func TestWalkConfig(t *testing.T) {
	p := &Env{Getenv: func(string) string { return "" }, Clock: time.Now}
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
	WalkConfig(c, func(key, text string) { got = append(got, key+" "+text) })
	slices.Sort(got)
	if want := []string{"X file:d", "X file:e", "api_key env:A", "api_key env:F", "command run", "secret env:C", "token (literal)", "token env:B"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// TestUnknownPaths checks that each path of the configuration and of the plugins must begin with a known interface, that
// an empty element of a list is reported, and that former names of interfaces are replaced everywhere.
func TestUnknownPaths(t *testing.T) {
	const text = `[bot]
admins = ["", "telegram/1"]
[[budget.place]]
tokens = 5
[[memory.keep]]
path = "telegarm/1"
messages = 10
[plugins.knowledge]
escalate = "telegarm/1"
[plugins.moderation]
count_all = ["telegram_bot/-1", "telegarm/1"]
[plugins.review]
[[plugins.review.place]]
path = "telegram/@user/1"
[plugins.mcp.serve]
as = "telegarm/@user/1"
see = ["telegarm/1"]
[interfaces.telegram]
token = "1:a"
`
	p := &Env{Getenv: func(string) string { return "" }, Clock: time.Now}
	c, err := p.Parse("config.toml", text)
	unknown := ": begins with telegarm, which is not an interface; there is console, discord, telegram"
	want := []string{
		"2: bot.admins[0]: is empty; write a path as /id shows it, or take it out", `2: bot.admins[1]: is not a user; write it like "telegram/@user/1000"`,
		`3: budget.place[0].path: is missing; write path = "console/kitchen"`, "6: memory.keep[0].path" + unknown, "9: plugins.knowledge.escalate" + unknown,
		"11: plugins.moderation.count_all[1]" + unknown, "14: plugins.review.place[0].path: is the path of a user; write the path of a place, as /id shows it there",
		"16: plugins.mcp.serve.as" + unknown, "17: plugins.mcp.serve.see[0]" + unknown,
	}
	if got := strings.ReplaceAll(err.Error(), "config.toml:", ""); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	c.eachPath(func(key config.Key, _ string, p *core.Path) {
		if key.String() == "plugins.moderation.count_all[0]" && p.String() != "telegram/-1" {
			t.Errorf("%s is still %s", key, p)
		}
	})
}
