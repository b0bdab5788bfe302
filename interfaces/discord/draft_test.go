package discord

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"synthbot/core"
)

func hall() core.Path { return core.MustPath("discord/" + guildID + "/" + hallID) }

func TestDraftBecomesTheMessage(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, _ := s.up(t)
	for i := range 200 {
		d.Draft(hall(), strings.Repeat("word ", i+1))
	}
	until(t, "a draft", func() bool { return len(s.texts(hallID)) == 1 })
	d.Draft(hall(), "a longer text")
	until(t, "the newest text", func() bool { return s.texts(hallID)[0] == "a longer text" })
	if n := len(s.requests("PATCH /channels/" + hallID)); n > 20 {
		t.Errorf("edited %d times", n)
	}
	if _, err := act(t, d, "message_discord", map[string]any{"text": "The *whole* text."}); err != nil {
		t.Fatal(err)
	}
	if got := s.texts(hallID); len(got) != 1 || got[0] != "The *whole* text." {
		t.Errorf("stands: %q", got)
	}
	if _, err := act(t, d, "message_discord", map[string]any{"text": "Another."}); err != nil || len(s.texts(hallID)) != 2 {
		t.Errorf("then: %q, %v", s.texts(hallID), err)
	}
}

func TestDraftGoesAway(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, _ := s.up(t)
	reply := s.say(hallID, annID, "tell me")
	for name, end := range map[string]func(){
		"taken back": func() { d.Draft(hall(), "") },
		"a reply": func() {
			if _, err := act(t, d, "message_discord", map[string]any{"text": "done", "reply_to_message_id": json.Number(reply)}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		d.Draft(hall(), "half a tex")
		until(t, "a draft", func() bool { return strings.Contains(strings.Join(s.texts(hallID), ","), "half") })
		end()
		until(t, name, func() bool { return !strings.Contains(strings.Join(s.texts(hallID), ","), "half") })
	}
}

func TestDraftOfACrashGoesAway(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	state := shelf()
	d := s.bot(t, func(o *Options) { o.State = state })
	d.Draft(hall(), "half a tex")
	until(t, "a draft", func() bool { return len(d.standing(context.Background())) == 1 })
	s.up(t, func(o *Options) { o.State = state })
	until(t, "gone", func() bool { return len(s.texts(hallID)) == 0 && len(d.standing(context.Background())) == 0 })
	d.busy.close()
}

func TestQuestion(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t)
	parts := &journal{base: "question"}
	choices := []core.Choice{{Label: "Confirm", Data: "q:1.2:y"}, {Label: "Cancel", Data: "q:1.2:n"}}
	if err := d.Choose(t.Context(), parts, core.Sent{Path: hall(), Text: "Shall I?"}, choices); err != nil {
		t.Fatal(err)
	}
	asked := s.bots(hallID)[0]
	raw, _ := json.Marshal(asked["components"])
	if !strings.Contains(string(raw), `"custom_id":"?:q:1.2:y"`) || parts.done[1].ID != asked["id"] {
		t.Errorf("asked %s, journalled %+v", raw, parts.done)
	}
	s.interact("100", map[string]any{"type": interactPress, "message": asked, "data": map[string]any{"custom_id": "?:q:1.2:y"}})
	p := in.wait(t, core.KindPress, 1)[0]
	if p.Data != "q:1.2:y" || p.Target != asked["id"] {
		t.Errorf("pressed: %+v", p)
	}
	s.answered(t, 1)
	if err := d.Whisper(t.Context(), p.Message, "Only the person who asked may answer."); err != nil {
		t.Fatal(err)
	}
	if w := s.answered(t, 2)[1]; w.path != "/webhooks/"+appID+"/token-100" || w.body["flags"] != 64.0 {
		t.Errorf("whispered %s %v", w.path, w.body)
	}
	if err := d.Settle(t.Context(), core.Sent{Path: hall(), ID: asked["id"].(string), Text: "Shall I?\n\nDone."}); err != nil {
		t.Fatal(err)
	}
	if got := s.texts(hallID); len(got) != 1 || !strings.HasSuffix(got[0], "Done.") {
		t.Errorf("settled as %q", got)
	}
	if err := d.Whisper(t.Context(), core.Message{ID: "5"}, "x"); kind(err) != core.Invalid {
		t.Errorf("whispered to nobody: %v", err)
	}
}
