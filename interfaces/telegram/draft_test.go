package telegram

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/coretest"
	"synthbot/core/markdown"
	"synthbot/core/watch"
	"synthbot/interfaces/telegram/telegramtest"
)

// stream drafts a growing text, one more word every 100 ms, and returns it.
func stream(d *Driver, at core.Path, words int) string {
	text := ""
	for i := range words {
		text += fmt.Sprintf("**word%d** ", i)
		d.Draft(at, text)
		time.Sleep(100 * time.Millisecond)
	}
	return text
}

// up runs a driver and waits until it listens.
func (w *world) up(t *testing.T) (*Driver, func() error) {
	t.Helper()
	d, stop := w.run(t, &coretest.Inbox{})
	synctest.Wait()
	return d, stop
}

// noted returns the stored notes about drafts, as JSON.
func (w *world) noted(t *testing.T) string {
	t.Helper()
	raw, _ := w.state.Get(t.Context(), draftKey)
	return string(raw)
}

// TestDraftByEdits: in a group, a draft is a message that is edited and becomes the answer.
func TestDraftByEdits(t *testing.T) {
	inBubble(t, paced, func(t *testing.T, w *world) {
		w.Strict()
		d, stop := w.up(t)
		for _, chat := range []core.Path{place("telegram", group, 0), place("telegram", forum, 7)} {
			s, _ := chatKeyOf("telegram", chat)
			text := stream(d, chat, 150) // 15 s
			list := w.Messages(s.chat)
			if len(list) != 1 || !strings.HasPrefix(list[0].Text, "word0 word1") || list[0].Thread != int(s.thread) || list[0].Edits < 2 || list[0].Edits > 4 {
				t.Fatalf("%s shows %+v, want one draft with 2 to 4 edits", chat, list)
			}
			if noted := w.noted(t); !strings.Contains(noted, chat.String()) {
				t.Errorf("draft notes: got %s, want one of %s", noted, chat)
			}
			parts := &coretest.Parts{}
			if err := do(t, d, "message_telegram", chat, `{"text":"`+text+`*done*","buttons":[{"label":"More"}]}`, parts); err != nil {
				t.Fatal(err)
			}
			last := w.Messages(s.chat)
			if len(last) != 1 || last[0].ID != list[0].ID || !strings.HasSuffix(last[0].Text, "word149 done") || len(last[0].Markup) == 0 || parts.Sent()[0].ID != id(int64(last[0].ID)) {
				t.Errorf("%s: got %+v, journalled %+v, want the draft turned into the answer", chat, last, parts.Sent())
			}
			if noted := w.noted(t); noted != "{}" {
				t.Errorf("draft notes: got %s, want none", noted)
			}
			if err := do(t, d, "message_telegram", chat, `{"text":"another"}`, &coretest.Parts{}); err != nil || len(w.Messages(s.chat)) != 2 {
				t.Errorf("another message: %v; %d messages, want 2", err, len(w.Messages(s.chat)))
			}
		}
		if n := len(w.Calls("sendMessageDraft")); n != 0 {
			t.Errorf("got %d calls of sendMessageDraft, which groups do not have", n)
		}
		for _, c := range w.Calls("") {
			if c.Status == 429 {
				t.Fatal("the platform's rate limit was exceeded")
			}
		}
		_ = stop()
	})
}

