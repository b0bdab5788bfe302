package commands

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"synthbot/interfaces/discord/discordtest"
	"synthbot/interfaces/telegram/telegramtest"
)

// TestRefusedToken checks that an interface whose token is refused does not disturb the other one, that the admin is
// notified there once, with what to do, and that a corrected token brings the interface up.
func TestRefusedToken(t *testing.T) {
	for refused, right := range map[string]string{"telegram": telegramtest.Token, "discord": discordtest.Token} {
		t.Run(refused, func(t *testing.T) {
			telegram, discord := telegramtest.New(t), discordtest.New(t)
			telegram.AddPerson(telegramtest.Person{ID: 900, Name: "Boss"})
			say := map[string]func(string){
				"telegram": func(text string) { telegram.Say(900, 900, telegramtest.Saying{Text: text}) },
				"discord":  func(text string) { discord.Say(discordtest.DirectID, discordtest.AnnID, text) },
			}
			said := map[string]func() []string{
				"telegram": func() (texts []string) {
					for _, m := range telegram.Messages(900) {
						texts = append(texts, m.Text)
					}
					return texts
				},
				"discord": func() []string { return discord.Texts(discordtest.DirectID) },
			}
			await := func(platform string, words ...string) {
				t.Helper()
				until(t, func() bool {
					return slices.ContainsFunc(said[platform](), func(text string) bool {
						return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
					})
				})
			}
			other := map[string]string{"telegram": "discord", "discord": "telegram"}[refused]
			config := onTelegram(newEchoModel(t), telegram.URL, discordTable(discord))
			config = strings.Replace(config, `"telegram/@user/900"`,
				fmt.Sprintf(`"telegram/@user/900", "discord/@user/%s"`, discordtest.AnnID), 1)
			d := startDaemon(t, strings.Replace(config, right, right[:len(right)-1]+"x", 1))
			await(other, "interface "+refused+" has stopped", "token")
			up := func(platform string) bool { return platform == "telegram" || discord.Live() > 0 }
			until(t, func() bool { return up(other) })
			if other == "telegram" {
				say[other]("/status")
			} else {
				until(t, func() bool {
					_, err := discord.Command(discordtest.DirectID, discordtest.AnnID, "status", nil)
					return err == nil
				})
			}
			await(other, "interface "+refused+": it has stopped", "interface "+other+": running", "for ", "has stopped: ")
			d.errs.take()
			say[other]("m1, are you there?")
			await(other, "re m1")
			d.write(config)
			until(t, func() bool { return strings.Contains(d.errs.String(), `"reloaded"`) })
			until(t, func() bool { return up(refused) })
			say[refused]("m2, are you there?")
			await(refused, "re m2")
			if log := d.errs.String(); strings.Contains(log, "has stopped") {
				t.Errorf("the log has the alert again: %s", log)
			}
			alerts := slices.DeleteFunc(said[other](), func(text string) bool {
				return !strings.HasPrefix(text, "interface "+refused)
			})
			if len(alerts) != 1 {
				t.Errorf("got %d alerts, want 1: %q", len(alerts), alerts)
			}
			d.stop()
			if status := <-d.status; status != statusDone {
				t.Errorf("exit status %d", status)
			}
		})
	}
}
