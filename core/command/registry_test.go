package command

import (
	"context"
	"maps"
	"strings"
	"testing"

	"synthbot/core"
)

// nothing is a command that does nothing.
func nothing(context.Context, Call) (string, error) { return "", nil }

// TestNew: New refuses invalid commands and double names.
func TestNew(t *testing.T) {
	good := Command{Spec: Spec{Name: "help", Brief: "Tell what there is"}, Do: nothing}
	bad := []struct {
		c    Command
		want string
	}{
		{Command{Spec: Spec{Name: "Help", Brief: "x"}, Do: nothing}, "the name"},
		{Command{Spec: Spec{Name: "a", Brief: "two\nlines"}, Do: nothing}, "the brief"},
		{Command{Spec: Spec{Name: "a", Brief: "x"}}, "no code to run"},
		{Command{Spec: Spec{Name: "a", Brief: "x", Args: []Arg{{Name: "r", Brief: "x", Rest: true}, {Name: "s", Brief: "x"}}}, Do: nothing}, "the rest"},
		{Command{Spec: Spec{Name: "a", Brief: "x", Args: []Arg{{Name: "r", Brief: "x"}, {Name: "s", Brief: "x", Required: true}}}, Do: nothing}, "required"},
		{good, "two of that name"},
	}
	for _, b := range bad {
		if _, err := New([]Command{good}, []Command{b.c}); err == nil || !strings.Contains(err.Error(), b.want) {
			t.Errorf("%+v: got %v, want %q", b.c.Spec, err, b.want)
		}
	}
}

// TestSpecs: users see the commands of their rank, sorted by name. Names are found in any case.
func TestSpecs(t *testing.T) {
	r, err := New([]Command{
		{Spec: Spec{Name: "usage", Brief: "x", Rank: core.RankAdmin}, Do: nothing},
		{Spec: Spec{Name: "help", Brief: "x"}, Do: nothing},
	})
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Specs(core.RankModerator); len(s) != 1 || s[0].Name != "help" {
		t.Errorf("a moderator: got %v, want help", s)
	}
	if s := r.Specs(core.RankAdmin); len(s) != 2 || s[0].Name != "help" || s[1].Name != "usage" {
		t.Errorf("an admin: got %v, want help and usage", s)
	}
	if _, ok := r.Find("HELP"); !ok {
		t.Error("HELP was not found")
	}
}

