package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/coretest"
	"synthbot/core/driver"
	"synthbot/core/watch"
	"synthbot/interfaces/discord/discordtest"
)

// hall returns the path of #hall.
func hall() core.Path { return core.MustPath("discord/" + guildID + "/" + hallID) }

// TestDraftBecomesTheMessage: a draft is a message that is edited at a limited rate and becomes
// the answer.
func TestDraftBecomesTheMessage(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, _ := s.up(t)
	for i := range 200 {
		d.Draft(hall(), strings.Repeat("word ", i+1))
	}
	until(t, "a draft", func() bool { return len(s.Texts(hallID)) == 1 })
	d.Draft(hall(), "a longer text")
	until(t, "the newest text", func() bool { return s.Texts(hallID)[0] == "a longer text ▍" })
	if n := len(s.Calls("PATCH /channels/" + hallID)); n > 20 {
		t.Errorf("got %d edits, want at most 20", n)
	}
	if _, err := act(t, d, "message_discord", map[string]any{"text": "The *whole* text."}); err != nil {
		t.Fatal(err)
	}
	if got := s.Texts(hallID); len(got) != 1 || got[0] != "The *whole* text." {
		t.Errorf("got %q, want the draft turned into the answer", got)
	}
	if _, err := act(t, d, "message_discord", map[string]any{"text": "Another."}); err != nil || len(s.Texts(hallID)) != 2 {
		t.Errorf("another message: got %q, %v, want two messages", s.Texts(hallID), err)
	}
}

// TestDraftBesideCommand: answering a chat command leaves the draft of a turn that runs at the
// same time in place.
func TestDraftBesideCommand(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, _ := s.up(t)
	d.Draft(hall(), "It grows")
	until(t, "a draft", func() bool { return len(s.Texts(hallID)) == 1 })
	for _, a := range d.Actions() {
		if a.Name == "message_discord" {
			call := core.Call{Path: hall(), Author: core.Author{ID: annID}, Payload: []byte(`{"text":"command"}`), Deliveries: &journal{base: "beside"}}
			if _, err := a.Do(command.Context(t.Context()), call); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := act(t, d, "message_discord", map[string]any{"text": "It has grown."}); err != nil {
		t.Fatal(err)
	}
	if got := s.Texts(hallID); !slices.Equal(got, []string{"It has grown.", "command"}) {
		t.Errorf("got %q, want the draft turned into the answer, then the command's answer", got)
	}
}

// TestDraftGoesAway: a draft is deleted when it is taken back or when the answer is a reply.
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

// TestDraftOfACrashGoesAway: the draft of a process that crashed is deleted by the next one.
func TestDraftOfACrashGoesAway(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	state := newState()
	d := s.bot(t, func(o *Options) { o.State = state })
	d.Draft(hall(), "half a tex")
	noted := func() string { raw, _ := state.Get(context.Background(), draftKey); return string(raw) }
	until(t, "a draft", func() bool { return strings.Contains(noted(), `"id"`) })
	s.up(t, func(o *Options) { o.State = state })
	until(t, "gone", func() bool { return len(s.Texts(hallID)) == 0 && !strings.Contains(noted(), hallID) })
	d.tasks.Close()
}

// TestQuestionWithATextField: a button can open a text field, whose content becomes the text of the press.
func TestQuestionWithATextField(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t)
	choices := []core.Choice{{Label: "Answer", Data: "q:1:w", Writes: true}, {Label: "Cancel", Data: "q:1:n"}}
	what := core.Sent{Path: hall(), Text: strings.Repeat("𝕹", 50) + "\nWhen?"}
	if err := d.Choose(t.Context(), &journal{base: "question"}, what, choices); err != nil {
		t.Fatal(err)
	}
	asked := s.Messages(hallID)[0]
	opened := s.awaitAnswer(t, s.press(t, hallID, asked.ID, annID, "!:q:1:w"), discordtest.AnswerField)
	if opened.Field.Rows[0].Fields[0].Label != "Answer" || !strings.HasPrefix(opened.Field.Title, "𝕹𝕹") {
		t.Errorf("got %+v, want a field Answer", opened.Field)
	}
	id, err := s.Fill(opened.ID, "tomorrow at nine")
	if err != nil {
		t.Fatal(err)
	}
	s.awaitAnswer(t, id, discordtest.AnswerNothing)
	p := in.wait(t, core.KindPress, 1)[0]
	if p.Data != "q:1:w" || p.Target != asked.ID || p.Message.Text != "tomorrow at nine" || p.Message.Author.ID != annID {
		t.Errorf("got %+v, want a press of q:1:w with the text", p)
	}
	if err := d.Whisper(t.Context(), p.Message, "Thank you."); err != nil {
		t.Error(err)
	}
}

// TestQuestionWithManyChoices: choices that do not fit into rows of buttons become a select menu.
func TestQuestionWithManyChoices(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t)
	var choices []core.Choice
	for n := range maxButtons + 1 {
		choices = append(choices, core.Choice{Label: fmt.Sprint("Number ", n), Data: fmt.Sprint("q:", n)})
	}
	ask := func(n int) error {
		return d.Choose(t.Context(), &journal{base: "question"}, core.Sent{Path: hall(), Text: "Which?"}, choices[:n])
	}
	if err := ask(maxButtons + 1); err == nil || len(s.Messages(hallID)) > 0 {
		t.Errorf("too many choices: got %v, want an error", err)
	}
	if err := ask(maxButtons); err != nil {
		t.Fatal(err)
	}
	asked := s.Messages(hallID)[0]
	id, err := s.Select(hallID, asked.ID, annID, "q:24")
	if err != nil {
		t.Fatal(err)
	}
	s.awaitAnswer(t, id, discordtest.AnswerNothing)
	if p := in.wait(t, core.KindPress, 1)[0]; p.Data != "q:24" || p.Target != asked.ID || p.Message.Text != "" {
		t.Errorf("got %+v, want a press of q:24", p)
	}
}

