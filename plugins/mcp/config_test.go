package mcp

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"synthbot/config"
	"synthbot/core"
)

// environ is an environment with a secret.
func environ(name string) string { return map[string]string{"KEY": "k-123456"}[name] }

func configure(text string) (c Config, err error) {
	return c, config.Read("c.toml", []byte(text), &c, config.Options{Getenv: environ})
}

func TestConfig(t *testing.T) {
	var c Config
	err := config.Read("c.toml", []byte(`
[[server]]
name = "files"
command = ["npx", "-y", "server"]
env = { KEY = "env:KEY" }
permissions = { "read_*" = "everyone", write_file = "nobody" }
confirm = { "*" = false, "delete_*" = true }
[[server]]
name = "far"
url = "https://tools.example.org/mcp"
headers = { Authorization = "env:KEY" }
timeout = "5s"
[serve]
as = "room/@user/jay"
see = ["room/1"]
`), &c, config.Options{Getenv: environ})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Servers[0]
	if s.Env["KEY"].Reveal() != "k-123456" || s.Permission != "admins" || s.Timeout != time.Minute || s.Start != 30*time.Second || s.MaxOutput != 12_000 || !s.Media {
		t.Errorf("got %+v", s)
	}
	for tool, want := range map[string]string{"read_file": "everyone true", "write_file": " false", "list": "admins true"} {
		p, open := s.permission(tool)
		if got := string(p) + map[bool]string{true: " true", false: " false"}[open]; got != want {
			t.Errorf("%s: got %s, want %s", tool, got, want)
		}
	}
	for tool, want := range map[string]bool{"delete_all": true, "write": false} {
		if got, said := closest(s.Confirm, tool); got != want || !said {
			t.Errorf("%s: got %v", tool, got)
		}
	}
	if _, err := New(core.Host{Log: discardLog()}, c); err != nil {
		t.Error(err)
	}
}

func TestConfigFaults(t *testing.T) {
	_, err := configure(`
[[server]]
name = "A b"
command = ["x"]
[[server]]
name = "message-1"
command = [""]
headers = { X = "1" }
[[server]]
name = "both"
command = ["x"]
url = "http://h/"
[[server]]
name = "neither"
[[server]]
name = "bad-url"
url = "ftp://h/"
env = { A = "1" }
[[server]]
name = "passes"
url = "https://me:pw@h/?key=1"
[[server]]
name = "patterns"
command = ["x"]
env = { "A-B" = "1" }
tools = ["[a"]
permissions = { a = "everybody", "[b" = "everyone" }
confirm = { "[c" = true }
[serve]
as = "room/1"
[[server]]
name = "headers"
url = "http://h"
headers = { "a b" = "1" }
`)
	want := []string{
		"3: server[0].name: write a-z", "server[1].name: write a-z", "server[1].command[0]: names no program", "server[1].headers: are for a url",
		"server[2].url: is set beside command", "server[3].command: is missing", "server[4].url: is not an address", "server[4].env: is for a command",
		"server[5].url: must not have a user name, password", "server[6].env.A-B: is not a valid variable name", "server[6].tools[0]: \"[a\" is not a pattern",
		`server[6].permissions.a: is "everybody"`, `server[6].permissions."[b": "[b" is not a pattern`, `server[6].confirm."[c"`,
		"serve.as: is not a user", `server[7].headers."a b": is not a valid header name`,
	}
	if err == nil {
		t.Fatal("no fault")
	}
	got := err.Error()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("no fault %q in\n%s", w, got)
		}
	}
	if n := strings.Count(got, "\n") + 1; n != len(want) {
		t.Errorf("got %d faults, want %d:\n%s", n, len(want), got)
	}
	if strings.Contains(got, "pw") {
		t.Error("a fault contains a password")
	}
	_, err = configure("[[server]]\nname = \"a-b\"\ncommand = [\"x\"]\n[[server]]\nname = \"ab\"\ncommand = [\"x\"]")
	if err == nil || !strings.Contains(err.Error(), "c.toml:5: server[1].name: another server has the same") {
		t.Error(err)
	}
	_, err = configure("[serve]\nsee = [\"room/1\"]")
	if diff := cmp.Diff("as: is missing; name the user on whose behalf the program acts", tail(err)); diff != "" {
		t.Error(diff)
	}
}

// tail returns a fault without its position in the file.
func tail(err error) string {
	if err == nil {
		return ""
	}
	_, rest, _ := strings.Cut(err.Error(), "serve.")
	return rest
}

// TestConfigTags checks the tags from which the page of settings is generated.
func TestConfigTags(t *testing.T) {
	if _, err := configure(""); err != nil {
		t.Error(err)
	}
	server := "[[server]]\nname = \"a\"\n"
	for _, text := range []string{server + "command = [\"x\"]\n" + server + "command = [\"x\"]\n", server} {
		if c, err := configure(text); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}
