package commands

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"synthbot/core/coretest"
	"synthbot/interfaces/telegram/telegramtest"
)

// TestSharedPrefix: over many turns of one chat what is sent first stays the same,
// byte by byte, and of each request little is new; with memories and bios on.
func TestSharedPrefix(t *testing.T) {
	turns := coretest.Sample(50, 20)
	for name, chat := range map[string]int64{"private": 1000, "group": -100500} {
		t.Run(name, func(t *testing.T) {
			model := newScribe(t)
			platform, _ := atTelegram(t, model.URL, "[plugins.people]\n")
			platform.AddPerson(telegramtest.Person{ID: 1000, Name: "Jay"})
			platform.AddPerson(telegramtest.Person{ID: 1001, Name: "Ann"})
			platform.AddChat(telegramtest.Chat{ID: -100500, Type: "supergroup", Title: "Club"})
			platform.Say(chat, 1000, telegramtest.Saying{Text: "Aria, hello"})
			hears(t, platform, chat, 1)
			for i, fact := range []string{"The tea party is on Sunday", "Tea is served in the garden", "Jay drinks tea without milk"} {
				platform.Say(chat, 1000, telegramtest.Saying{Text: "/remember@aria_bot " + fact, Extra: map[string]any{
					"entities": []map[string]any{{"type": "bot_command", "offset": 0, "length": len("/remember@aria_bot")}}}})
				hears(t, platform, chat, i+2)
			}
			before := len(model.since(0))
			for i := range turns {
				person := int64(1000 + i%2)
				if chat > 0 {
					person = 1000
				}
				platform.Say(chat, person, telegramtest.Saying{Text: fmt.Sprintf("Aria, what about the tea party, question %d?", i)})
				hears(t, platform, chat, 5+i)
			}
			requests := model.since(before)
			if len(requests) != turns {
				t.Fatalf("%d requests", len(requests))
			}
			holdPrefixes(t, requests)
		})
	}
}

// holdPrefixes compares each request with the one before it.
func holdPrefixes(t *testing.T, requests []string) {
	t.Helper()
	resets, worst, remembered := 0, 0, 0
	system, last := "", ""
	for i, raw := range requests {
		var r struct {
			Messages []struct{ Role, Content string }
		}
		if err := json.Unmarshal([]byte(raw), &r); err != nil {
			t.Fatal(err)
		}
		all := ""
		for _, m := range r.Messages {
			all += m.Content
		}
		if strings.Contains(all, `"memories":`) {
			remembered++
		}
		if i > 0 && r.Messages[0].Content != system {
			t.Errorf("turn %d: another system part", i)
		}
		system = r.Messages[0].Content
		n := 0
		for n < min(len(all), len(last)) && all[n] == last[n] {
			n++
		}
		if fresh := len(all) - n - len("Aria, what about the tea party, question 10?"); i > 0 && fresh > 900 {
			resets++
			t.Logf("turn %d: %d characters are new", i, fresh)
		} else if i > 0 {
			worst = max(worst, fresh)
		}
		last = all
	}
	t.Logf("at most %d characters are new, but for %d resets of the window; %d prompts tell memories", worst, resets, remembered)
	// The window holds 20 entries at least, and begins anew every 20: 10 turns.
	if resets > len(requests)/10 || remembered < len(requests)*4/5 {
		t.Errorf("%d requests have more than 900 new characters; %d of %d tell memories", resets, remembered, len(requests))
	}
}
