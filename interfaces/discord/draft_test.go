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
	until(t, "the newest text", func() bool { return s.Texts(hallID)[0] == "a longer text ▍" })
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

// TestDraftBesideCommand: a chat command is answered while a text grows, which goes
// on where it stood.
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
		t.Errorf("stands: %q", got)
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
	state := newState()
	d := s.bot(t, func(o *Options) { o.State = state })
	d.Draft(hall(), "half a tex")
	noted := func() string { raw, _ := state.Get(context.Background(), draftKey); return string(raw) }
	until(t, "a draft", func() bool { return strings.Contains(noted(), `"id"`) })
	s.up(t, func(o *Options) { o.State = state })
	until(t, "gone", func() bool { return len(s.Texts(hallID)) == 0 && !strings.Contains(noted(), hallID) })
	d.tasks.Close()
}

// TestQuestionInWords: a button opens a field, and what is written there is the text of a press.
func TestQuestionInWords(t *testing.T) {
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
		t.Errorf("it opened %+v", opened.Field)
	}
	id, err := s.Fill(opened.ID, "tomorrow at nine")
	if err != nil {
		t.Fatal(err)
	}
	s.awaitAnswer(t, id, discordtest.AnswerNothing)
	p := in.wait(t, core.KindPress, 1)[0]
	if p.Data != "q:1:w" || p.Target != asked.ID || p.Message.Text != "tomorrow at nine" || p.Message.Author.ID != annID {
		t.Errorf("pressed: %+v", p)
	}
	if err := d.Whisper(t.Context(), p.Message, "Thank you."); err != nil {
		t.Error(err)
	}
}

// TestQuestionWithManyChoices: what does not fit into a row of buttons is a list.
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
		t.Errorf("too many choices: %v", err)
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
		t.Errorf("pressed: %+v", p)
	}
}

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
		t.Errorf("it asks %q, want %q", asked.Text, want)
	}
	if !slices.Contains(asked.Buttons(), "?:q:1.2:y") || parts.done[1].ID != asked.ID {
		t.Errorf("asked %s, journalled %+v", asked.Components, parts.done)
	}
	id := s.press(t, hallID, asked.ID, annID, "?:q:1.2:y")
	p := in.wait(t, core.KindPress, 1)[0]
	if p.Data != "q:1.2:y" || p.Target != asked.ID {
		t.Errorf("pressed: %+v", p)
	}
	s.awaitAnswer(t, id, discordtest.AnswerNothing)
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
		state := newState()
		dying := &stoppableState{State: state}
		s.Fail(func(c discordtest.Call) discordtest.Fault {
			if c.Is("POST /channels/" + hallID) {
				dying.stop()
			}
			return discordtest.Fault{}
		})
		first := s.bot(t, func(o *Options) { o.State = dying })
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
		d.tasks.Close()
	})
}

// The configuration was read again: the driver before still writes an answer to
// its end, and the next one takes nothing of it away, now or in another life.
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
		stands := s.Messages(hallID)
		if _, err := act(t, old, "message_discord", map[string]any{"text": "The whole text."}); err != nil {
			t.Fatal(err)
		}
		draft(next, discordtest.VoiceID, "and another, growing")
		for range 2 { // lives
			time.Sleep(defaultTimings.leftover + time.Minute)
			if got := s.Messages(hallID); len(got) != 1 || got[0].Text != "The whole text." || got[0].ID != stands[0].ID {
				t.Errorf("stands: %+v", got)
			}
			if got := s.Texts(roomID); len(got) != 0 {
				t.Errorf("left over: %q", got)
			}
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			stop = s.listen(t, s.bot(t, with), newInbox())
		}
	})
}

// The bot ends in the moment that a draft becomes the answer: it stays that, and
// counts as sent.
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
					t.Fatal("it came through")
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
					t.Errorf("stands: %q", got)
				}
				if left := draftNotesIn(t, state); len(left) > 0 {
					t.Errorf("noted still: %v", left)
				}
			})
		})
	}
}

// The answer to a draft's first request is lost, also for longer than it is tried
// again: the draft is there once, and so is what becomes of it.
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
					t.Errorf("stands: %q", got)
				}
				if _, err := act(t, d, "message_discord", map[string]any{"text": "The whole text."}); err != nil {
					t.Fatal(err)
				}
				if got := s.Texts(hallID); len(got) != 1 || got[0] != "The whole text." {
					t.Errorf("in the end: %q", got)
				}
				d.tasks.Close()
			})
		})
	}
}

