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

// stream lets a text grow, a word every tenth of a second.
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

func (w *world) noted(t *testing.T) string {
	t.Helper()
	raw, _ := w.state.Get(t.Context(), draftKey)
	return string(raw)
}

// TestDraftByEdits shows a growing text in a group as a message, which becomes
// the answer.
func TestDraftByEdits(t *testing.T) {
	bubble(t, paced, func(t *testing.T, w *world) {
		w.Strict()
		d, stop := w.up(t)
		for _, chat := range []core.Path{place("telegram", group, 0), place("telegram", forum, 7)} {
			s, _ := chatKeyOf("telegram", chat)
			text := stream(d, chat, 150) // 15 s
			list := w.Messages(s.chat)
			if len(list) != 1 || !strings.HasPrefix(list[0].Text, "word0 word1") || list[0].Thread != int(s.thread) || list[0].Edits < 2 || list[0].Edits > 4 {
				t.Fatalf("%s shows %+v", chat, list)
			}
			if noted := w.noted(t); !strings.Contains(noted, chat.String()) {
				t.Errorf("noted: %s", noted)
			}
			parts := &coretest.Parts{}
			if err := do(t, d, "message_telegram", chat, `{"text":"`+text+`*done*","buttons":[{"label":"More"}]}`, parts); err != nil {
				t.Fatal(err)
			}
			last := w.Messages(s.chat)
			if len(last) != 1 || last[0].ID != list[0].ID || !strings.HasSuffix(last[0].Text, "word149 done") || len(last[0].Markup) == 0 || parts.Sent()[0].ID != id(int64(last[0].ID)) {
				t.Errorf("%s: the answer stands as %+v, journalled %+v", chat, last, parts.Sent())
			}
			if noted := w.noted(t); noted != "{}" {
				t.Errorf("still noted: %s", noted)
			}
			if err := do(t, d, "message_telegram", chat, `{"text":"another"}`, &coretest.Parts{}); err != nil || len(w.Messages(s.chat)) != 2 {
				t.Errorf("another message: %v", err)
			}
		}
		if n := len(w.Calls("sendMessageDraft")); n != 0 {
			t.Errorf("%d drafts where the platform has none", n)
		}
		for _, c := range w.Calls("") {
			if c.Status == 429 {
				t.Fatal("the platform had to complain")
			}
		}
		_ = stop()
	})
}

