package command

import (
	"strings"
	"testing"

	"synthbot/core"
)

// TestComplete: command names, choices and other arguments are completed as far as the user's rank allows.
func TestComplete(t *testing.T) {
	r, err := New([]Command{
		{Spec: Spec{Name: "set", Brief: "x", Rank: core.RankAdmin, Args: []Arg{
			{Name: "what", Brief: "x", Choices: []string{"engine", "persona"}}, {Name: "value", Brief: "x"},
		}}, Do: nothing},
		{Spec: Spec{Name: "say", Brief: "x", Args: []Arg{{Name: "path", Brief: "x"}}}, Do: nothing},
	})
	if err != nil {
		t.Fatal(err)
	}
	known := func(s *Spec, a *Arg, before []string) []string {
		return []string{s.Name + "-" + a.Name + "-" + strings.Join(before, "+")}
	}
	for _, tc := range []struct {
		line string
		rank core.Rank
		want string
	}{
		{"/s", core.RankAdmin, "/say /set"}, {"/s", core.RankMember, "/say"}, {"/x", core.RankAdmin, ""}, {"hello", core.RankAdmin, ""},
		{"/set ", core.RankAdmin, "engine persona"}, {"/set e", core.RankAdmin, "engine"}, {"/set ", core.RankMember, ""},
		{"/set engine ", core.RankAdmin, "set-value-engine"}, {"/set engine h", core.RankAdmin, ""}, {"/set engine home ", core.RankAdmin, ""},
		{"/say say", core.RankMember, "say-path-"}, {"/SAY ", core.RankMember, "say-path-"},
	} {
		if got := strings.Join(r.Complete(tc.line, tc.rank, known), " "); got != tc.want {
			t.Errorf("%q of rank %v: got %q, want %q", tc.line, tc.rank, got, tc.want)
		}
	}
}
