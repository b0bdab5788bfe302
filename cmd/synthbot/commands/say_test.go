package commands

import (
	"strings"
	"testing"

	"synthbot/interfaces/telegram/telegramtest"
)

// TestSaidInTheHistory checks that the bot knows what an admin let it say in another place.
func TestSaidInTheHistory(t *testing.T) {
	model := newScribe(t)
	platform, file := atTelegram(t, model.URL, "")
	platform.AddPerson(telegramtest.Person{ID: 900, Name: "Boss"})
	platform.AddPerson(telegramtest.Person{ID: 1000, Name: "Jay"})
	platform.Say(1000, 1000, telegramtest.Saying{Text: "hello"})
	awaitReplies(t, platform, 1000, 1)
	platform.Say(900, 900, telegramtest.Saying{Text: "/say telegram/1000 The **library** opens at ten."})
	if got := awaitReplies(t, platform, 900, 1); got[0] != "Said." {
		t.Errorf("the admin got %q", got)
	}
	if got := awaitReplies(t, platform, 1000, 2); got[1] != "The library opens at ten." {
		t.Errorf("the user got %q", got)
	}
	platform.Say(1000, 1000, telegramtest.Saying{Text: "when?"})
	awaitReplies(t, platform, 1000, 3)
	asked := model.since(1)
	if len(asked) != 1 || !strings.Contains(asked[0], "The **library** opens at ten.") {
		t.Errorf("the prompt lacks what the bot said: %s", asked)
	}
	bot := &daemonUnderTest{t: t, file: file}
	status, out, errs := bot.command("", "history", "telegram/1000")
	if status != statusDone || !strings.Contains(out, "Aria: The **library** opens at ten.") {
		t.Errorf("history: %d, %q, %q", status, out, errs)
	}
}