// TestQuestion: a question is sent as plain text, a press arrives as an event and can be answered
// with a whisper, and settling the question replaces its text.
func TestQuestion(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t)
	parts := &journal{base: "question"}
	choices := []core.Choice{{Label: "Confirm", Data: "q:1.2:y"}, {Label: "Cancel", Data: "q:1.2:n"}}
	if err := d.Choose(t.Context(), parts, core.Sent{Path: hall(), Text: "Shall I ~~not~~?\n1. to: [x](https://a.example) <@1>"}, choices); err != nil {
		t.Fatal(err)
	}
	asked := s.Messages(hallID)[0]
	want := "Shall I \\~\\~not\\~\\~?\n1\\. to\\: \\[x\\]\\(https\\://a.example\\) \\<\\@1\\>"
	if asked.Text != want {
		t.Errorf("got %q, want %q", asked.Text, want)
	}
	if !slices.Contains(asked.Buttons(), "?:q:1.2:y") || parts.done[1].ID != asked.ID {
		t.Errorf("got buttons %s, journalled %+v", asked.Components, parts.done)
	}
	id := s.press(t, hallID, asked.ID, annID, "?:q:1.2:y")
	p := in.wait(t, core.KindPress, 1)[0]
	if p.Data != "q:1.2:y" || p.Target != asked.ID {
		t.Errorf("got %+v, want a press of q:1.2:y", p)
	}
	s.awaitAnswer(t, id, discordtest.AnswerNothing)
	if err := d.Whisper(t.Context(), p.Message, "Only the person who asked may answer."); err != nil {
		t.Fatal(err)
	}
	if w := s.Interaction(id).Whispers; len(w) != 1 || w[0].Text != "Only the person who asked may answer." {
		t.Errorf("got whispers %+v, want the notice", w)
	}
	if err := d.Settle(t.Context(), core.Sent{Path: hall(), ID: asked.ID, Text: "Shall I?\n\nDone."}); err != nil {
		t.Fatal(err)
	}
	if got := s.Texts(hallID); len(got) != 1 || !strings.HasSuffix(got[0], "Done.") {
		t.Errorf("got %q, want the settled text", got)
	}
	if err := d.Whisper(t.Context(), core.Message{ID: "5"}, "x"); kind(err) != core.Invalid {
		t.Errorf("whisper without an interaction: got %v, want an invalid request", err)
	}
}