// TestDraftBesideCommand: a chat command is answered while a text grows, which goes
// on where it stood.
func TestDraftBesideCommand(t *testing.T) {
	bubble(t, paced, func(t *testing.T, w *world) {
		d, stop := w.up(t)
		chat := place("telegram", group, 0)
		s, _ := chatKeyOf("telegram", chat)
		text := stream(d, chat, 50)
		before := w.Messages(s.chat)
		if len(before) != 1 {
			t.Fatalf("it shows %+v", before)
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
			t.Errorf("it shows %+v", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestDraftPrivate uses the platform's own drafts, which leave nothing behind.
func TestDraftPrivate(t *testing.T) {
	bubble(t, paced, func(t *testing.T, w *world) {
		w.Strict()
		d, stop := w.up(t)
		at := place("telegram", jay, 0)
		for turn := range 2 {
			text := stream(d, at, 60) // 6 s
			drafts := w.Drafts(jay)
			if n := len(drafts) - 3*turn; n < 3 || n > 5 {
				t.Fatalf("%d drafts are shown in 6 s", n)
			}
			if err := do(t, d, "message_telegram", at, `{"text":"`+text+`"}`, &coretest.Parts{}); err != nil {
				t.Fatal(err)
			}
			list := w.Messages(jay)
			if len(list) != turn+1 || list[turn].Edits != 0 {
				t.Errorf("stands: %+v", list)
			}
			time.Sleep(time.Minute)
			if now := w.Drafts(jay); len(now) != len(drafts) {
				t.Error("a draft shows after the answer")
			}
		}
		first, last := w.Drafts(jay)[0], w.Drafts(jay)[len(w.Drafts(jay))-1]
		if first.ID == 0 || first.ID == last.ID || w.noted(t) != "" {
			t.Errorf("drafts %d and %d, noted %q", first.ID, last.ID, w.noted(t))
		}
		_ = stop()
	})
}

// TestDraftSwitch: an older server, and the configuration.
func TestDraftSwitch(t *testing.T) {
	for stands, alter := range map[int]func(*Options){
		0: func(o *Options) { o.Config.Stream = "off" },
		1: func(o *Options) { o.Config.Stream = "edit" },
		2: nil, // an older server
	} {
		bubble(t, alter, func(t *testing.T, w *world) {
			if stands == 2 {
				w.Lack("sendMessageDraft")
			}
			d, stop := w.up(t)
			at := place("telegram", jay, 0)
			for range 2 {
				stream(d, at, 20)
				d.Observe(watch.TurnEnd{Turn: core.TurnID{Path: at, Seq: 1}})
			}
			stream(d, at, 20)
			if n := len(w.Messages(jay)); n != min(stands, 1) {
				t.Errorf("case %d: %d messages stand", stands, n)
			}
			if n := len(w.Calls("sendMessageDraft")); n != stands/2 { // asked once, never again
				t.Errorf("case %d: %d drafts tried", stands, n)
			}
			_ = stop()
		})
	}
}

// TestDraftTyping: a growing text is sign enough; when it stops growing, typing
// goes on.
func TestDraftTyping(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		d, stop := w.up(t)
		at := place("telegram", jay, 0)
		ctx, cancel := context.WithCancel(t.Context())
		var thought sync.WaitGroup
		thought.Go(func() { d.ShowTyping(ctx, at) })
		stream(d, at, 200) // 20 s
		typed := len(w.Calls("sendChatAction"))
		time.Sleep(time.Minute)
		later := len(w.Calls("sendChatAction"))
		if typed != 1 || later < 8 {
			t.Errorf("%d signs next to the text, %d after it stopped", typed, later-typed)
		}
		cancel()
		thought.Wait()
		_ = stop()
	})
}

// TestDraftQuick shows nothing of an answer that is written in a moment.
func TestDraftQuick(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		d, stop := w.up(t)
		at := place("telegram", group, 0)
		stream(d, at, 5)
		if err := do(t, d, "message_telegram", at, `{"text":"quick"}`, &coretest.Parts{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := shownTexts(w, group); len(got) != 1 || got[0] != "quick" || w.Messages(group)[0].Edits != 0 {
			t.Errorf("stands: %q", got)
		}
		_ = stop()
	})
}

// TestDraftGoes ends drafts in every way but the usual one; what is shown then is
// what was meant to.
func TestDraftGoes(t *testing.T) {
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
		"begun anew": {func(_ *testing.T, _ *world, d *Driver) {
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
				t.Errorf("it stands as %+v", list)
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
		"told from outside": {func(t *testing.T, _ *world, d *Driver) {
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
			bubble(t, nil, func(t *testing.T, w *world) {
				d, stop := w.up(t)
				d.Draft(at, "half a text")
				time.Sleep(2 * time.Second)
				if got := shownTexts(w, group); len(got) != 1 || got[0] != "half a text" {
					t.Fatalf("at first %q stands", got)
				}
				first := w.Messages(group)[0].ID
				tc.end(t, w, d)
				time.Sleep(2 * time.Second)
				got := strings.Join(shownTexts(w, group), "|")
				if tc.want == "2 parts" {
					if list := w.Messages(group); len(list) != 2 || list[0].ID != first || markdown.UTF16(got) < 5400 {
						t.Errorf("%d parts stand", len(list))
					}
				} else if got != tc.want {
					t.Errorf("%q stands, want %q", got, tc.want)
				}
				drafting := tc.want == "another engine" || strings.HasPrefix(tc.want, "half")
				if noted := w.noted(t); strings.Contains(noted, "telegram/") != drafting {
					t.Errorf("noted: %s", noted)
				}
				_ = stop()
			})
		})
	}
}

// TestDraftCrash leaves a draft, and another process deletes it.
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
		"it was finished, but not journalled": {func(t *testing.T, _ *world, d *Driver) {
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
		"the place moves on": {func(t *testing.T, w *world, d *Driver) {
			w.Say(group, jay, telegramtest.Saying{Text: "never mind"})
		}, ""},
		"nothing comes": {func(*testing.T, *world, *Driver) { time.Sleep(draftLeft) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, w *world) {
				d, stop := w.up(t)
				d.Draft(at, "half a text")
				time.Sleep(2 * time.Second)
				_ = stop()
				d, stop = w.up(t)
				time.Sleep(time.Second)
				if got := shownTexts(w, group); len(got) != 1 {
					t.Fatalf("%q stands after the crash", got)
				}
				tc.next(t, w, d)
				time.Sleep(2 * time.Second)
				got := ""
				for _, m := range w.Messages(group) {
					got += fmt.Sprint(m.ID, " ", m.Text)
				}
				if got != tc.want {
					t.Errorf("%q stands, want %q", got, tc.want)
				}
				if noted := w.noted(t); noted != "{}" && name != "it is written again" {
					t.Errorf("noted: %s", noted)
				}
				_ = stop()
			})
		})
	}
}

// TestDraftRefused: the draft is not forgotten when the token is refused: the
// answer takes its place once there is another token.
func TestDraftRefused(t *testing.T) {
	bubble(t, paced, func(t *testing.T, w *world) {
		parts := &coretest.Parts{}
		d, _ := w.up(t)
		at := place("telegram", group, 0)
		stream(d, at, 30)
		w.Fail(func(telegramtest.Call) telegramtest.Fault {
			return telegramtest.Fault{Kind: telegramtest.Refused, Code: 401, Text: "Unauthorized"}
		})
		if err := do(t, d, "message_telegram", at, `{"text":"the answer"}`, parts); err == nil {
			t.Error("sent")
		}
		w.Fail(nil)
		d, stop := w.up(t)
		if err := do(t, d, "message_telegram", at, `{"text":"the answer"}`, parts); err != nil {
			t.Error(err)
		}
		if list := w.Messages(group); len(list) != 1 || list[0].Text != "the answer" {
			t.Errorf("stands: %+v", list)
		}
		_ = stop()
	})
}

// unanswered fails all edits of messages.
func (w *world) unanswered(kind telegramtest.FaultKind) {
	w.Fail(func(c telegramtest.Call) telegramtest.Fault {
		if c.Method == "editMessageText" {
			return telegramtest.Fault{Kind: kind}
		}
		return telegramtest.Fault{}
	})
}

// TestDraftUnknown: a draft of which nobody knows whether it became the answer is
// neither taken away nor changed, except by another try of the same part.
func TestDraftUnknown(t *testing.T) {
	at := place("telegram", group, 0)
	fates := map[string]func(*testing.T, *world, *Driver){
		"nothing else":      func(*testing.T, *world, *Driver) {},
		"the turn ends":     func(_ *testing.T, _ *world, d *Driver) { d.Observe(watch.TurnEnd{Turn: core.TurnID{Path: at, Seq: 1}}) },
		"it is taken back":  func(_ *testing.T, _ *world, d *Driver) { d.Draft(at, "") },
		"people talk on":    func(_ *testing.T, w *world, _ *Driver) { w.Say(group, jay, telegramtest.Saying{Text: "hm"}) },
		"a while goes by":   func(*testing.T, *world, *Driver) { time.Sleep(2 * draftLeft) },
		"something is said": func(t *testing.T, _ *world, d *Driver) { say(t, d, at, "message_telegram", `{"text":"aside"}`) },
		"a picture is sent": func(t *testing.T, _ *world, d *Driver) {
			say(t, d, at, "photo_telegram", `{"url":"https://example.org/x.png"}`)
		},
	}
	for fault, kind := range map[string]telegramtest.FaultKind{
		"done": telegramtest.ResetAfter, "500": telegramtest.Internal, "cut": telegramtest.CutAfter, "lost": telegramtest.Reset,
	} {
		for fate, happens := range fates {
			for _, life := range []string{"one life", "two lives"} {
				t.Run(fault+", "+fate+", "+life, func(t *testing.T) {
					bubble(t, paced, func(t *testing.T, w *world) {
						d, stop := w.up(t)
						stream(d, at, 60)
						first, parts := w.Messages(group)[0].ID, &coretest.Parts{}
						w.unanswered(kind)
						send := func() error { return do(t, d, "message_telegram", at, `{"text":"the answer"}`, parts) }
						if err := send(); !errors.Is(err, core.ErrUnknownOutcome) || parts.Since(1).IsZero() {
							t.Fatalf("%v, since %v", err, parts.Since(1))
						}
						w.Fail(nil)
						if life == "two lives" {
							_ = stop()
							d, stop = w.up(t)
						}
						stood := w.Messages(group)[0]
						happens(t, w, d)
						time.Sleep(10 * time.Second)
						if now := w.Messages(group)[0]; now.ID != first || now.Text != stood.Text {
							t.Errorf("%d %q became %d %q", first, stood.Text, now.ID, now.Text)
						}
						others := len(w.Messages(group)) - 1
						if err := send(); err != nil {
							t.Error(err)
						}
						now := w.Messages(group)
						if len(now) != 1+others || now[0].ID != first || now[0].Text != "the answer" || parts.Sent()[0].ID != id(int64(first)) {
							t.Errorf("journalled %+v, stands %+v", parts.Sent(), now)
						}
						if noted := w.noted(t); noted != "{}" {
							t.Errorf("still noted: %s", noted)
						}
						_ = stop()
					})
				})
			}
		}
	}
}

// say does an action of its own.
func say(t *testing.T, d *Driver, at core.Path, name, payload string) {
	t.Helper()
	if err := do(t, d, name, at, payload, &coretest.Parts{}); err != nil {
		t.Error(err)
	}
}

// TestDraftGivenUp: where nobody knows in the end whether a draft became the answer,
// the next text gets a draft of its own.
func TestDraftGivenUp(t *testing.T) {
	bubble(t, paced, func(t *testing.T, w *world) {
		d, stop := w.up(t)
		at := place("telegram", group, 0)
		stream(d, at, 60)
		w.unanswered(telegramtest.ResetAfter)
		parts := &coretest.Parts{}
		err := coretest.Again(t.Context(), func() error { return do(t, d, "message_telegram", at, `{"text":"the answer"}`, parts) })
		if e := (*core.Error)(nil); !errors.As(err, &e) || e.Kind != core.Unsure {
			t.Fatal(err)
		}
		w.Fail(nil)
		time.Sleep(2 * time.Minute) // the tries took all the room for drafts
		stream(d, at, 60)
		if n := len(w.Messages(group)); n != 2 {
			t.Errorf("%d messages stand", n)
		}
		say(t, d, at, "message_telegram", `{"text":"It may not have arrived."}`)
		if got := strings.Join(shownTexts(w, group), "|"); got != "the answer|It may not have arrived." {
			t.Errorf("%q stands", got)
		}
		if noted := w.noted(t); noted != "{}" {
			t.Errorf("still noted: %s", noted)
		}
		_ = stop()
	})
}

// TestDraftUnnoted: what cannot be noted to become an answer makes room for one.
func TestDraftUnnoted(t *testing.T) {
	bubble(t, paced, func(t *testing.T, w *world) {
		d, stop := w.up(t)
		at := place("telegram", group, 0)
		stream(d, at, 60)
		w.state.breaks(core.ErrFull)
		say(t, d, at, "message_telegram", `{"text":"the answer"}`)
		w.state.breaks(nil)
		_ = stop()
		d, stop = w.up(t)
		d.Observe(watch.TurnEnd{Turn: core.TurnID{Path: at, Seq: 1}})
		time.Sleep(time.Second)
		if got := strings.Join(shownTexts(w, group), "|"); got != "the answer" {
			t.Errorf("%q stands", got)
		}
		if noted := w.noted(t); noted != "{}" {
			t.Errorf("still noted: %s", noted)
		}
		_ = stop()
	})
}

// TestDraftNotesOfOld: notes were once nothing but a message's id.
func TestDraftNotesOfOld(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		d, stop := w.up(t)
		at := place("telegram", group, 0)
		d.Draft(at, "half a text")
		time.Sleep(2 * time.Second)
		_ = stop()
		if err := w.state.Put(t.Context(), draftKey, fmt.Appendf(nil, `{%q:%d}`, at, w.Messages(group)[0].ID)); err != nil {
			t.Fatal(err)
		}
		d, stop = w.up(t)
		say(t, d, at, "message_telegram", `{"text":"whole"}`)
		if got := strings.Join(shownTexts(w, group), "|"); got != "whole" {
			t.Errorf("%q stands", got)
		}
		_ = stop()
	})
}

