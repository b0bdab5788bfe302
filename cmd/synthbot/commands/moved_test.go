package commands

import (
	"slices"
	"strings"
	"testing"

	"synthbot/interfaces/telegram/telegramtest"
)

// TestMovedGroup checks that what the configuration says about a group also applies once it became a supergroup, at
// once and after a restart.
func TestMovedGroup(t *testing.T) {
	const group, super = -500, -1_000_000_000_500
	platform := telegramtest.New(t)
	platform.AddPerson(telegramtest.Person{ID: 1000, Name: "Jay"})
	platform.AddChat(telegramtest.Chat{ID: group, Type: "group", Title: "Club"})
	platform.AddChat(telegramtest.Chat{ID: super, Type: "supergroup", Title: "Club"})
	config := strings.Replace(onTelegram(newEchoModel(t), platform.URL, `
[[budget.place]]
path = "telegram/-500"
tokens = 7777
[[override]]
path = "telegram/-500"
activation = "always"
`), "[access]", "[access]\nallow = [\"telegram/-500\"]", 1)
	answered := func(chat int64, text string) {
		t.Helper()
		platform.Say(chat, 1000, telegramtest.Saying{Text: text})
		until(t, func() bool {
			return slices.ContainsFunc(platform.Messages(super), func(m telegramtest.Message) bool { return m.Text == "re "+text })
		})
	}
	d := startDaemon(t, config)
	platform.Change(group, func(c *telegramtest.Chat) { c.Upgraded = super })
	answered(group, "m1")
	until(t, func() bool { return strings.Contains(d.errs.String(), `"reloaded"`) })
	answered(super, "m2")
	d.stop()
	<-d.status
	var out strings.Builder
	if status := run(t.Context(), []string{"check", "-c", d.file, "--path", "telegram/-1000000000500"}, strings.NewReader(""), &out, &d.errs); status != statusDone {
		t.Errorf("exit status %d", status)
	}
	for _, want := range []string{"always", "7777"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("check shows no %s: %s", want, out.String())
		}
	}
}