// TestDraftOfACrashBeforeItsMessageWasKnown: if a process dies after it sent a draft and before
// it stored the message id, the next process finds the draft by its text. It deletes no user's message.
func TestDraftOfACrashBeforeItsMessageWasKnown(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		state := newState()
		stopping := &stoppableState{State: state}
		s.Fail(func(c discordtest.Call) discordtest.Fault {
			if c.Is("POST /channels/" + hallID) {
				stopping.stop()
			}
			return discordtest.Fault{}
		})
		first := s.bot(t, func(o *Options) { o.State = stopping })
		first.Draft(hall(), "half a *tex")
		within(t, time.Minute, "a draft", func() bool { return len(s.Texts(hallID)) == 1 })
		first.tasks.Close()
		s.Fail(nil)
		time.Sleep(time.Hour)
		s.Say(hallID, annID, "half a *tex")
		if _, err := act(t, s.bot(t, func(o *Options) { o.State = state }), "message_discord", map[string]any{"text": "The whole text."}); err != nil {
			t.Fatal(err)
		}
		if got := s.Texts(hallID); len(got) != 1 || got[0] != "The whole text." || len(s.Everything(hallID)) != 2 {
			t.Errorf("got %q, want only the answer", got)
		}
	})
}

// TestNoDraftOfACompleteAnswer: an answer that is complete at once is sent in one request.
func TestNoDraftOfACompleteAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		d := s.bot(t)
		d.Draft(hall(), "The whole text.")
		time.Sleep(100 * time.Millisecond)
		if _, err := act(t, d, "message_discord", map[string]any{"text": "The whole text."}); err != nil {
			t.Fatal(err)
		}
		if n := len(s.Calls("")); n != 1 || len(s.Texts(hallID)) != 1 {
			t.Errorf("got %d requests, want 1: %+v", n, s.Calls(""))
		}
		d.tasks.Close()
	})
}

// TestDraftOfADriverThatWasReplaced: after a reload, the previous driver still completes its
// answer. Neither the next driver nor a later process deletes it, but they delete abandoned drafts.
func TestDraftOfADriverThatWasReplaced(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		state := newState()
		with := func(o *Options) { o.State = state }
		old := s.bot(t, with)
		stop := s.listen(t, old, newInbox())
		draft := func(d *Driver, channel, text string) {
			d.Draft(core.MustPath("discord/"+guildID+"/"+channel), text)
			within(t, time.Minute, "a draft", func() bool { return slices.Contains(s.Texts(channel), text+" ▍") })
		}
		draft(old, hallID, "half a tex")
		draft(old, roomID, "nobody ends this")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		next := s.bot(t, with)
		stop = s.listen(t, next, newInbox())
		time.Sleep(2 * time.Minute)
		draft(next, discordtest.VoiceID, "and another")
		before := s.Messages(hallID)
		if _, err := act(t, old, "message_discord", map[string]any{"text": "The whole text."}); err != nil {
			t.Fatal(err)
		}
		draft(next, discordtest.VoiceID, "and another, growing")
		for range 2 { // processes
			time.Sleep(defaultTimings.leftover + time.Minute)
			if got := s.Messages(hallID); len(got) != 1 || got[0].Text != "The whole text." || got[0].ID != before[0].ID {
				t.Errorf("got %+v, want the draft turned into the answer", got)
			}
			if got := s.Texts(roomID); len(got) != 0 {
				t.Errorf("got %q, want the abandoned draft deleted", got)
			}
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			stop = s.listen(t, s.bot(t, with), newInbox())
		}
	})
}

