package command

import (
	"context"
	"maps"
	"strings"
	"testing"

	"synthbot/core"
)

func nothing(context.Context, Call) (string, error) { return "", nil }

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
			t.Errorf("%+v: %v, want %q", b.c.Spec, err, b.want)
		}
	}
}

func TestSpecs(t *testing.T) {
	r, err := New([]Command{
		{Spec: Spec{Name: "usage", Brief: "x", Rank: core.RankAdmin}, Do: nothing},
		{Spec: Spec{Name: "help", Brief: "x"}, Do: nothing},
	})
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Specs(core.RankModerator); len(s) != 1 || s[0].Name != "help" {
		t.Errorf("a moderator sees %v", s)
	}
	if s := r.Specs(core.RankAdmin); len(s) != 2 || s[0].Name != "help" || s[1].Name != "usage" {
		t.Errorf("an admin sees %v", s)
	}
	if _, ok := r.Find("HELP"); !ok {
		t.Error("a command has one case only")
	}
}

// TestHelp: the list has one language, the caller's if every line of theirs has it.
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
			t.Errorf("%+v: %q", tc, got)
		}
	}
}

// TestHelpOn checks the help for one command: what it does, how it is written, and what its arguments are.
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
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	poll, _ := r.Find("poll")
	if _, err := poll.Parse(nil); err == nil || err.Error() != "invalid: poll is missing. Usage: `/poll Tea? Yes | No`" {
		t.Errorf("without arguments: %v", err)
	}
}

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
			t.Errorf("%q: %v, %v", c.given, got, err)
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
			t.Errorf("%q: %v, %v", c.given, got, err)
		}
	}
	if _, err := (&Spec{Name: "help"}).Parse([]string{"x"}); err == nil {
		t.Error("more than it takes was taken")
	}
}

func TestCalled(t *testing.T) {
	for text, want := range map[string]string{
		"/Help": "help", "/help@aria now": "help", "/sleep\n1h": "sleep", "/a\tb": "a", "/": "", "help": "", "": "", " /help": "",
	} {
		if got := Called(text); got != want {
			t.Errorf("%q calls %q, want %q", text, got, want)
		}
	}
}

func TestContext(t *testing.T) {
	if ctx := t.Context(); IsContext(ctx) || !IsContext(Context(ctx)) {
		t.Error("the context of a command is not known")
	}
}

// TestUnknown: a command that does not exist is answered however it is written, in a group only if it names the bot.
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
			t.Errorf("%q, private %v: %q", tc.text, tc.private, got)
		}
	}
}

// TestMe: "/me waves" is a message, and no unknown command, whether the platform takes it for one or not.
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
			t.Errorf("it is answered with %q as a %s", text, e.Kind)
		}
	}
	m.Text = "/me"
	if e := (core.Event{Kind: core.KindMessage, Message: m}); r.Unknown(&e) == "" {
		t.Error("/me alone is a message")
	}
}
