package review

import (
	"fmt"
	"strings"
	"testing"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/plugins/plugintest"
	"synthbot/plugins/reminders"
)

func reviewed(c Config, place string, done []string, steps ...core.Step) string {
	p, err := New(core.Host{Name: "review"}, c)
	if err != nil {
		return err.Error()
	}
	d := action.Draft{Who: action.Requester{Path: core.MustPath(place)}, Plan: core.Plan{Steps: steps}, Done: done}
	var all []string
	for _, f := range p.Review(d) {
		all = append(all, f.Text)
	}
	return strings.Join(all, "; ")
}

func says(text string) core.Step {
	return core.Step{Type: "message_room", Payload: core.JSON(map[string]string{"text": text})}
}

func TestPromises(t *testing.T) {
	on := Config{Promises: true}
	for _, text := range []string{
		"Sure, I'll remind you at nine.", "I will remember that.", "I’ve noted it!", "Reminder set for 9:00.", "Gut, ich merke mir das.",
		"Ich werde dich erinnern.", "Ich habe es notiert.", "Je te rappellerai demain.", "D'accord, je m'en souviendrai.", "Va bene, te lo ricorderò.",
		"Me lo segno.", "Te lo recordaré mañana.", "Vale, me lo apunto.", "OK. i have saved your list",
	} {
		if got := reviewed(on, "room/1", nil, says(text)); !strings.Contains(got, "no action does it") {
			t.Errorf("%q without an action: got %s", text, got)
		}
		if got := reviewed(on, "room/1", nil, says(text), core.Step{Type: "reminder_set"}); got != "" {
			t.Errorf("%q with its action: got %s", text, got)
		}
		if got := reviewed(on, "room/1", []string{"message_room", "reminder_set"}, says(text)); got != "" {
			t.Errorf("%q after its action: got %s", text, got)
		}
		if got := reviewed(Config{}, "room/1", nil, says(text)); got != "" {
			t.Errorf("%q with the check off: got %s", text, got)
		}
	}
	for _, text := range []string{
		"I remember that you like tea.", "Shall I remind you?", "You will remember that day.", "I noted the smell at once.", "Did you save it?",
		"I'll have tea.", "Ich erinnere mich gut.", "Das merke ich.", "Je me souviens.", "Mi ricordo di te.", "Recuerdo aquello.", "",
	} {
		if got := reviewed(on, "room/1", nil, says(text)); got != "" {
			t.Errorf("%q: got %s", text, got)
		}
	}
	if got := reviewed(on, "room/1", []string{"message_room", "NONE"}, says("I'll remind you."), core.Step{Type: "NONE"}); got == "" {
		t.Error("a promise passes without an action")
	}
}

func TestLimits(t *testing.T) {
	c := Config{Places: []Place{
		{Emoji: 1, Shouting: true},
		{Path: core.MustPath("room/1"), MaxChars: 20, Emoji: -1, Avoid: []string{"as an AI"}},
		{Path: core.MustPath("room/1/7"), Emoji: -1, Shouting: true},
	}}
	for _, tc := range []struct{ place, text, want string }{
		{"room/2", "Hi! 🙂", ""},
		{"room/2", "Hi 🙂🙂", "has 2 emoji, at most 1 are allowed here"},
		{"room/1", "Hello there.", ""},
		{"room/1", strings.Repeat("ä", 21), "has 21 characters, at most 20 are allowed here"},
		{"room/1", "Hello!", "has exclamation marks or words in capitals, which are not used here"},
		{"room/1", "It is GREAT, NASA", "has exclamation marks or words in capitals, which are not used here"},
		{"room/1", "NASA and ESA", ""},
		{"room/1", "As an AI I won't", `uses "as an AI", which is not said here`},
		{"room/1", "Was an AImark", ""},
		{"room/1/7", "HELLO THERE! As an AI, I may say all of that", ""},
	} {
		if got := reviewed(c, tc.place, nil, says(tc.text)); got != tc.want {
			t.Errorf("%s: %q: got %q, want %q", tc.place, tc.text, got, tc.want)
		}
	}
	if got := reviewed(Config{}, "room/1", nil, says(strings.Repeat("HA! ", 500))); got != "" {
		t.Errorf("without limits: got %s", got)
	}
}

// TestEmptyPhrases checks that a phrase without words is a fault of the configuration and matches nothing.
func TestEmptyPhrases(t *testing.T) {
	c := Config{Places: []Place{{Emoji: -1, Shouting: true, Avoid: []string{"", " "}}}}
	var faults []string
	c.Check(func(text string, at ...any) { faults = append(faults, fmt.Sprint(text, at)) })
	if len(faults) != 2 || !strings.Contains(faults[0], "place 0 avoid 0") {
		t.Errorf("faults: got %q", faults)
	}
	if got := reviewed(c, "room/1", nil, says("one two")); got != "" {
		t.Errorf("an empty phrase matches: %s", got)
	}
}

func TestScripts(t *testing.T) {
	plugintest.Run(t, "testdata/*.txt", plugintest.Of(New), plugintest.Of(reminders.New))
}

func TestConform(t *testing.T) {
	plugintest.Conform(t, plugintest.Case{Name: "review", Make: func(t *testing.T, s *plugintest.Harness) core.Plugin {
		p, err := New(s.Host, Config{Promises: true})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}})
}

func FuzzReview(f *testing.F) {
	f.Add("I'll remind you!")
	c := Config{Promises: true, Places: []Place{{MaxChars: 5, Avoid: []string{"x"}}}}
	f.Fuzz(func(t *testing.T, text string) { reviewed(c, "room/1", nil, says(text)) })
}