// TestDraftThatBecameTheAnswerAtTheEnd: if a process ends while a draft becomes the answer, the
// answer stays, once, and counts as sent.
func TestDraftThatBecameTheAnswerAtTheEnd(t *testing.T) {
	for name, fault := range map[string]discordtest.FaultKind{"it did": discordtest.HangAfter, "it did not": discordtest.Hang} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *server) {
				state := newState()
				first := s.bot(t, func(o *Options) { o.State = state })
				first.Draft(hall(), "The wh")
				within(t, time.Minute, "a draft", func() bool { return len(s.Texts(hallID)) == 1 })
				s.Fail(func(c discordtest.Call) discordtest.Fault {
					if c.Is("PATCH /channels/" + hallID) {
						return discordtest.Fault{Kind: fault}
					}
					return discordtest.Fault{}
				})
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				parts := &interruptedJournal{journal: journal{base: "end"}}
				began := time.Now()
				at := destination{channel: hallID, place: hall()}
				if err := first.deliver(ctx, parts, at, []outgoing{{Content: "The whole text.", Mentions: noMentions()}}, priorityNormal); err == nil {
					t.Fatal("the answer was delivered, want an error")
				}
				first.tasks.Close()
				s.Fail(nil)
				parts.began = began
				next := s.bot(t, func(o *Options) { o.State = state })
				if err := next.deliver(t.Context(), parts, at, []outgoing{{Content: "The whole text.", Mentions: noMentions()}}, priorityNormal); err != nil {
					t.Fatal(err)
				}
				s.listen(t, next, newInbox())
				time.Sleep(defaultTimings.leftover + time.Minute)
				if got := s.Texts(hallID); len(got) != 1 || got[0] != "The whole text." {
					t.Errorf("got %q, want only the answer", got)
				}
				if left := draftNotesIn(t, state); len(left) > 0 {
					t.Errorf("draft notes: got %v, want none", left)
				}
			})
		})
	}
}

// TestDraftWhoseAnswerIsLost: if the response to the first request of a draft is lost, there is
// still one draft, which becomes the answer.
func TestDraftWhoseAnswerIsLost(t *testing.T) {
	for name, faults := range map[string][]discordtest.Fault{
		"once":     {{Kind: discordtest.ResetAfter}},
		"for long": {{Kind: discordtest.HangAfter}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *server) {
				d := s.bot(t)
				s.FailNext("POST /channels/"+hallID, faults...)
				d.Draft(hall(), "half")
				time.Sleep(10 * time.Second)
				d.Draft(hall(), "half a tex")
				within(t, time.Minute, "a draft", func() bool { return slices.Contains(s.Texts(hallID), "half a tex ▍") })
				if got := s.Texts(hallID); len(got) != 1 {
					t.Errorf("got %q, want one draft", got)
				}
				if _, err := act(t, d, "message_discord", map[string]any{"text": "The whole text."}); err != nil {
					t.Fatal(err)
				}
				if got := s.Texts(hallID); len(got) != 1 || got[0] != "The whole text." {
					t.Errorf("in the end got %q, want only the answer", got)
				}
				d.tasks.Close()
			})
		})
	}
}

// TestDraftInAClosedChannel: in a channel that refuses a draft, it is tried once. Drafts notify users
// in private chats, but not in guilds.
func TestDraftInAClosedChannel(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		state := newState()
		d := s.bot(t, func(o *Options) { o.State = state })
		s.RefuseChannel(hallID, 50013)
		for i := range 20 {
			d.Draft(hall(), strings.Repeat("word ", i+1))
			time.Sleep(2 * time.Second)
		}
		if n := len(s.Calls("POST /channels/" + hallID)); n != 1 {
			t.Errorf("tried %d times, want 1", n)
		}
		if left := draftNotesIn(t, state); len(left) > 0 {
			t.Errorf("draft notes: got %v, want none", left)
		}
		d.Draft(core.MustPath("discord/@me/"+dmID), "word")
		d.Draft(core.MustPath("discord/"+guildID+"/"+roomID), "word")
		within(t, time.Minute, "drafts", func() bool { return len(s.Messages(dmID)) == 1 && len(s.Messages(roomID)) == 1 })
		if s.Messages(dmID)[0].Silent || !s.Messages(roomID)[0].Silent {
			t.Error("a private draft is silent, or one in a guild is not")
		}
		d.tasks.Close()
	})
}

