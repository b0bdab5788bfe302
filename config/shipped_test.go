package config_test

import (
	"flag"
	"os"
	"testing"

	"synthbot/config"
	"synthbot/daemon"
)

//go:generate go test -run ^TestShipped$ -update .

// page describes the example and the reference of the whole configuration.
func page() config.Page {
	interfaces, plugins := daemon.Components()
	p := config.Page{
		Intro: "The configuration of synthbot: one TOML file. Unknown keys are errors. " +
			"`synthbot check` reports all problems at once.\n\n" +
			"A place is a conversation, such as a chat, a channel or a thread. Its path begins with the " +
			"interface's name: `telegram/-1001234567890/7`. The path of a user is like " +
			"`telegram/@user/1000`. `/id` in a chat shows both.",
		Tables: make(map[string][]config.Component),
	}
	for table, list := range map[string][]daemon.Component{"interfaces": interfaces, "plugins": plugins} {
		for _, c := range list {
			p.Tables[table] = append(p.Tables[table], config.Component(c))
		}
	}
	return p
}

// TestShipped checks that the shipped example and the reference page match the configuration's fields.
func TestShipped(t *testing.T) {
	for file, want := range map[string]string{
		"../config.example.toml":   page().Example(new(daemon.Config)),
		"../docs/configuration.md": page().Reference(new(daemon.Config)),
	} {
		if flag.Lookup("update").Value.String() == "true" {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil || string(got) != want {
			t.Errorf("%s is outdated (%v): run go generate ./config", file, err)
		}
	}
}

func TestEverySettingIsDescribed(t *testing.T) {
	if err := page().Lint(new(daemon.Config)); err != nil {
		t.Error(err)
	}
}
