package daemon

import (
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/daemon/settings"
	"synthbot/memory"
)

// TestTwoLimits checks that a place cannot have a token limit in both budget.place and override.
func TestTwoLimits(t *testing.T) {
	file := t.TempDir() + "/config.toml"
	write(t, file, "[[budget.place]]\npath = \"desk/1\"\ntokens = 5\n[[override]]\npath = \"desk/1\"\ntokens = 6\n")
	p := &Env{File: file, Getenv: func(string) string { return "" }, Clock: time.Now}
	if _, err := p.Load(); err == nil || !strings.Contains(err.Error(), ":6: override[0].tokens: has a budget.place") {
		t.Errorf("got %v, want a fault of override[0].tokens", err)
	}
}

// TestAllowByCommand checks that actions_allow of the longest path applies, and that a command wins over an
// override of the same path.
func TestAllowByCommand(t *testing.T) {
	db, err := memory.Open(t.TempDir(), memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	changes, err := settings.Open[settings.Settings](t.Context(), db.Items("bot"))
	if err != nil {
		t.Fatal(err)
	}
	if err := changes.Set(t.Context(), core.MustPath("desk/1"), "actions_allow", "dice_*"); err != nil {
		t.Fatal(err)
	}
	c := &Config{Tables: Tables{Overrides: []Override{
		{Path: core.MustPath("desk/1"), Settings: settings.Settings{ActionsAllow: settings.Patterns{"web_*"}}},
		{Path: core.MustPath("desk/1/2"), Settings: settings.Settings{ActionsAllow: settings.Patterns{"memory_*"}}},
	}}}
	r := c.resolver(changes, nil)
	for place, want := range map[string]string{"desk/1": "dice_* a command in desk/1", "desk/1/2/3": "memory_* override desk/1/2", "desk/2": "all -"} {
		for _, row := range r.Rows(core.MustPath(place)) {
			if row.Name == "actions_allow" && row.Value+" "+row.From != want {
				t.Errorf("%s: got %s %s, want %s", place, row.Value, row.From, want)
			}
		}
	}
}