// TestAnswerWhoseDraftNoteIsLeft: an answer stays, even if the note about its draft could not
// be deleted before a crash.
func TestAnswerWhoseDraftNoteIsLeft(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		state := newState()
		stopping := &stoppableState{State: state}
		first := s.bot(t, func(o *Options) { o.State = stopping })
		first.Draft(hall(), "The wh")
		within(t, time.Minute, "a draft", func() bool { return len(s.Texts(hallID)) == 1 })
		s.Fail(func(c discordtest.Call) discordtest.Fault {
			if c.Is("PATCH /channels/" + hallID) {
				stopping.stop()
			}
			return discordtest.Fault{}
		})
		if _, err := act(t, first, "message_discord", map[string]any{"text": "The whole text."}); err != nil {
			t.Fatal(err)
		}
		s.Fail(nil)
		next := s.bot(t, func(o *Options) { o.State = state })
		s.listen(t, next, newInbox())
		time.Sleep(defaultTimings.leftover + time.Minute)
		if got := s.Texts(hallID); len(got) != 1 || got[0] != "The whole text." || len(draftNotesIn(t, state)) > 0 {
			t.Errorf("got %q, draft notes %v, want the answer and no notes", got, draftNotesIn(t, state))
		}
	})
}

// TestAnswerEqualToItsDraft: an answer with the same text as its draft stays, whatever
// happened to the request of the draft, before and after a restart.
func TestAnswerEqualToItsDraft(t *testing.T) {
	for name, fault := range map[string]discordtest.Fault{
		"lost request":        {Kind: discordtest.Hang},
		"lost response":       {Kind: discordtest.HangAfter},
		"refused for a while": {Kind: discordtest.Limited, After: 20 * time.Second},
		"refused before it":   {Kind: discordtest.Shared, After: 5 * time.Second},
		"bad gateway":         {Kind: discordtest.Broken},
	} {
		for when, restart := range map[string]bool{"": false, ", restart": true} {
			t.Run(name+when, func(t *testing.T) {
				inBubble(t, func(t *testing.T, s *server) {
					state := newState()
					d := s.bot(t, func(o *Options) { o.State = state })
					last := ""
					// The second answer is the first one again.
					for n := range 2 {
						first := true
						s.Fail(func(c discordtest.Call) discordtest.Fault {
							if first && c.Is("POST /channels/"+hallID) {
								first = fault.Kind == discordtest.Broken && !strings.Contains(string(c.Body), `"nonce":"k`)
								return fault
							}
							return discordtest.Fault{}
						})
						d.Draft(hall(), "Sure.")
						time.Sleep(2 * time.Second)
						if _, err := act(t, d, "message_discord", map[string]any{"text": "Sure."}); err != nil {
							t.Fatal(err)
						}
						got := s.Messages(hallID)
						if len(got) != n+1 || n == 1 && got[0].ID != last {
							t.Fatalf("got %q, want %d answers, the first with id %s", s.Texts(hallID), n+1, last)
						}
						last = got[n].ID
					}
					s.Fail(nil)
					if restart {
						d.tasks.Close()
						d = s.bot(t, func(o *Options) { o.State = state })
					}
					stop := s.listen(t, d, newInbox())
					if _, err := act(t, d, "message_discord", map[string]any{"text": "Anything else?"}); err != nil {
						t.Fatal(err)
					}
					time.Sleep(defaultTimings.leftover + time.Minute)
					if got := s.Texts(hallID); !slices.Equal(got, []string{"Sure.", "Sure.", "Anything else?"}) {
						t.Errorf("in the end got %q, want both answers and the question", got)
					}
					if err := stop(); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// TestDraftOfACrashBetweenEqualAnswers: if a process dies while it sends a draft, answers
// with the same text before and after it stay.
func TestDraftOfACrashBetweenEqualAnswers(t *testing.T) {
	for name, arrives := range map[string]bool{"it arrives": true, "it does not": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *server) {
				state := newState()
				stopping := &stoppableState{State: state}
				first := s.bot(t, func(o *Options) { o.State = stopping })
				s.listen(t, first, newInbox())
				within(t, time.Minute, "connected", func() bool { return first.cache.known(guildID) })
				s.Say(hallID, annID, "Well?")
				within(t, time.Minute, "heard", func() bool { _, known := first.cursors.get(hallID); return known })
				say := func(d *Driver, want int) string {
					t.Helper()
					if _, err := act(t, d, "message_discord", map[string]any{"text": "Sure."}); err != nil {
						t.Fatal(err)
					}
					got := s.Messages(hallID)
					if len(got) != want {
						t.Fatalf("got %q, want %d messages", s.Texts(hallID), want)
					}
					return got[want-1].ID
				}
				one := say(first, 1)
				s.Fail(func(c discordtest.Call) discordtest.Fault {
					switch {
					case !c.Is("POST /channels/" + hallID):
					case !arrives:
						stopping.stop()
						return discordtest.Fault{Kind: discordtest.Hang}
					default:
						stopping.stop()
					}
					return discordtest.Fault{}
				})
				first.Draft(hall(), "Sure.")
				within(t, time.Minute, "dead", stopping.isStopped)
				time.Sleep(20 * time.Second)
				first.tasks.Close()
				s.Fail(nil)
				next := s.bot(t, func(o *Options) { o.State = state })
				left := slices.Collect(maps.Values(draftNotesIn(t, state)))
				if len(left) != 1 || left[0].Sum == "" || left[0].Channel != hallID {
					t.Fatalf("draft notes: got %v, want one without a message id", left)
				}
				two := say(next, 2)
				time.Sleep(time.Minute)
				got := s.Messages(hallID)
				if got[0].ID != one || got[1].ID != two || arrives && len(draftNotesIn(t, state)) > 0 {
					t.Errorf("got %+v, want both answers", got)
				}
				time.Sleep(time.Hour)
				next.drafts.Clear(t.Context(), hallID)
				if left := draftNotesIn(t, state); len(left) > 0 {
					t.Errorf("draft notes: got %v, want none", left)
				}
			})
		})
	}
}

// TestDraftWithUnknownOutcome: a draft that may have become the answer is turned
// into it by a retry of the same part, also after a restart. Nothing else changes the draft until
// it is too old for a retry.
func TestDraftWithUnknownOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		fault   discordtest.FaultKind
		restart bool
		again   bool // the part is tried again
		want    []string
	}{
		"it is":                      {discordtest.ResetAfter, false, true, []string{"The whole text.", "Another."}},
		"it is not":                  {discordtest.Reset, false, true, []string{"The whole text.", "Another."}},
		"it is, restart":             {discordtest.ResetAfter, true, true, []string{"The whole text.", "Another."}},
		"it is not, restart":         {discordtest.Reset, true, true, []string{"The whole text.", "Another."}},
		"it is, given up":            {discordtest.ResetAfter, false, false, []string{"The whole text.", "Another."}},
		"it is not, given up":        {discordtest.Reset, false, false, []string{"Another."}},
		"a server's fault, given up": {discordtest.Broken, true, false, []string{"Another."}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *server) {
				state := newState()
				d := s.bot(t, func(o *Options) { o.State = state })
				d.Draft(hall(), "The wh")
				within(t, time.Minute, "a draft", func() bool { return len(s.Texts(hallID)) == 1 })
				draft := s.Messages(hallID)[0].ID
				s.Fail(func(call discordtest.Call) discordtest.Fault {
					if call.Is("PATCH /channels/" + hallID) {
						return discordtest.Fault{Kind: c.fault}
					}
					return discordtest.Fault{}
				})
				parts := &journal{base: "whole"}
				say := func(text string, parts core.Deliveries) error {
					_, err := act(t, d, "message_discord", map[string]any{"text": text}, func(call *core.Call) { call.Deliveries = parts })
					return err
				}
				if err := say("The whole text.", parts); err == nil {
					t.Fatal("the answer was delivered, want an error")
				}
				s.Fail(nil)
				if c.restart {
					d.tasks.Close()
					d = s.bot(t, func(o *Options) { o.State = state })
				}
				if err := say("Another.", &journal{base: "other"}); err != nil {
					t.Fatal(err)
				}
				if got := s.Messages(hallID); len(got) != 2 || got[0].ID != draft || got[1].Text != "Another." {
					t.Errorf("after another message got %+v, want it behind the draft", got)
				}
				if c.again {
					if err := say("The whole text.", parts); err != nil || parts.done[1].ID != draft {
						t.Errorf("retry: got %v, journalled %+v, want the draft", err, parts.done)
					}
				}
				time.Sleep(defaultTimings.leftover)
				d.Draft(hall(), "and")
				within(t, time.Minute, "a draft", func() bool { return slices.Contains(s.Texts(hallID), "and ▍") })
				d.Draft(hall(), "")
				within(t, time.Minute, "none", func() bool { return !slices.Contains(s.Texts(hallID), "and ▍") })
				d.tasks.Close()
				if got := s.Texts(hallID); !slices.Equal(got, c.want) || len(draftNotesIn(t, state)) > 0 {
					t.Errorf("in the end got %q, want %q; draft notes %v, want none", got, c.want, draftNotesIn(t, state))
				}
			})
		})
	}
}

