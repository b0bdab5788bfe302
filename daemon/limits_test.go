package daemon

import (
	"strings"
	"testing"
	"time"

	"synthbot/core"
)

// TestTwoLimits: a place has one limit of tokens.
func TestTwoLimits(t *testing.T) {
	file := t.TempDir() + "/config.toml"
	write(t, file, "[[budget.place]]\npath = \"desk/1\"\ntokens = 5\n[[override]]\npath = \"desk/1\"\ntokens = 6\n")
	p := &Env{File: file, Getenv: func(string) string { return "" }, Clock: time.Now}
	if _, err := p.Load(); err == nil || !strings.Contains(err.Error(), ":6: override[0].tokens: has a budget.place") {
		t.Errorf("%v", err)
	}
}

// TestAllowByCommand: of lists of what is to be had, that of the longest path
// counts, and of equals the command's.
func TestAllowByCommand(t *testing.T) {
	list := "dice_*"
	b := &Bot{overlay: &overlay{places: map[core.Path]changed{core.MustPath("desk/1"): {Allow: &list}}}}
	c := &Config{Overrides: []Override{{Path: core.MustPath("desk/1"), ActionsAllow: []string{"web_*"}}, {Path: core.MustPath("desk/1/2"), ActionsAllow: []string{"memory_*"}}}}
	for place, want := range map[string]string{"desk/1": "dice_* a command in desk/1", "desk/1/2/3": "memory_* override desk/1/2", "desk/2": "all -"} {
		b.limitsInEffect(c, core.MustPath(place), func(name, value, from string) {
			if name == "actions_allow" && value+" "+from != want {
				t.Errorf("%s: %s %s, want %s", place, value, from, want)
			}
		})
	}
}