// TestDraftReload: what another driver of the same bot showed, and finishes
// while it ends, is an answer and no draft of a former life.
func TestDraftReload(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		at := place("telegram", group, 0)
		old, stop := w.up(t)
		old.Draft(at, "half a text")
		time.Sleep(2 * time.Second)
		_ = stop()
		next, stop := w.up(t) // it finds a draft
		if err := do(t, old, "message_telegram", at, `{"text":"whole"}`, &coretest.Parts{}); err != nil {
			t.Fatal(err)
		}
		next.Observe(watch.TurnEnd{Turn: core.TurnID{Path: at, Seq: 5}})
		time.Sleep(time.Second)
		next.Draft(at, "the next answer")
		time.Sleep(draftLeft)
		if got := strings.Join(shownTexts(w, group), "|"); got != "whole|the next answer" {
			t.Errorf("%q stands", got)
		}
		_ = stop()
		old.api.Close()
	})
}

// TestDraftThatBecameAnAnswer: a draft of another driver of the same bot that has become
// an answer meanwhile is not written over.
func TestDraftThatBecameAnAnswer(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
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
			t.Errorf("%q stands", got)
		}
		if err := do(t, next, "message_telegram", at, `{"text":"the next answer grows no more"}`, &coretest.Parts{}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(shownTexts(w, group), "|"); got != "whole|the next answer grows no more" {
			t.Errorf("%q stands in the end", got)
		}
		_ = stop()
		old.api.Close()
	})
}