// TestTellAfterACrash: before a message outside of turns is sent, too, a leftover draft
// is searched for.
func TestTellAfterACrash(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		state := newState()
		writeDraftNote(t, state, draftNote{Channel: hallID, Sum: sumOf("Good morning."), At: time.Now()})
		next := s.bot(t, func(o *Options) { o.State = state })
		for range 2 {
			if err := next.Tell(t.Context(), hall(), "Good morning."); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if _, err := act(t, next, "message_discord", map[string]any{"text": "And you?"}); err != nil {
			t.Fatal(err)
		}
		if got := s.Texts(hallID); !slices.Equal(got, []string{"Good morning.", "Good morning.", "And you?"}) {
			t.Errorf("got %q, want all three messages", got)
		}
	})
}

// TestDraftThatAnotherDriverCompletes: when the previous driver turns its draft into an answer
// after the next driver read its note, the next driver does not delete it.
func TestDraftThatAnotherDriverCompletes(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		state := newState()
		old, next := s.bot(t, func(o *Options) { o.State = state }), s.bot(t, func(o *Options) { o.State = state })
		old.Draft(hall(), "The wh")
		within(t, time.Minute, "a draft", func() bool { return len(s.Texts(hallID)) == 1 })
		next.drafts.ClearSoon(roomID) // reads what is left
		s.Fail(func(c discordtest.Call) discordtest.Fault {
			if c.Is("PATCH /channels/" + hallID) {
				return discordtest.Fault{Kind: discordtest.ResetAfter}
			}
			return discordtest.Fault{}
		})
		if _, err := act(t, old, "message_discord", map[string]any{"text": "The whole text."}); err == nil {
			t.Fatal("the answer was delivered, want an error")
		}
		if _, err := act(t, next, "message_discord", map[string]any{"text": "Another."}); err != nil {
			t.Fatal(err)
		}
		if got := s.Texts(hallID); !slices.Equal(got, []string{"The whole text.", "Another."}) {
			t.Errorf("got %q, want both answers", got)
		}
		old.tasks.Close()
	})
}