// TestDraftBesideCommand: answering a chat command leaves the draft of a turn that runs
// at the same time in place.
func TestDraftBesideCommand(t *testing.T) {
	inBubble(t, paced, func(t *testing.T, w *world) {
		d, stop := w.up(t)
		chat := place("telegram", group, 0)
		s, _ := chatKeyOf("telegram", chat)
		text := stream(d, chat, 50)
		before := w.Messages(s.chat)
		if len(before) != 1 {
			t.Fatalf("got %+v, want one draft", before)
		}
		if err := doCtx(command.Context(t.Context()), t, d, "message_telegram", chat, `{"text":"command"}`, &coretest.Parts{}); err != nil {
			t.Fatal(err)
		}
		d.Observe(watch.TurnEnd{Turn: core.TurnID{Path: chat, Seq: 2}, Answered: true, Command: true})
		synctest.Wait()
		if err := do(t, d, "message_telegram", chat, `{"text":"`+text+`done"}`, &coretest.Parts{}); err != nil {
			t.Fatal(err)
		}
		got := w.Messages(s.chat)
		if len(got) != 2 || got[0].ID != before[0].ID || !strings.HasSuffix(got[0].Text, "done") || got[1].Text != "command" {
			t.Errorf("got %+v, want the draft turned into the answer, then the command's answer", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestDraftPrivate: private chats use the platform's own drafts, which leave no message behind.
func TestDraftPrivate(t *testing.T) {
	inBubble(t, paced, func(t *testing.T, w *world) {
		w.Strict()
		d, stop := w.up(t)
		at := place("telegram", jay, 0)
		for turn := range 2 {
			text := stream(d, at, 60) // 6 s
			drafts := w.Drafts(jay)
			if n := len(drafts) - 3*turn; n < 3 || n > 5 {
				t.Fatalf("got %d drafts in 6 s, want 3 to 5", n)
			}
			if err := do(t, d, "message_telegram", at, `{"text":"`+text+`"}`, &coretest.Parts{}); err != nil {
				t.Fatal(err)
			}
			list := w.Messages(jay)
			if len(list) != turn+1 || list[turn].Edits != 0 {
				t.Errorf("got %+v, want %d messages without edits", list, turn+1)
			}
			time.Sleep(time.Minute)
			if now := w.Drafts(jay); len(now) != len(drafts) {
				t.Errorf("%d drafts were sent after the answer, want 0", len(now)-len(drafts))
			}
		}
		first, last := w.Drafts(jay)[0], w.Drafts(jay)[len(w.Drafts(jay))-1]
		if first.ID == 0 || first.ID == last.ID || w.noted(t) != "" {
			t.Errorf("draft ids %d and %d, want two different ones; draft notes %q, want none", first.ID, last.ID, w.noted(t))
		}
		_ = stop()
	})
}

// TestDraftSwitch: the configuration, or a server without sendMessageDraft, decides
// whether private drafts are off, messages that are edited, or the platform's own.
func TestDraftSwitch(t *testing.T) {
	for mode, alter := range map[int]func(*Options){
		0: func(o *Options) { o.Config.Stream = "off" },
		1: func(o *Options) { o.Config.Stream = "edit" },
		2: nil, // an older server
	} {
		inBubble(t, alter, func(t *testing.T, w *world) {
			if mode == 2 {
				w.Lack("sendMessageDraft")
			}
			d, stop := w.up(t)
			at := place("telegram", jay, 0)
			for range 2 {
				stream(d, at, 20)
				d.Observe(watch.TurnEnd{Turn: core.TurnID{Path: at, Seq: 1}})
			}
			stream(d, at, 20)
			if n := len(w.Messages(jay)); n != min(mode, 1) {
				t.Errorf("case %d: got %d messages, want %d", mode, n, min(mode, 1))
			}
			if n := len(w.Calls("sendMessageDraft")); n != mode/2 { // asked once, never again
				t.Errorf("case %d: got %d calls of sendMessageDraft, want %d", mode, n, mode/2)
			}
			_ = stop()
		})
	}
}

// TestDraftTyping: typing is not shown while a draft grows. It is shown again when the
// draft stops growing.
func TestDraftTyping(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		d, stop := w.up(t)
		at := place("telegram", jay, 0)
		ctx, cancel := context.WithCancel(t.Context())
		var typing sync.WaitGroup
		typing.Go(func() { d.ShowTyping(ctx, at) })
		stream(d, at, 200) // 20 s
		typed := len(w.Calls("sendChatAction"))
		time.Sleep(time.Minute)
		later := len(w.Calls("sendChatAction"))
		if typed != 1 || later < 8 {
			t.Errorf("got %d typing actions while the draft grew, want 1; %d in all, want at least 8", typed, later)
		}
		cancel()
		typing.Wait()
		_ = stop()
	})
}

// TestDraftQuick: an answer that is complete at once has no draft.
func TestDraftQuick(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		d, stop := w.up(t)
		at := place("telegram", group, 0)
		stream(d, at, 5)
		if err := do(t, d, "message_telegram", at, `{"text":"quick"}`, &coretest.Parts{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := shownTexts(w, group); len(got) != 1 || got[0] != "quick" || w.Messages(group)[0].Edits != 0 {
			t.Errorf("got %q, want quick, without edits", got)
		}
		_ = stop()
	})
}

// TestDraftEnds: a draft that does not simply become the answer is replaced, deleted or
// kept as each case says.
func TestDraftEnds(t *testing.T) {
	at := place("telegram", group, 0)
	do := func(t *testing.T, d *Driver, name, payload string) {
		if err := do(t, d, name, at, payload, &coretest.Parts{}); err != nil {
			t.Error(err)
		}
	}
	for name, tc := range map[string]struct {
		end  func(*testing.T, *world, *Driver)
		want string
	}{
		"taken back": {func(_ *testing.T, _ *world, d *Driver) { d.Draft(at, "") }, ""},
		"begun again": {func(_ *testing.T, _ *world, d *Driver) {
			d.Draft(at, "")
			d.Draft(at, "another engine")
		}, "another engine"},
		"the turn ends": {func(_ *testing.T, _ *world, d *Driver) {
			d.Observe(watch.TurnEnd{Turn: core.TurnID{Path: at, Seq: 5}})
		}, ""},
		"a message has no turn": {func(_ *testing.T, _ *world, d *Driver) {
			d.Observe(watch.TurnEnd{Turn: core.TurnID{Path: at}})
		}, "half a text"},
		"another turn ends": {func(_ *testing.T, _ *world, d *Driver) {
			d.Observe(watch.TurnEnd{Turn: core.TurnID{Path: place("telegram", forum, 0), Seq: 5}})
		}, "half a text"},
		"a reply": {func(t *testing.T, w *world, d *Driver) {
			to := w.Say(group, jay, telegramtest.Saying{Text: "which?"})
			do(t, d, "message_telegram", `{"text":"this","reply_to_message_id":`+id(int64(to))+`}`)
			if list := w.Messages(group); len(list) != 1 || list[0].ReplyTo != to {
				t.Errorf("got %+v, want one reply to %d", list, to)
			}
		}, "this"},
		"a picture": {func(t *testing.T, _ *world, d *Driver) {
			do(t, d, "photo_telegram", `{"url":"https://example.org/x.png","caption":"seen"}`)
		}, "seen"},
		"elsewhere": {func(t *testing.T, _ *world, d *Driver) {
			do(t, d, "message_telegram", `{"text":"there","interface_path":"telegram/-4242"}`)
		}, "half a text"},
		"from elsewhere": {func(t *testing.T, _ *world, d *Driver) {
			call := core.Call{Path: place("telegram", forum, 0), Payload: []byte(`{"text":"from there","interface_path":"` + at.String() + `"}`), Deliveries: &coretest.Parts{}}
			if _, err := d.send.messageAction().Do(t.Context(), call); err != nil {
				t.Error(err)
			}
		}, "half a text|from there"},
		"a question": {func(t *testing.T, _ *world, d *Driver) {
			err := d.Choose(t.Context(), &coretest.Parts{}, core.Sent{Path: at, Text: "Sure?"}, []core.Choice{{Label: "Yes", Data: "c:y"}})
			if err != nil {
				t.Error(err)
			}
		}, "Sure?"},
		"sent outside of turns": {func(t *testing.T, _ *world, d *Driver) {
			if err := d.Tell(t.Context(), at, "By the way."); err != nil {
				t.Error(err)
			}
		}, "half a text|By the way."},
		"deleted by a person": {func(t *testing.T, w *world, d *Driver) {
			w.Remove(group, w.Messages(group)[0].ID)
			do(t, d, "message_telegram", `{"text":"still"}`)
		}, "still"},
		"long": {func(t *testing.T, _ *world, d *Driver) {
			do(t, d, "message_telegram", `{"text":"`+strings.Repeat("many words ", 500)+`"}`)
		}, "2 parts"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, w *world) {
				d, stop := w.up(t)
				d.Draft(at, "half a text")
				time.Sleep(2 * time.Second)
				if got := shownTexts(w, group); len(got) != 1 || got[0] != "half a text" {
					t.Fatalf("at first got %q, want the draft", got)
				}
				first := w.Messages(group)[0].ID
				tc.end(t, w, d)
				time.Sleep(2 * time.Second)
				got := strings.Join(shownTexts(w, group), "|")
				if tc.want == "2 parts" {
					if list := w.Messages(group); len(list) != 2 || list[0].ID != first || markdown.UTF16(got) < 5400 {
						t.Errorf("got %d parts, want 2, of which the first was the draft", len(list))
					}
				} else if got != tc.want {
					t.Errorf("got %q, want %q", got, tc.want)
				}
				drafting := tc.want == "another engine" || strings.HasPrefix(tc.want, "half")
				if noted := w.noted(t); strings.Contains(noted, "telegram/") != drafting {
					t.Errorf("draft notes: got %s, want one: %v", noted, drafting)
				}
				_ = stop()
			})
		})
	}
}

