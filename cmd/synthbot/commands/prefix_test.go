package commands

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"synthbot/core/coretest"
	"synthbot/interfaces/telegram/telegramtest"
)

// TestSharedPrefix checks that the start of the prompt stays the same, byte by byte, over many turns of a chat
// with memories and bios, and that little of each request is new.
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
			awaitReplies(t, platform, chat, 1)
			for i, fact := range []string{"The tea party is on Sunday", "Tea is served in the garden", "Jay drinks tea without milk"} {
				platform.Say(chat, 1000, telegramtest.Saying{Text: "/remember@aria_bot " + fact, Extra: map[string]any{
					"entities": []map[string]any{{"type": "bot_command", "offset": 0, "length": len("/remember@aria_bot")}}}})
				awaitReplies(t, platform, chat, i+2)
			}
			before := len(model.since(0))
			for i := range turns {
				person := int64(1000 + i%2)
				if chat > 0 {
					person = 1000
				}
				platform.Say(chat, person, telegramtest.Saying{Text: fmt.Sprintf("Aria, what about the tea party, question %d?", i)})
				awaitReplies(t, platform, chat, 5+i)
			}
			requests := model.since(before)
			if len(requests) != turns {
				t.Fatalf("got %d requests, want one for each turn", len(requests))
			}
			checkPrefixes(t, requests)
		})
	}
}

// checkPrefixes compares each request with the one before it.
func checkPrefixes(t *testing.T, requests []string) {
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
			t.Errorf("turn %d: the system part differs", i)
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
	t.Logf("at most %d new characters, apart from %d resets of the window; %d prompts have memories", worst, resets, remembered)
	// The window has at least 20 entries and is reset after 20 more, which are 10 turns.
	if resets > len(requests)/10 || remembered < len(requests)*4/5 {
		t.Errorf("%d requests have more than 900 new characters, %d of %d have memories", resets, remembered, len(requests))
	}
}