// fullState is a State whose writes fail while it is full.
type fullState struct {
	driver.State
	full atomic.Bool
}

func (f *fullState) Put(ctx context.Context, key string, value []byte) error {
	if f.full.Load() {
		return core.ErrFull
	}
	return f.State.Put(ctx, key, value)
}

// TestDraftThatCannotBeNoted: if the store cannot note that a draft becomes the answer, the answer
// is sent as a new message, so that the next process does not mistake it for a draft.
func TestDraftThatCannotBeNoted(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		state := &fullState{State: newState()}
		first := s.bot(t, func(o *Options) { o.State = state })
		first.Draft(hall(), "Su")
		within(t, time.Minute, "a draft", func() bool { return len(s.Messages(hallID)) == 1 })
		state.full.Store(true)
		if _, err := act(t, first, "message_discord", map[string]any{"text": "Sure."}); err != nil {
			t.Fatal(err)
		}
		first.tasks.Close()
		state.full.Store(false)
		next := s.bot(t, func(o *Options) { o.State = state })
		if _, err := act(t, next, "message_discord", map[string]any{"text": "And more."}); err != nil {
			t.Fatal(err)
		}
		if got := s.Texts(hallID); len(got) != 2 || got[0] != "Sure." {
			t.Errorf("got %q, want both answers", got)
		}
	})
}