// TestDraftCrash: the draft of a process that crashed is deleted or completed by the next one.
func TestDraftCrash(t *testing.T) {
	at := place("telegram", group, 0)
	for name, tc := range map[string]struct {
		next func(*testing.T, *world, *Driver)
		want string
	}{
		"the turn goes on": {func(t *testing.T, _ *world, d *Driver) {
			if err := do(t, d, "message_telegram", at, `{"text":"whole"}`, &coretest.Parts{}); err != nil {
				t.Error(err)
			}
		}, "2 whole"},
		"it was complete, but not journalled": {func(t *testing.T, _ *world, d *Driver) {
			if err := do(t, d, "message_telegram", at, `{"text":"half a text"}`, &coretest.Parts{}); err != nil {
				t.Error(err)
			}
		}, "2 half a text"},
		"it is written again": {func(t *testing.T, _ *world, d *Driver) {
			d.Draft(at, "whole")
			time.Sleep(10 * time.Minute)
		}, "2 whole"},
		"the turn was given up": {func(_ *testing.T, _ *world, d *Driver) {
			d.Observe(watch.TurnEnd{Turn: core.TurnID{Path: at, Seq: 5}, Aside: true})
		}, ""},
		"people write on": {func(t *testing.T, w *world, d *Driver) {
			w.Say(group, jay, telegramtest.Saying{Text: "never mind"})
		}, ""},
		"nothing comes": {func(*testing.T, *world, *Driver) { time.Sleep(draftLeft) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, w *world) {
				d, stop := w.up(t)
				d.Draft(at, "half a text")
				time.Sleep(2 * time.Second)
				_ = stop()
				d, stop = w.up(t)
				time.Sleep(time.Second)
				if got := shownTexts(w, group); len(got) != 1 {
					t.Fatalf("after the crash got %q, want the draft", got)
				}
				tc.next(t, w, d)
				time.Sleep(2 * time.Second)
				got := ""
				for _, m := range w.Messages(group) {
					got += fmt.Sprint(m.ID, " ", m.Text)
				}
				if got != tc.want {
					t.Errorf("got %q, want %q", got, tc.want)
				}
				if noted := w.noted(t); noted != "{}" && name != "it is written again" {
					t.Errorf("draft notes: got %s, want none", noted)
				}
				_ = stop()
			})
		})
	}
}

