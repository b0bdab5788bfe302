package discord

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/interfaces/discord/discordtest"
)

func hall() core.Path { return core.MustPath("discord/" + guildID + "/" + hallID) }

func TestDraftBecomesTheMessage(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, _ := s.up(t)
	for i := range 200 {
		d.Draft(hall(), strings.Repeat("word ", i+1))
	}
	until(t, "a draft", func() bool { return len(s.Texts(hallID)) == 1 })
	d.Draft(hall(), "a longer text")
	until(t, "the newest text", func() bool { return s.Texts(hallID)[0] == "a longer text" })
	if n := len(s.Calls("PATCH /channels/" + hallID)); n > 20 {
		t.Errorf("edited %d times", n)
	}
	if _, err := act(t, d, "message_discord", map[string]any{"text": "The *whole* text."}); err != nil {
		t.Fatal(err)
	}
	if got := s.Texts(hallID); len(got) != 1 || got[0] != "The *whole* text." {
		t.Errorf("stands: %q", got)
	}
	if _, err := act(t, d, "message_discord", map[string]any{"text": "Another."}); err != nil || len(s.Texts(hallID)) != 2 {
		t.Errorf("then: %q, %v", s.Texts(hallID), err)
	}
}

func TestDraftGoesAway(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, _ := s.up(t)
	reply := s.Say(hallID, annID, "tell me")
	for name, end := range map[string]func(){
		"taken back": func() { d.Draft(hall(), "") },
		"a reply": func() {
			if _, err := act(t, d, "message_discord", map[string]any{"text": "done", "reply_to_message_id": json.Number(reply)}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		d.Draft(hall(), "half a tex")
		until(t, "a draft", func() bool { return strings.Contains(strings.Join(s.Texts(hallID), ","), "half") })
		end()
		until(t, name, func() bool { return !strings.Contains(strings.Join(s.Texts(hallID), ","), "half") })
	}
}

func TestDraftOfACrashGoesAway(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	state := shelf()
	d := s.bot(t, func(o *Options) { o.State = state })
	d.Draft(hall(), "half a tex")
	noted := func() string { raw, _ := state.Get(context.Background(), draftKey); return string(raw) }
	until(t, "a draft", func() bool { return strings.Contains(noted(), hallID) })
	s.up(t, func(o *Options) { o.State = state })
	until(t, "gone", func() bool { return len(s.Texts(hallID)) == 0 && !strings.Contains(noted(), hallID) })
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
	asked := s.Messages(hallID)[0]
	if !slices.Contains(asked.Buttons(), "?:q:1.2:y") || parts.done[1].ID != asked.ID {
		t.Errorf("asked %s, journalled %+v", asked.Components, parts.done)
	}
	id := s.press(t, hallID, asked.ID, annID, "?:q:1.2:y")
	p := in.wait(t, core.KindPress, 1)[0]
	if p.Data != "q:1.2:y" || p.Target != asked.ID {
		t.Errorf("pressed: %+v", p)
	}
	s.answered(t, id, discordtest.AnswerNothing)
	if err := d.Whisper(t.Context(), p.Message, "Only the person who asked may answer."); err != nil {
		t.Fatal(err)
	}
	if w := s.Interaction(id).Whispers; len(w) != 1 || w[0].Text != "Only the person who asked may answer." {
		t.Errorf("whispered %+v", w)
	}
	if err := d.Settle(t.Context(), core.Sent{Path: hall(), ID: asked.ID, Text: "Shall I?\n\nDone."}); err != nil {
		t.Fatal(err)
	}
	if got := s.Texts(hallID); len(got) != 1 || !strings.HasSuffix(got[0], "Done.") {
		t.Errorf("settled as %q", got)
	}
	if err := d.Whisper(t.Context(), core.Message{ID: "5"}, "x"); kind(err) != core.Invalid {
		t.Errorf("whispered to nobody: %v", err)
	}
}

// The process dies between a draft's first words and the note of which message
// they are: the next life finds it by them, and nothing else.
func TestDraftOfACrashBeforeItsMessageWasKnown(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		state := shelf()
		dying := &frozen{State: state}
		s.Fail(func(c discordtest.Call) discordtest.Fault {
			if c.Is("POST /channels/" + hallID) {
				dying.stop()
			}
			return discordtest.Fault{}
		})
		first := s.bot(t, func(o *Options) { o.State = dying })
		first.Draft(hall(), "half a *tex")
		within(t, time.Minute, "a draft", func() bool { return len(s.Texts(hallID)) == 1 })
		first.busy.close()
		s.Fail(nil)
		time.Sleep(time.Hour)
		s.Say(hallID, annID, "half a *tex")
		if _, err := act(t, s.bot(t, func(o *Options) { o.State = state }), "message_discord", map[string]any{"text": "The whole text."}); err != nil {
			t.Fatal(err)
		}
		if got := s.Texts(hallID); len(got) != 1 || got[0] != "The whole text." || len(s.Everything(hallID)) != 2 {
			t.Errorf("stands: %q", got)
		}
	})
}

// What is whole in a moment is one request.
func TestNoDraftOfWhatIsWholeAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		d := s.bot(t)
		d.Draft(hall(), "The whole text.")
		time.Sleep(100 * time.Millisecond)
		if _, err := act(t, d, "message_discord", map[string]any{"text": "The whole text."}); err != nil {
			t.Fatal(err)
		}
		if n := len(s.Calls("")); n != 1 || len(s.Texts(hallID)) != 1 {
			t.Errorf("%d requests: %+v", n, s.Calls(""))
		}
		d.busy.close()
	})
}