// draftStage adapts a server to the conformance suite of drafts.
type draftStage struct {
	*server
	state driver.State
	d     *Driver
	stop  func() error

	mu    sync.Mutex
	fails map[string][]discordtest.FaultKind // by the prefix of a request
}

func TestDrafts(t *testing.T) {
	coretest.TestDrafts(t, func(t *testing.T, test func(*testing.T, coretest.DraftWorld)) {
		inBubble(t, func(t *testing.T, s *server) {
			w := &draftStage{server: s, state: newState(), fails: map[string][]discordtest.FaultKind{}}
			s.Fail(w.fault)
			test(t, w)
			_ = w.stop()
		})
	})
}

func (w *draftStage) fault(c discordtest.Call) discordtest.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	for request, list := range w.fails {
		if c.Is(request) && len(list) > 0 {
			w.fails[request] = list[1:]
			return discordtest.Fault{Kind: list[0], After: 5 * time.Second}
		}
	}
	return discordtest.Fault{}
}

func (w *draftStage) Start(t testing.TB) {
	if w.stop != nil {
		_ = w.stop()
		w.d.tasks.Close()
		time.Sleep(10 * time.Second) // between two sessions
	}
	w.d = w.bot(t, func(o *Options) { o.State = w.state })
	w.stop = w.listen(t.(*testing.T), w.d, newInbox())
	synctest.Wait()
}

func (w *draftStage) Draft(text string) { w.d.Draft(hall(), text) }

func (w *draftStage) Answer(_ context.Context, t testing.TB, parts *coretest.Parts, text string) error {
	_, err := act(t, w.d, "message_discord", map[string]any{"text": text}, func(call *core.Call) { call.Deliveries = parts })
	return err
}

func (w *draftStage) End(command bool) {
	w.d.Observe(watch.TurnEnd{Turn: core.TurnID{Path: hall(), Seq: 1}, Command: command})
}

// Texts returns the texts without the mark at the end of drafts.
func (w *draftStage) Texts() []string {
	texts := w.server.Texts(hallID)
	for i := range texts {
		texts[i] = strings.TrimSuffix(texts[i], " ▍")
	}
	return texts
}

func (w *draftStage) Fail(request coretest.DraftRequest, fault coretest.DraftFault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	method := map[coretest.DraftRequest]string{coretest.DraftPost: "POST", coretest.DraftEdit: "PATCH"}[request]
	key := method + " /channels/" + hallID
	if fault == "" {
		delete(w.fails, key)
		return
	}
	w.fails[key] = append(w.fails[key], map[coretest.DraftFault]discordtest.FaultKind{
		coretest.DraftLimited: discordtest.Limited, coretest.DraftLostRequest: discordtest.Hang,
		coretest.DraftLostReply: discordtest.HangAfter,
	}[fault])
}

func (w *draftStage) Searches() bool { return true }