// TestDraftRefused: a draft is remembered while the token is rejected. The answer replaces
// it once the token is accepted again.
func TestDraftRefused(t *testing.T) {
	inBubble(t, paced, func(t *testing.T, w *world) {
		parts := &coretest.Parts{}
		d, _ := w.up(t)
		at := place("telegram", group, 0)
		stream(d, at, 30)
		w.Fail(func(telegramtest.Call) telegramtest.Fault {
			return telegramtest.Fault{Kind: telegramtest.Refused, Code: 401, Text: "Unauthorized"}
		})
		if err := do(t, d, "message_telegram", at, `{"text":"the answer"}`, parts); err == nil {
			t.Error("the answer was sent with a rejected token")
		}
		w.Fail(nil)
		d, stop := w.up(t)
		if err := do(t, d, "message_telegram", at, `{"text":"the answer"}`, parts); err != nil {
			t.Error(err)
		}
		if list := w.Messages(group); len(list) != 1 || list[0].Text != "the answer" {
			t.Errorf("got %+v, want only the answer", list)
		}
		_ = stop()
	})
}

// failEdits makes every edit of a message fail.
func (w *world) failEdits(kind telegramtest.FaultKind) {
	w.Fail(func(c telegramtest.Call) telegramtest.Fault {
		if c.Method == "editMessageText" {
			return telegramtest.Fault{Kind: kind}
		}
		return telegramtest.Fault{}
	})
}