// Where no draft is let in, it is tried once. In private the first word is what
// makes a sound.
func TestDraftThatIsNotLetIn(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		state := newState()
		d := s.bot(t, func(o *Options) { o.State = state })
		s.RefuseChannel(hallID, 50013)
		for i := range 20 {
			d.Draft(hall(), strings.Repeat("word ", i+1))
			time.Sleep(2 * time.Second)
		}
		if n := len(s.Calls("POST /channels/" + hallID)); n != 1 {
			t.Errorf("tried %d times", n)
		}
		if left := draftNotesIn(t, state); len(left) > 0 {
			t.Errorf("noted: %v", left)
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

// The note that a draft has become an answer is lost: the answer stays all the
// same.
func TestAnswerWhoseDraftIsNotedStill(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		state := newState()
		full := &stoppableState{State: state}
		first := s.bot(t, func(o *Options) { o.State = full })
		first.Draft(hall(), "The wh")
		within(t, time.Minute, "a draft", func() bool { return len(s.Texts(hallID)) == 1 })
		s.Fail(func(c discordtest.Call) discordtest.Fault {
			if c.Is("PATCH /channels/" + hallID) {
				full.stop()
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
			t.Errorf("stands: %q, noted: %v", got, draftNotesIn(t, state))
		}
	})
}

// What was delivered as an answer stays, whatever became of the draft that said the
// same: its request or its response was lost, or it had to wait for a limit, and the
// next thing is said in this life or in another one.
func TestAnswerThatItsDraftSaidAlready(t *testing.T) {
	for name, fault := range map[string]discordtest.Fault{
		"lost request":         {Kind: discordtest.Hang},
		"lost response":        {Kind: discordtest.HangAfter},
		"refused for a while":  {Kind: discordtest.Limited, After: 20 * time.Second},
		"refused before it":    {Kind: discordtest.Shared, After: 5 * time.Second},
		"a gateway of the web": {Kind: discordtest.Broken},
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
							t.Fatalf("stands: %q, and the first answer was %s", s.Texts(hallID), last)
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
						t.Errorf("in the end: %q", got)
					}
					if err := stop(); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// The process dies while a draft is on its way that says what was said just before,
// or will be said a while later: those stay.
func TestDraftOfACrashBetweenAnswersThatSayTheSame(t *testing.T) {
	for name, arrives := range map[string]bool{"it arrives": true, "it does not": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *server) {
				state := newState()
				dying := &stoppableState{State: state}
				first := s.bot(t, func(o *Options) { o.State = dying })
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
						t.Fatalf("stands: %q", s.Texts(hallID))
					}
					return got[want-1].ID
				}
				one := say(first, 1)
				s.Fail(func(c discordtest.Call) discordtest.Fault {
					switch {
					case !c.Is("POST /channels/" + hallID):
					case !arrives:
						dying.stop()
						return discordtest.Fault{Kind: discordtest.Hang}
					default:
						dying.stop()
					}
					return discordtest.Fault{}
				})
				first.Draft(hall(), "Sure.")
				within(t, time.Minute, "dead", func() bool { dying.mu.Lock(); defer dying.mu.Unlock(); return dying.dead })
				time.Sleep(20 * time.Second)
				first.tasks.Close()
				s.Fail(nil)
				next := s.bot(t, func(o *Options) { o.State = state })
				left := slices.Collect(maps.Values(draftNotesIn(t, state)))
				if len(left) != 1 || left[0].Sum == "" || left[0].Channel != hallID {
					t.Fatalf("noted: %v", left)
				}
				two := say(next, 2)
				time.Sleep(time.Minute)
				got := s.Messages(hallID)
				if got[0].ID != one || got[1].ID != two || arrives && len(draftNotesIn(t, state)) > 0 {
					t.Errorf("stands: %+v", got)
				}
				time.Sleep(time.Hour)
				next.drafts.Clear(t.Context(), hallID)
				if left := draftNotesIn(t, state); len(left) > 0 {
					t.Errorf("noted: %v", left)
				}
			})
		})
	}
}

// Whether a draft became the answer is not known: the same part makes it that, in this
// life or the next one, and nobody else touches it until it is too late for that.
func TestDraftOfWhichNobodyKnowsWhetherItIsTheAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		fault   discordtest.FaultKind
		restart bool
		again   bool // the part is tried again
		stands  []string
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
					t.Fatal("it came through")
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
					t.Errorf("after another one stands: %+v", got)
				}
				if c.again {
					if err := say("The whole text.", parts); err != nil || parts.done[1].ID != draft {
						t.Errorf("tried again: %v, %+v", err, parts.done)
					}
				}
				time.Sleep(defaultTimings.leftover)
				d.Draft(hall(), "and")
				within(t, time.Minute, "a draft", func() bool { return slices.Contains(s.Texts(hallID), "and ▍") })
				d.Draft(hall(), "")
				within(t, time.Minute, "none", func() bool { return !slices.Contains(s.Texts(hallID), "and ▍") })
				d.tasks.Close()
				if got := s.Texts(hallID); !slices.Equal(got, c.stands) || len(draftNotesIn(t, state)) > 0 {
					t.Errorf("in the end: %q, noted: %v", got, draftNotesIn(t, state))
				}
			})
		})
	}
}

// A message of the bot's that answers nobody follows the same rule: what was left is
// searched for before it is sent.
func TestDraftOfACrashAndATelling(t *testing.T) {
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
			t.Errorf("stands: %q", got)
		}
	})
}

// The driver of the configuration before makes an answer of what was a draft when the
// next one came: to that one it is a draft no more.
func TestDraftThatAnotherDriverMakesAnAnswerOf(t *testing.T) {
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
			t.Fatal("it came through")
		}
		if _, err := act(t, next, "message_discord", map[string]any{"text": "Another."}); err != nil {
			t.Fatal(err)
		}
		if got := s.Texts(hallID); !slices.Equal(got, []string{"The whole text.", "Another."}) {
			t.Errorf("stands: %q", got)
		}
		old.tasks.Close()
	})
}

// fullState is a State that takes nothing while it is full.
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

// What cannot be noted to become an answer makes room for one, so that the next life
// takes no answer for a draft.
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
			t.Errorf("stands: %q", got)
		}
	})
}

// draftStage shows a server to the conformance suite of drafts.
type draftStage struct {
	*server
	state driver.State
	d     *Driver
	stop  func() error

	mu    sync.Mutex
	fails map[string][]discordtest.FaultKind // by the beginning of a request
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

// Texts shows drafts without what is at their end.
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