// TestDraftThatNobodyPasses: changed messages and other bots do not take a draft of a
// former life away, nor does the end of this one, before which a turn may still finish it.
func TestDraftThatNobodyPasses(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
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
			t.Errorf("%q stands", got)
		}
		_ = stop()
		if err := do(t, d, "message_telegram", at, `{"text":"whole"}`, &coretest.Parts{}); err != nil {
			t.Fatal(err)
		}
		if list := w.Messages(group); len(list) != 1 || list[0].Text != "whole" {
			t.Errorf("stands: %+v", list)
		}
		d.api.Close()
	})
}

// TestDraftFaults meets failures at the last moment; one message is left then.
func TestDraftFaults(t *testing.T) {
	at := place("telegram", group, 0)
	for name, fault := range map[string]telegramtest.Fault{
		"broken": {Kind: telegramtest.BadGateway}, "in trouble": {Kind: telegramtest.Internal}, "reset after it was done": {Kind: telegramtest.ResetAfter}, "wait": {Kind: telegramtest.Limited, RetryAfter: 4},
		"not as HTML": {Kind: telegramtest.Refused, Text: "Bad Request: can't parse entities: x"}, "not at all": {Kind: telegramtest.Refused, Text: "Bad Request: message can't be edited"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, w *world) {
				d, stop := w.up(t)
				d.Draft(at, "half")
				time.Sleep(2 * time.Second)
				w.FailNext("editMessageText", fault)
				if err := do(t, d, "message_telegram", at, `{"text":"**whole**"}`, &coretest.Parts{}); err != nil {
					t.Fatal(err)
				}
				if got := shownTexts(w, group); len(got) != 1 || got[0] != "whole" || w.noted(t) != "{}" || w.Early() != 0 {
					t.Errorf("%q stands, noted %s, %d early", got, w.noted(t), w.Early())
				}
				_ = stop()
			})
		})
	}
	bubble(t, nil, func(t *testing.T, w *world) { // an outage outlives the first try, not the message
		d, stop := w.up(t)
		parts := &coretest.Parts{}
		d.Draft(at, "half")
		time.Sleep(2 * time.Second)
		w.Fail(func(telegramtest.Call) telegramtest.Fault { return telegramtest.Fault{Kind: telegramtest.BadGateway} })
		if err := do(t, d, "message_telegram", at, `{"text":"whole"}`, parts); err == nil {
			t.Error("sent through an outage")
		}
		w.Fail(nil)
		if err := do(t, d, "message_telegram", at, `{"text":"whole"}`, parts); err != nil {
			t.Error(err)
		}
		if got := shownTexts(w, group); len(got) != 1 || got[0] != "whole" {
			t.Errorf("%q stands", got)
		}
		_ = stop()
	})
}