// TestDraftUnknown: a draft that may have become the answer is neither deleted nor
// changed, except by a retry of the same part.
func TestDraftUnknown(t *testing.T) {
	at := place("telegram", group, 0)
	fates := map[string]func(*testing.T, *world, *Driver){
		"nothing else":      func(*testing.T, *world, *Driver) {},
		"the turn ends":     func(_ *testing.T, _ *world, d *Driver) { d.Observe(watch.TurnEnd{Turn: core.TurnID{Path: at, Seq: 1}}) },
		"it is taken back":  func(_ *testing.T, _ *world, d *Driver) { d.Draft(at, "") },
		"people write on":   func(_ *testing.T, w *world, _ *Driver) { w.Say(group, jay, telegramtest.Saying{Text: "hm"}) },
		"a while goes by":   func(*testing.T, *world, *Driver) { time.Sleep(2 * draftLeft) },
		"something is said": func(t *testing.T, _ *world, d *Driver) { mustDo(t, d, at, "message_telegram", `{"text":"aside"}`) },
		"a picture is sent": func(t *testing.T, _ *world, d *Driver) {
			mustDo(t, d, at, "photo_telegram", `{"url":"https://example.org/x.png"}`)
		},
	}
	for fault, kind := range map[string]telegramtest.FaultKind{
		"done": telegramtest.ResetAfter, "500": telegramtest.Internal, "cut": telegramtest.CutAfter, "lost": telegramtest.Reset,
	} {
		for fate, happens := range fates {
			for _, life := range []string{"one life", "two lives"} {
				t.Run(fault+", "+fate+", "+life, func(t *testing.T) {
					inBubble(t, paced, func(t *testing.T, w *world) {
						d, stop := w.up(t)
						stream(d, at, 60)
						first, parts := w.Messages(group)[0].ID, &coretest.Parts{}
						w.failEdits(kind)
						send := func() error { return do(t, d, "message_telegram", at, `{"text":"the answer"}`, parts) }
						if err := send(); !errors.Is(err, core.ErrUnknownOutcome) || parts.Since(1).IsZero() {
							t.Fatalf("got %v, want an unknown outcome; part tried since %v", err, parts.Since(1))
						}
						w.Fail(nil)
						if life == "two lives" {
							_ = stop()
							d, stop = w.up(t)
						}
						before := w.Messages(group)[0]
						happens(t, w, d)
						time.Sleep(10 * time.Second)
						if now := w.Messages(group)[0]; now.ID != first || now.Text != before.Text {
							t.Errorf("got %d %q, want %d %q", now.ID, now.Text, first, before.Text)
						}
						others := len(w.Messages(group)) - 1
						if err := send(); err != nil {
							t.Error(err)
						}
						now := w.Messages(group)
						if len(now) != 1+others || now[0].ID != first || now[0].Text != "the answer" || parts.Sent()[0].ID != id(int64(first)) {
							t.Errorf("got %+v, journalled %+v, want the draft turned into the answer", now, parts.Sent())
						}
						if noted := w.noted(t); noted != "{}" {
							t.Errorf("draft notes: got %s, want none", noted)
						}
						_ = stop()
					})
				})
			}
		}
	}
}

// mustDo runs an action that is expected to succeed.
func mustDo(t *testing.T, d *Driver, at core.Path, name, payload string) {
	t.Helper()
	if err := do(t, d, name, at, payload, &coretest.Parts{}); err != nil {
		t.Error(err)
	}
}

// TestDraftGivenUp: when a turn gives up a draft that may have become the answer, the next
// text gets a new draft.
func TestDraftGivenUp(t *testing.T) {
	inBubble(t, paced, func(t *testing.T, w *world) {
		d, stop := w.up(t)
		at := place("telegram", group, 0)
		stream(d, at, 60)
		w.failEdits(telegramtest.ResetAfter)
		parts := &coretest.Parts{}
		err := coretest.Again(t.Context(), func() error { return do(t, d, "message_telegram", at, `{"text":"the answer"}`, parts) })
		if e := (*core.Error)(nil); !errors.As(err, &e) || e.Kind != core.Unsure {
			t.Fatalf("got %v, want an unknown outcome", err)
		}
		w.Fail(nil)
		time.Sleep(2 * time.Minute) // the tries used up the rate limit of drafts
		stream(d, at, 60)
		if n := len(w.Messages(group)); n != 2 {
			t.Errorf("got %d messages, want 2", n)
		}
		mustDo(t, d, at, "message_telegram", `{"text":"It may not have arrived."}`)
		if got := strings.Join(shownTexts(w, group), "|"); got != "the answer|It may not have arrived." {
			t.Errorf("got %q, want the answer and the notice", got)
		}
		if noted := w.noted(t); noted != "{}" {
			t.Errorf("draft notes: got %s, want none", noted)
		}
		_ = stop()
	})
}

