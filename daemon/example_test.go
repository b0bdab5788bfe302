package daemon

import (
	"os"
	"testing"
	"time"

	"synthbot/config"
)

//go:generate go test -run ^TestReference$ -update .

// TestReference holds the shipped example and the reference page equal to what
// the configuration's own fields say.
func TestReference(t *testing.T) {
	for file, want := range map[string]string{
		"../config.example.toml":   Page().Example(new(Config)),
		"../docs/configuration.md": Page().Reference(new(Config)),
	} {
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil || string(got) != want {
			t.Errorf("%s is not what the configuration says (%v): run go generate ./daemon", file, err)
		}
	}
}

func TestEverySettingIsDescribed(t *testing.T) {
	if err := Page().Lint(new(Config)); err != nil {
		t.Error(err)
	}
}

// TestExampleReadsBack reads the example as it is shipped.
func TestExampleReadsBack(t *testing.T) {
	p := &Env{File: "../config.example.toml", Getenv: func(string) string { return "" }, Clock: time.Now}
	if _, err := p.Load(); err != nil {
		t.Error(err)
	}
	var c Config
	config.Defaults(&c)
	if c.Corrector.Attempts != 2 || c.Prompt.Scope != "chat" {
		t.Errorf("defaults: %+v", c)
	}
}
