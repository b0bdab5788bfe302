package commands

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"synthbot/interfaces/telegram/telegramtest"
)

// TestForm checks that the bot asks the user on Telegram for a missing parameter of an action. It asks the
// model only for the plan and for the reply to the action's output.
func TestForm(t *testing.T) {
	var asked atomic.Int32
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		plan := `{"response":"Set."}`
		if asked.Add(1); !strings.Contains(string(raw), `\"outputs\"`) {
			plan = `{"actions":[{"type":"reminder_set","payload":{"text":"water the plants","when":null}}]}`
		}
		reply, _ := json.Marshal(plan)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":%s},"finish_reason":"stop"}]}`, reply)
	}))
	t.Cleanup(model.Close)
	platform, _ := atTelegram(t, model.URL, "")
	platform.AddPerson(telegramtest.Person{ID: 1000, Name: "Jay"})
	say := func(text string) { platform.Say(1000, 1000, telegramtest.Saying{Text: text}) }
	reply := func(text string, to int) {
		platform.Say(1000, 1000, telegramtest.Saying{Text: text, ReplyTo: to})
	}

	say("remind me to water the plants")
	if got := awaitReplies(t, platform, 1000, 1); !strings.Contains(got[0], "Set a reminder – time?\n") {
		t.Fatalf("question: got %q", got)
	}
	question := platform.Messages(1000)[0]
	if !strings.Contains(string(question.Markup), `"Cancel"`) || strings.Contains(string(question.Markup), `"Answer"`) {
		t.Errorf("buttons: %s", question.Markup)
	}
	platform.Press(1000, question.ID, 1000, 0)
	until(t, func() bool { return strings.HasSuffix(platform.Messages(1000)[0].Text, "✗ Cancelled.") })

	say("do remind me to water the plants")
	awaitReplies(t, platform, 1000, 2)
	reply("in an hour", platform.Messages(1000)[1].ID) // at once, before the turn that asked has ended
	if got := awaitReplies(t, platform, 1000, 3); got[2] != "Set." || !strings.HasSuffix(got[1], "✓ Done.") {
		t.Errorf("after the answer: got %q", got)
	}
	if n := asked.Load(); n != 3 {
		t.Errorf("the model was asked %d times, want 3", n)
	}
}