// TestDraftUnnoted: if the store cannot note that a draft becomes the answer, the draft is
// deleted and the answer is sent as a new message.
func TestDraftUnnoted(t *testing.T) {
	inBubble(t, paced, func(t *testing.T, w *world) {
		d, stop := w.up(t)
		at := place("telegram", group, 0)
		stream(d, at, 60)
		w.state.failWith(core.ErrFull)
		mustDo(t, d, at, "message_telegram", `{"text":"the answer"}`)
		w.state.failWith(nil)
		_ = stop()
		d, stop = w.up(t)
		d.Observe(watch.TurnEnd{Turn: core.TurnID{Path: at, Seq: 1}})
		time.Sleep(time.Second)
		if got := strings.Join(shownTexts(w, group), "|"); got != "the answer" {
			t.Errorf("got %q, want the answer", got)
		}
		if noted := w.noted(t); noted != "{}" {
			t.Errorf("draft notes: got %s, want none", noted)
		}
		_ = stop()
	})
}

// TestDraftNotesOfOld: notes in the former format, only a message id, are still read.
func TestDraftNotesOfOld(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		d, stop := w.up(t)
		at := place("telegram", group, 0)
		d.Draft(at, "half a text")
		time.Sleep(2 * time.Second)
		_ = stop()
		if err := w.state.Put(t.Context(), draftKey, fmt.Appendf(nil, `{%q:%d}`, at, w.Messages(group)[0].ID)); err != nil {
			t.Fatal(err)
		}
		d, stop = w.up(t)
		mustDo(t, d, at, "message_telegram", `{"text":"whole"}`)
		if got := strings.Join(shownTexts(w, group), "|"); got != "whole" {
			t.Errorf("got %q, want the answer", got)
		}
		_ = stop()
	})
}

// TestDraftReload: a draft that the previous driver of the bot completes while it stops
// is an answer. The next driver does not delete it as a leftover.
func TestDraftReload(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		at := place("telegram", group, 0)
		old, stop := w.up(t)
		old.Draft(at, "half a text")
		time.Sleep(2 * time.Second)
		_ = stop()
		next, stop := w.up(t) // finds the draft
		if err := do(t, old, "message_telegram", at, `{"text":"whole"}`, &coretest.Parts{}); err != nil {
			t.Fatal(err)
		}
		next.Observe(watch.TurnEnd{Turn: core.TurnID{Path: at, Seq: 5}})
		time.Sleep(time.Second)
		next.Draft(at, "the next answer")
		time.Sleep(draftLeft)
		if got := strings.Join(shownTexts(w, group), "|"); got != "whole|the next answer" {
			t.Errorf("got %q, want the answer and the next draft", got)
		}
		_ = stop()
		old.api.Close()
	})
}

// TestDraftThatBecameAnAnswer: when the previous driver of the bot has turned its draft into
// an answer, the next driver does not overwrite it with a draft.
func TestDraftThatBecameAnAnswer(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		at := place("telegram", group, 0)
		old, stop := w.up(t)
		old.Draft(at, "half a text")
		time.Sleep(2 * time.Second)
		_ = stop()
		next, stop := w.up(t)
		if err := do(t, old, "message_telegram", at, `{"text":"whole"}`, &coretest.Parts{}); err != nil {
			t.Fatal(err)
		}
		next.Draft(at, "the next answer")
		time.Sleep(2 * time.Second)
		next.Draft(at, "the next answer grows")
		time.Sleep(2 * time.Second)
		if got := strings.Join(shownTexts(w, group), "|"); got != "whole|the next answer grows" {
			t.Errorf("got %q, want the answer and the next draft", got)
		}
		if err := do(t, next, "message_telegram", at, `{"text":"the next answer grows no more"}`, &coretest.Parts{}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(shownTexts(w, group), "|"); got != "whole|the next answer grows no more" {
			t.Errorf("in the end got %q, want both answers", got)
		}
		_ = stop()
		old.api.Close()
	})
}