// TestHelp: the help is in the caller's language if all of its lines are available in that language.
// It lists only commands that the caller may call there.
func TestHelp(t *testing.T) {
	r, err := New([]Command{
		{Spec: Spec{Name: "usage", Brief: "Show costs", Rank: core.RankAdmin}, Do: nothing},
		{Spec: Spec{Name: "help", Brief: "Show this", Briefs: map[string]string{"it": "Mostra questo", "xx": "?"}}, Do: nothing},
		{Spec: Spec{Name: "mine", Brief: "Show yours", Private: true}, Do: nothing},
		{Spec: Spec{Name: "start", Brief: "Say hello"}, Do: nothing},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		locale  string
		rank    core.Rank
		private bool
		want    string
	}{
		{"it-IT", core.RankMember, false, "Scrivimi e basta. Inoltre:\n\n- /help – Mostra questo"},
		{"it", core.RankMember, true, "Just talk to me. Besides:\n\n- /help – Show this\n- /mine – Show yours"},
		{"it", core.RankAdmin, false, "Just talk to me. Besides:\n\n- /help – Show this\n- /usage – Show costs"},
		{"xx", core.RankMember, false, "Just talk to me. Besides:\n\n- /help – Show this"},
		{"", core.RankMember, false, "Just talk to me. Besides:\n\n- /help – Show this"},
	} {
		call := Call{Locale: tc.locale, Private: tc.private, Author: core.Author{Rank: tc.rank}}
		if got := r.Help(call, "start"); got != tc.want {
			t.Errorf("%+v: got %q", tc, got)
		}
	}
}

// TestHelpOn: the help on one command describes it, its usage and its arguments. For an unknown command,
// a similar one is suggested.
func TestHelpOn(t *testing.T) {
	r, err := New([]Command{
		{Spec: Spec{Name: "help", Brief: "Show this", Briefs: map[string]string{"it": "Mostra questo"}}, Do: nothing},
		{Spec: Spec{Name: "mute", Brief: "Mute me", Args: []Arg{{Name: "duration", Brief: "Like 30m"}, {Name: "person", Brief: "Who", Rest: true}}}, Do: nothing},
		{Spec: Spec{Name: "poll", Brief: "Start a poll", Private: true, Form: "Tea? Yes | No", Args: []Arg{{Name: "poll", Brief: "All of it", Required: true}}}, Do: nothing},
		{Spec: Spec{Name: "usage", Brief: "Show costs", Rank: core.RankAdmin}, Do: nothing},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"mute":   "/mute – Mute me\n\nUsage: `/mute [duration] [person]`\n- duration: Like 30m\n- person: Who",
		" /Poll": "/poll – Start a poll (in private only)\n\nUsage: `/poll Tea? Yes | No`\n- poll: All of it",
		"help":   "/help – Mostra questo\n\nUsage: `/help`",
		"usage":  "I don't know the command /usage. /help shows my commands.",
		"mut":    "I don't know the command /mut. Did you mean /mute? /help shows my commands.",
		"*x*":    "I don't know that command. /help shows my commands.",
	} {
		if got := r.HelpOn(Call{Locale: "it-IT"}, name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
	poll, _ := r.Find("poll")
	if _, err := poll.Parse(nil); err == nil || err.Error() != "invalid: poll is missing. Usage: `/poll Tea? Yes | No`" {
		t.Errorf("without arguments: got %v", err)
	}
}

// TestParse: arguments are assigned in order, choices are checked, and an implied choice may be left out.
func TestParse(t *testing.T) {
	s := Spec{Name: "remind", Args: []Arg{
		{Name: "what", Brief: "x", Required: true, Choices: []string{"add", "list"}}, {Name: "text", Brief: "x", Rest: true},
	}}
	cases := []struct {
		given []string
		want  map[string]string
		fault string
	}{
		{[]string{"add", "tea", " at  five"}, map[string]string{"what": "add", "text": "tea  at  five"}, ""},
		{[]string{"LIST"}, map[string]string{"what": "list"}, ""},
		{nil, nil, "what is missing. Usage: `/remind add|list [text]`"},
		{[]string{"drop"}, nil, "what must be one of add, list"},
	}
	for _, c := range cases {
		got, err := s.Parse(c.given)
		if c.fault == "" && (err != nil || !maps.Equal(got, c.want)) || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%q: got %v, %v, want %v or %q", c.given, got, err, c.want, c.fault)
		}
	}
	s.Args[0].Implied, s.Args[0].Required = "add", false
	for _, c := range []struct {
		given []string
		want  map[string]string
	}{
		{[]string{"tea", "at five"}, map[string]string{"what": "add", "text": "tea at five"}},
		{[]string{"", "tea at five"}, map[string]string{"what": "add", "text": "tea at five"}}, // of a form
		{[]string{"List"}, map[string]string{"what": "list"}}, {nil, map[string]string{}},
	} {
		if got, err := s.Parse(c.given); err != nil || !maps.Equal(got, c.want) {
			t.Errorf("%q: got %v, %v, want %v", c.given, got, err, c.want)
		}
	}
	if _, err := (&Spec{Name: "help"}).Parse([]string{"x"}); err == nil {
		t.Error("an argument of a command without arguments was accepted")
	}
}

// TestCalled: a text that begins with a slash and a name calls that command.
func TestCalled(t *testing.T) {
	for text, want := range map[string]string{
		"/Help": "help", "/help@aria now": "help", "/sleep\n1h": "sleep", "/a\tb": "a", "/": "", "help": "", "": "", " /help": "",
	} {
		if got := Called(text); got != want {
			t.Errorf("Called(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestContext: IsContext recognises the context of a command.
func TestContext(t *testing.T) {
	if ctx := t.Context(); IsContext(ctx) || !IsContext(Context(ctx)) {
		t.Error("IsContext does not distinguish the context of a command from another one")
	}
}

// TestUnknown: an unknown command is answered in private, and in a group if it names the bot.
func TestUnknown(t *testing.T) {
	r, err := New([]Command{{Spec: Spec{Name: "help", Brief: "x"}, Do: nothing}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		text      string
		private   bool
		addressed core.Addressed
		name      string // "": it is a message
	}{
		{"/foo", true, core.AddressedDirect, "foo"}, {"/foo-bar x", true, core.AddressedDirect, "foo-bar"},
		{"/погода", true, core.AddressedDirect, "погода"}, {"/forecast!", true, core.AddressedDirect, "forecast"},
		{"/foo@aria_bot hi", true, core.AddressedDirect, "foo"}, {"/foo@aria_bot hi", false, core.AddressedMention, "foo"},
		{"/foo@other_bot hi", false, "", ""}, {"/foo", false, core.AddressedMention, ""}, {"/foo", false, "", ""},
		{"/" + strings.Repeat("ж", 32), true, core.AddressedDirect, strings.Repeat("ж", 32)},
		{"/" + strings.Repeat("ж", 33), true, core.AddressedDirect, ""},
		{"/etc/passwd", true, core.AddressedDirect, ""}, {"/", true, core.AddressedDirect, ""}, {"/help", true, core.AddressedDirect, ""},
	} {
		e := core.Event{Kind: core.KindMessage, Message: core.Message{
			Text: tc.text, Private: tc.private, Addressed: tc.addressed, Author: core.Author{ID: "1"},
		}}
		got := r.Unknown(&e)
		if strings.HasPrefix(got, "I don't know the command /"+tc.name+".") != (tc.name != "") || got != "" != (tc.name != "") {
			t.Errorf("%q, private %v: got %q, want an answer about %q", tc.text, tc.private, got, tc.name)
		}
	}
}

// TestMe: "/me waves" is a message, even if the platform sends it as a command.
func TestMe(t *testing.T) {
	r, err := New([]Command{{Spec: Spec{Name: "help", Brief: "x"}, Do: nothing}})
	if err != nil {
		t.Fatal(err)
	}
	m := core.Message{Text: "/me waves", Private: true, Author: core.Author{ID: "1"}}
	for _, e := range []core.Event{
		{Kind: core.KindMessage, Message: m}, {Kind: core.KindCommand, Command: &core.Command{Name: "me", Args: []string{"waves"}}, Message: m},
	} {
		if text := r.Unknown(&e); text != "" || e.Kind != core.KindMessage || e.Command != nil {
			t.Errorf("got a %s that is answered with %q, want a message", e.Kind, text)
		}
	}
	m.Text = "/me"
	if e := (core.Event{Kind: core.KindMessage, Message: m}); r.Unknown(&e) == "" {
		t.Error("/me alone is not answered as an unknown command")
	}
}