// TestDraftWaits obeys a 429 that a draft gets, and goes on then.
func TestDraftWaits(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		d, stop := w.up(t)
		w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.Limited, RetryAfter: 5})
		stream(d, place("telegram", group, 0), 100) // 10 s
		if list := w.Messages(group); w.Early() != 0 || len(list) != 1 || !strings.Contains(list[0].Text, "word90") {
			t.Errorf("%d calls came early, %+v stands", w.Early(), list)
		}
		_ = stop()
	})
}

// TestDraftLost bounds what a lost answer of the platform leaves behind: one
// message, and no more tries.
func TestDraftLost(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		d, stop := w.up(t)
		w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.ResetAfter}, telegramtest.Fault{Kind: telegramtest.ResetAfter})
		stream(d, place("telegram", group, 0), 100)
		if n := len(w.Messages(group)); n != 1 {
			t.Errorf("%d messages stand", n)
		}
		_ = stop()
	})
}

// TestDraftPace streams in many places at once, next to messages and signs of
// typing: the platform, which counts, must never complain.
func TestDraftPace(t *testing.T) {
	bubble(t, paced, func(t *testing.T, w *world) {
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
					var thought sync.WaitGroup
					thought.Go(func() { d.ShowTyping(ctx, place("telegram", chat, 0)) })
					text := stream(d, place("telegram", chat, 0), 80)
					cancel()
					thought.Wait()
					if err := do(t, d, "message_telegram", place("telegram", chat, 0), `{"text":"`+text+`"}`, &coretest.Parts{}); err != nil {
						t.Error(err)
					}
				}
				if got := w.Messages(chat); len(got) != 3 {
					t.Errorf("%d messages stand in %d", len(got), chat)
				}
			})
		}
		all.Wait()
		synctest.Wait()
		shown := 0
		for _, c := range w.Calls("") {
			if c.Status == 429 {
				t.Fatal("the platform had to complain")
			}
			if c.Method == "editMessageText" || c.Method == "sendMessageDraft" {
				shown++
			}
		}
		if shown < 100 {
			t.Errorf("only %d times was anything shown", shown)
		}
		_ = stop()
	})
}

// draftStage shows a world to the conformance suite of drafts.
type draftStage struct {
	*world
	d    *Driver
	stop func() error

	mu    sync.Mutex
	fails map[string][]telegramtest.FaultKind // by method
}

func TestDrafts(t *testing.T) {
	coretest.TestDrafts(t, func(t *testing.T, test func(*testing.T, coretest.DraftWorld)) {
		bubble(t, paced, func(t *testing.T, w *world) {
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