// TestDraftSurvivesOtherUpdates: edited messages and messages of other bots do not delete the
// draft of a former process, nor does stopping this one, because a turn may still complete it.
func TestDraftSurvivesOtherUpdates(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		at := place("telegram", group, 0)
		d, stop := w.up(t)
		said := w.Say(group, jay, telegramtest.Saying{Text: "tell me"})
		time.Sleep(time.Second)
		d.Draft(at, "half a text")
		time.Sleep(2 * time.Second)
		_ = stop()
		d, stop = w.up(t)
		w.Push(fmt.Sprintf(`{"edited_message":{"message_id":%d,"date":1,"edit_date":2,"text":"tell us","chat":{"id":%d,"type":"supergroup"},"from":{"id":%d}}}`, said, group, jay))
		w.Say(group, jay, telegramtest.Saying{Text: "beep", Extra: map[string]any{"from": map[string]any{"id": 77, "is_bot": true, "first_name": "Robot"}}})
		time.Sleep(time.Minute)
		if got := shownTexts(w, group); len(got) != 1 {
			t.Errorf("got %q, want the draft", got)
		}
		_ = stop()
		if err := do(t, d, "message_telegram", at, `{"text":"whole"}`, &coretest.Parts{}); err != nil {
			t.Fatal(err)
		}
		if list := w.Messages(group); len(list) != 1 || list[0].Text != "whole" {
			t.Errorf("got %+v, want only the answer", list)
		}
		d.api.Close()
	})
}

// TestDraftFaults: if the edit that completes a draft fails, the answer is still one message.
func TestDraftFaults(t *testing.T) {
	at := place("telegram", group, 0)
	for name, fault := range map[string]telegramtest.Fault{
		"bad gateway": {Kind: telegramtest.BadGateway}, "internal error": {Kind: telegramtest.Internal}, "reset after the edit": {Kind: telegramtest.ResetAfter}, "rate limit": {Kind: telegramtest.Limited, RetryAfter: 4},
		"HTML refused": {Kind: telegramtest.Refused, Text: "Bad Request: can't parse entities: x"}, "edit refused": {Kind: telegramtest.Refused, Text: "Bad Request: message can't be edited"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, w *world) {
				d, stop := w.up(t)
				d.Draft(at, "half")
				time.Sleep(2 * time.Second)
				w.FailNext("editMessageText", fault)
				if err := do(t, d, "message_telegram", at, `{"text":"**whole**"}`, &coretest.Parts{}); err != nil {
					t.Fatal(err)
				}
				if got := shownTexts(w, group); len(got) != 1 || got[0] != "whole" || w.noted(t) != "{}" || w.Early() != 0 {
					t.Errorf("got %q, want whole; draft notes %s, want none; %d calls before the end of a rate limit, want 0", got, w.noted(t), w.Early())
				}
				_ = stop()
			})
		})
	}
	inBubble(t, nil, func(t *testing.T, w *world) { // an outage that ends after the first try
		d, stop := w.up(t)
		parts := &coretest.Parts{}
		d.Draft(at, "half")
		time.Sleep(2 * time.Second)
		w.Fail(func(telegramtest.Call) telegramtest.Fault { return telegramtest.Fault{Kind: telegramtest.BadGateway} })
		if err := do(t, d, "message_telegram", at, `{"text":"whole"}`, parts); err == nil {
			t.Error("the answer was sent during an outage")
		}
		w.Fail(nil)
		if err := do(t, d, "message_telegram", at, `{"text":"whole"}`, parts); err != nil {
			t.Error(err)
		}
		if got := shownTexts(w, group); len(got) != 1 || got[0] != "whole" {
			t.Errorf("got %q, want whole", got)
		}
		_ = stop()
	})
}

// TestDraftWaits: after a 429, a draft waits as long as required and then grows on.
func TestDraftWaits(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		d, stop := w.up(t)
		w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.Limited, RetryAfter: 5})
		stream(d, place("telegram", group, 0), 100) // 10 s
		if list := w.Messages(group); w.Early() != 0 || len(list) != 1 || !strings.Contains(list[0].Text, "word90") {
			t.Errorf("got %d calls before the end of the limit, want 0; messages %+v, want one draft", w.Early(), list)
		}
		_ = stop()
	})
}

// TestDraftLost: if the response to the first request of a draft is lost, the request is not
// repeated, so that at most one message is left behind.
func TestDraftLost(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		d, stop := w.up(t)
		w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.ResetAfter}, telegramtest.Fault{Kind: telegramtest.ResetAfter})
		stream(d, place("telegram", group, 0), 100)
		if n := len(w.Messages(group)); n != 1 {
			t.Errorf("got %d messages, want 1", n)
		}
		_ = stop()
	})
}

