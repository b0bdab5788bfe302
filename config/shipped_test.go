package config_test

import (
	"flag"
	"os"
	"testing"

	"synthbot/daemon"
)

//go:generate go test -run ^TestShipped$ -update .

// TestShipped holds the shipped example and the reference page equal to what the configuration's own fields say.
func TestShipped(t *testing.T) {
	for file, want := range map[string]string{
		"../config.example.toml":   daemon.Page().Example(new(daemon.Config)),
		"../docs/configuration.md": daemon.Page().Reference(new(daemon.Config)),
	} {
		if flag.Lookup("update").Value.String() == "true" {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil || string(got) != want {
			t.Errorf("%s is not what the configuration says (%v): run go generate ./config", file, err)
		}
	}
}

func TestEverySettingIsDescribed(t *testing.T) {
	if err := daemon.Page().Lint(new(daemon.Config)); err != nil {
		t.Error(err)
	}
}