// TestDraftPace: drafts in many chats at once, beside messages and typing actions, stay
// within the platform's rate limits.
func TestDraftPace(t *testing.T) {
	inBubble(t, paced, func(t *testing.T, w *world) {
		w.Strict()
		d, stop := w.up(t)
		var all sync.WaitGroup
		for i := range 60 {
			chat := int64(2000 + i)
			if i%2 == 0 {
				w.AddPerson(telegramtest.Person{ID: chat, Name: "P"})
			} else {
				chat = -1000000000000 - chat
				w.AddChat(telegramtest.Chat{ID: chat, Type: "supergroup", Title: "G"})
			}
			all.Go(func() {
				for range 3 {
					ctx, cancel := context.WithCancel(t.Context())
					var typing sync.WaitGroup
					typing.Go(func() { d.ShowTyping(ctx, place("telegram", chat, 0)) })
					text := stream(d, place("telegram", chat, 0), 80)
					cancel()
					typing.Wait()
					if err := do(t, d, "message_telegram", place("telegram", chat, 0), `{"text":"`+text+`"}`, &coretest.Parts{}); err != nil {
						t.Error(err)
					}
				}
				if got := w.Messages(chat); len(got) != 3 {
					t.Errorf("chat %d: got %d messages, want 3", chat, len(got))
				}
			})
		}
		all.Wait()
		synctest.Wait()
		shown := 0
		for _, c := range w.Calls("") {
			if c.Status == 429 {
				t.Fatal("the platform's rate limit was exceeded")
			}
			if c.Method == "editMessageText" || c.Method == "sendMessageDraft" {
				shown++
			}
		}
		if shown < 100 {
			t.Errorf("got %d drafts and edits, want at least 100", shown)
		}
		_ = stop()
	})
}

// draftStage adapts a world to the conformance suite of drafts.
type draftStage struct {
	*world
	d    *Driver
	stop func() error

	mu    sync.Mutex
	fails map[string][]telegramtest.FaultKind // by method
}

func TestDrafts(t *testing.T) {
	coretest.TestDrafts(t, func(t *testing.T, test func(*testing.T, coretest.DraftWorld)) {
		inBubble(t, paced, func(t *testing.T, w *world) {
			s := &draftStage{world: w, fails: map[string][]telegramtest.FaultKind{}}
			w.Server.Fail(func(c telegramtest.Call) telegramtest.Fault {
				s.mu.Lock()
				defer s.mu.Unlock()
				list := s.fails[c.Method]
				if len(list) == 0 {
					return telegramtest.Fault{}
				}
				s.fails[c.Method] = list[1:]
				return telegramtest.Fault{Kind: list[0], RetryAfter: 5}
			})
			test(t, s)
			_ = s.stop()
		})
	})
}

func (s *draftStage) Start(t testing.TB) {
	if s.stop != nil {
		_ = s.stop()
	}
	s.d, s.stop = s.run(t.(*testing.T), &coretest.Inbox{})
	synctest.Wait()
}

func (s *draftStage) place() core.Path { return place("telegram", group, 0) }

func (s *draftStage) Draft(text string) { s.d.Draft(s.place(), text) }

func (s *draftStage) Answer(ctx context.Context, t testing.TB, parts *coretest.Parts, text string) error {
	return doCtx(ctx, t, s.d, "message_telegram", s.place(), fmt.Sprintf(`{"text":%q}`, text), parts)
}

func (s *draftStage) End(command bool) {
	s.d.Observe(watch.TurnEnd{Turn: core.TurnID{Path: s.place(), Seq: 1}, Command: command})
}

func (s *draftStage) Texts() []string { return shownTexts(s.world, group) }

func (s *draftStage) Fail(request coretest.DraftRequest, fault coretest.DraftFault) {
	method := map[coretest.DraftRequest]string{coretest.DraftPost: "sendMessage", coretest.DraftEdit: "editMessageText"}[request]
	s.mu.Lock()
	defer s.mu.Unlock()
	if fault == "" {
		delete(s.fails, method)
		return
	}
	s.fails[method] = append(s.fails[method], map[coretest.DraftFault]telegramtest.FaultKind{
		coretest.DraftLimited: telegramtest.Limited, coretest.DraftLostRequest: telegramtest.Reset,
		coretest.DraftLostReply: telegramtest.ResetAfter,
	}[fault])
}

func (s *draftStage) Searches() bool { return false }
