package telegram

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/coretest"
	"synthbot/interfaces/telegram/telegramtest"
)

// TestTell: a message outside of turns reaches chats, topics and users, once. Places that
// the bot cannot write to, and empty texts, are errors.
func TestTell(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		d, stop := w.up(t)
		for to, chat := range map[string]int64{"telegram/@user/1001": ann, "telegram/-1009876543210/8": forum} {
			if err := d.Tell(t.Context(), core.MustPath(to), "**Good** <morning>"); err != nil {
				t.Errorf("%s: %v", to, err)
			}
			if list := w.Messages(chat); len(list) != 1 || list[0].Text != "Good <morning>" || !list[0].HTML || chat == forum && list[0].Thread != 8 {
				t.Errorf("%s: got %+v, want one HTML message", to, list)
			}
		}
		if err := d.Tell(t.Context(), place("telegram", jay, 0), strings.Repeat("many words ", 900)); err != nil || len(w.Messages(jay)) != 3 {
			t.Errorf("long text: got %d messages, %v, want 3", len(w.Messages(jay)), err)
		}
		for _, to := range []string{"telegram/5555", "discord/1/2", "telegram"} {
			var e *core.Error
			if err := d.Tell(t.Context(), core.MustPath(to), "x"); !errors.As(err, &e) || e.Kind != core.Invalid || e.Text == "" {
				t.Errorf("%s: got %v, want an invalid request with a text", to, err)
			}
		}
		if err := d.Tell(t.Context(), place("telegram", jay, 0), " \u200b"); err == nil {
			t.Error("an empty text was sent")
		}
		_ = stop()
	})
}

// TestTellOnce: a message outside of turns is sent again only if it was certainly not sent.
func TestTellOnce(t *testing.T) {
	for kind, want := range map[telegramtest.FaultKind]int{
		telegramtest.BadGateway: 0, telegramtest.Reset: 0, telegramtest.ResetAfter: 1, telegramtest.Limited: 1,
		telegramtest.Refused: 1,
	} {
		inBubble(t, nil, func(t *testing.T, w *world) {
			d, stop := w.up(t)
			w.FailNext("sendMessage", telegramtest.Fault{Kind: kind, RetryAfter: 2, Text: "Bad Request: can't parse entities: x"})
			err := d.Tell(t.Context(), place("telegram", ann, 0), "x")
			delivered := kind == telegramtest.Limited || kind == telegramtest.Refused
			if n := len(w.Messages(ann)); n != want || (err == nil) != delivered {
				t.Errorf("fault %d: got %d messages, want %d; %v, want success: %v", kind, n, want, err, delivered)
			}
			_ = stop()
		})
	}
}

const (
	pngHead = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
	gifHead = "GIF89a\x01\x00\x01\x00"
	oggHead = "OggS\x00\x02"
	mp4Head = "\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42mp41"
	mp3Head = "ID3\x04\x00\x00\x00\x00\x00\x00"
)

// TestSendFile: each file is sent as its kind, and the journal describes it.
func TestSendFile(t *testing.T) {
	w := newWorld(t, nil)
	d, _ := w.listen(t, &coretest.Inbox{})
	at := place("telegram", forum, 7)
	for i, tc := range []struct {
		f          core.Upload
		kind, said string
	}{
		{core.Upload{Name: "cat.png", MIME: "image/png", Data: []byte(pngHead), Alt: "a [black] cat", Kind: core.MediaImage}, "photo", "[photo cat.png: a (black) cat] Look: *here*"},
		{core.Upload{Name: "cat.gif", Data: []byte(gifHead), Kind: core.MediaImage}, "animation", "[animation cat.gif] Look: *here*"},
		{core.Upload{Name: "cat.svg", MIME: "image/svg+xml", Data: []byte("<svg/>"), Kind: core.MediaImage}, "document", "[document cat.svg] Look: *here*"},
		{core.Upload{Name: "no.png", MIME: "image/png", Data: []byte("broken"), Kind: core.MediaImage}, "document", "[photo no.png] Look: *here*"},
		{core.Upload{Name: "big.png", MIME: "image/png", Data: []byte(pngHead + strings.Repeat("x", maxPhoto)), Kind: core.MediaImage}, "document", "[document big.png] Look: *here*"},
		{core.Upload{Name: "v.ogg", MIME: "audio/ogg; codecs=opus", Data: []byte(oggHead), Kind: core.MediaAudio}, "voice", "[voice v.ogg] Look: *here*"},
		{core.Upload{Name: "s.mp3", MIME: "audio/mpeg", Data: []byte(mp3Head), Kind: core.MediaAudio}, "audio", "[audio s.mp3] Look: *here*"},
		{core.Upload{Name: "s.wav", MIME: "audio/wav", Data: []byte("RIFF"), Kind: core.MediaAudio}, "document", "[document s.wav] Look: *here*"},
		{core.Upload{Name: "m.mp4", MIME: "video/mp4", Data: []byte(mp4Head), Kind: core.MediaVideo}, "video", "[video m.mp4] Look: *here*"},
		{core.Upload{Name: "../x/t.csv", MIME: "text/csv", Data: []byte("a;b"), Kind: core.MediaFile}, "document", "[document t.csv] Look: *here*"},
		{core.Upload{Data: []byte("a;b")}, "document", "[document file.bin] Look: *here*"},
	} {
		parts := &coretest.Parts{}
		if err := d.SendFile(t.Context(), parts, 1, core.Sent{Path: at, Text: "Look: *here*", Data: "kept"}, tc.f); err != nil {
			t.Errorf("%s: %v", tc.f.Name, err)
			continue
		}
		m := w.Messages(forum)[i]
		if m.Kind != tc.kind || m.Text != "Look: here" || m.Thread != 7 || string(m.File) != string(tc.f.Data) {
			t.Errorf("%s: got a %s %q in topic %d, want a %s in topic 7", tc.f.Name, m.Kind, m.Text, m.Thread, tc.kind)
		}
		if s := parts.Sent()[0]; s.Text != tc.said || s.ID != id(int64(m.ID)) || s.Path != at || s.Data != "kept" {
			t.Errorf("%s: journalled %+v, want %q", tc.f.Name, s, tc.said)
		}
	}
	voice := core.Upload{Name: "v.ogg", MIME: "audio/ogg", Data: []byte(oggHead), Kind: core.MediaAudio, Length: 2600 * time.Millisecond}
	if err := d.SendFile(t.Context(), &coretest.Parts{}, 1, core.Sent{Path: at}, voice); err != nil {
		t.Error(err)
	}
	calls := w.Calls("sendVoice")
	if got := calls[len(calls)-1].Params["duration"]; got != "3" {
		t.Errorf("got a duration of %q seconds, want 3", got)
	}
	for _, bad := range []core.Upload{{Name: "empty"}, {Name: "huge", Data: make([]byte, maxSendFile+1)}} {
		var e *core.Error
		if err := d.SendFile(t.Context(), &coretest.Parts{}, 1, core.Sent{Path: at}, bad); !errors.As(err, &e) ||
			e.Kind != core.Invalid {
			t.Errorf("%s: got %v, want an invalid request", bad.Name, err)
		}
	}
}

// numbered is a core.Deliveries that records the parts it sends.
type numbered struct {
	numbers []int
	texts   []string
}

func (p *numbered) Since(int) time.Time { return time.Time{} }

func (p *numbered) Send(ctx context.Context, n int, what core.Sent,
	do func(context.Context, string) (string, error)) error {
	p.numbers, p.texts = append(p.numbers, n), append(p.texts, what.Text)
	_, err := do(ctx, "key")
	return err
}

// TestSendFileLongCaption: every word of a caption that is too long is sent, in parts whose
// numbers no other part of the step has.
func TestSendFileLongCaption(t *testing.T) {
	w := newWorld(t, nil)
	d := w.driver(t)
	parts := &numbered{}
	caption := strings.Repeat("many words ", 600)
	for n := 1; n <= 2; n++ {
		f := core.Upload{Name: "x.txt", Data: []byte("x"), Kind: core.MediaFile}
		if err := d.SendFile(t.Context(), parts, n, core.Sent{Path: place("telegram", jay, 0), Text: caption}, f); err != nil {
			t.Fatal(err)
		}
	}
	said, seen := "", map[int]bool{}
	for _, m := range w.Messages(jay) {
		said += m.Text + " "
	}
	for _, n := range parts.numbers {
		if seen[n] {
			t.Errorf("part %d was used twice: %v", n, parts.numbers)
		}
		seen[n] = true
	}
	if letters(said) != letters(caption+caption) || len(w.Messages(jay)) != 6 {
		t.Errorf("got %d messages, want 6, with %d letters of %d", len(w.Messages(jay)), len(letters(said)), len(letters(caption+caption)))
	}
}

// TestFetchTimeout: a download that does not end is given up with a temporary error.
func TestFetchTimeout(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		d, stop := w.up(t)
		w.AddFile("slow", []byte("x"))
		w.Stall("slow")
		began := time.Now()
		_, err := d.Fetch(t.Context(), core.Attachment{Ref: "slow"}, 100)
		var e *core.Error
		if !errors.As(err, &e) || e.Kind != core.Temporary || time.Since(began) > 51*time.Second {
			t.Errorf("got %v after %v, want a temporary error within 51s", err, time.Since(began))
		}
		_ = stop()
	})
}

// TestFind: chats, topics and users are found by the names that users write, with the topics
// of the current chat first. An ambiguous name is an error. User names are not stored.
func TestFind(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		in := &coretest.Inbox{}
		d, stop := w.run(t, in)
		topic := func(thread int, name string) telegramtest.Saying {
			return telegramtest.Saying{Thread: thread, Text: "x", Extra: map[string]any{"reply_to_message": map[string]any{
				"message_id": thread, "date": 1, "chat": map[string]any{"id": forum, "type": "supergroup"}, "forum_topic_created": map[string]any{"name": name, "icon_color": 1}}}}
		}
		w.Say(forum, jay, topic(7, "Announcements"))
		w.Say(forum, ann, topic(8, "Off topic"))
		w.Say(group, ann, telegramtest.Saying{Text: "x"})
		w.AddChat(telegramtest.Chat{ID: -1005, Type: "supergroup", Title: "off topic"})
		w.Say(-1005, ann, telegramtest.Saying{Text: "x"})
		in.Wait(t, 4)
		look := func(d *Driver, from core.Path, name string) string {
			p, err := d.Find(from, name)
			if err != nil {
				var e *core.Error
				if !errors.As(err, &e) || e.Kind != core.Invalid {
					t.Errorf("%s: %v", name, err)
				}
				return "!"
			}
			return p.String()
		}
		here := place("telegram", forum, 0)
		for name, want := range map[string]string{
			"#announcements": "telegram/-1009876543210/7", "Announcements": "telegram/-1009876543210/7", "off  TOPIC": "telegram/-1009876543210/8", "#general": "telegram/-1009876543210",
			"Group": "telegram/-1001234567890", "@ann": "telegram/1001", "Ann Äpfel": "telegram/1001", "Jay": "telegram/1000", "#Jay": "!", "@nobody": "!", "": "!", "#": "!",
		} {
			if got := look(d, here, name); got != want {
				t.Errorf("%q: got %s, want %s", name, got, want)
			}
		}
		if got := look(d, place("telegram", group, 0), "off topic"); got != "!" {
			t.Errorf("ambiguous name: got %s, want an error", got)
		}
		synctest.Wait() // all updates are confirmed, so that none arrives again
		_ = stop()
		again, stop := w.up(t)
		if got := look(again, here, "#announcements") + look(again, here, "@ann"); got != "telegram/-1009876543210/7!" {
			t.Errorf("after a restart: got %s, want the topic and no user", got)
		}
		_ = stop()
	})
}

// TestRecipient: a recipient that an action may name is replaced by its path. Others are refused.
func TestRecipient(t *testing.T) {
	w := newWorld(t, nil)
	d := w.driver(t)
	d.places.noteMessage(&message{ID: 9, Thread: 7, IsTopic: true, Chat: chat{ID: forum, Type: "supergroup", IsForum: true}, TopicCreated: &topicNotice{"News"}})
	d.places.noteMessage(&message{ID: 9, From: &user{ID: ann, UserName: "ann", FirstName: "Ann"}, Chat: chat{ID: forum, Type: "supergroup", IsForum: true}})
	s, err := action.Build(d)
	if err != nil {
		t.Fatal(err)
	}
	who := action.Requester{Path: place("telegram", forum, 0), Authors: []core.Author{{ID: "1000"}}}
	for name, want := range map[string]string{"#news": "telegram/-1009876543210/7", "@ann": ""} {
		plan, faults := s.Check(core.Plan{Steps: []core.Step{{Type: "message_telegram", Payload: []byte(`{"text":"x","recipient":"` + name + `"}`)}}}, who)
		if want == "" {
			if len(faults) != 1 || len(plan.Steps) != 0 {
				t.Errorf("%s: got %+v, %v, want one fault", name, plan.Steps, faults)
			}
			continue
		}
		if len(faults) != 0 || !strings.Contains(string(plan.Steps[0].Payload), want) || strings.Contains(string(plan.Steps[0].Payload), "recipient") {
			t.Errorf("%s: got %+v, %v, want %s", name, plan.Steps, faults, want)
		}
	}
	if err := do(t, d, "message_telegram", place("telegram", jay, 0), `{"text":"x","recipient":"#news"}`, &coretest.Parts{}); err == nil {
		t.Error("a recipient that was not resolved was ignored")
	}
}

// TestNameOf: groups, topics and users have the names that updates gave them.
func TestNameOf(t *testing.T) {
	d := newWorld(t, nil).driver(t)
	in := chat{ID: forum, Type: "supergroup", IsForum: true, Title: "Readers"}
	d.places.noteMessage(&message{ID: 9, Thread: 7, IsTopic: true, Chat: in, TopicCreated: &topicNotice{"News"}})
	d.places.noteMessage(&message{ID: 9, From: &user{ID: ann, UserName: "ann", FirstName: "Ann"}, Chat: in})
	for at, want := range map[core.Path]string{
		place("telegram", forum, 0): "Readers", place("telegram", forum, 7): "Readers › News", place("telegram", forum, 8): "Readers",
		place("telegram", ann, 0): "Ann", core.MustPath("telegram/@user/" + id(ann)): "Ann",
		place("telegram", jay, 0): "", core.MustPath("telegram"): "", core.MustPath("discord/1/2"): "",
	} {
		if got := d.NameOf(at); got != want {
			t.Errorf("%s: got %q, want %q", at, got, want)
		}
	}
}

// TestCatalogue: the actions are valid, have examples that pass their own checks, and stay
// small, because every prompt contains them.
func TestCatalogue(t *testing.T) {
	d := newWorld(t, nil).driver(t)
	d.places.noteMessage(&message{ID: 9, Thread: 7, IsTopic: true, Chat: chat{ID: forum, Type: "supergroup", IsForum: true}, TopicCreated: &topicNotice{"Announcements"}})
	s, err := action.Build(d)
	if err != nil {
		t.Fatal(err)
	}
	who := action.Requester{Path: place("telegram", forum, 0), Authors: []core.Author{{ID: "1000", Rank: core.RankAdmin}}}
	with := s.With(action.Policy{Grants: []action.Grant{{}}})
	all := 0
	for _, a := range s.All() {
		size := len(a.Name) + len(a.Brief) + len(a.CorrectionSchema())
		all += size
		if size > 700 || !strings.Contains(string(a.CorrectionSchema()), "buttons") && size > 470 {
			t.Errorf("%s: got %d characters, want at most 470, or 700 with buttons\n%s", a.Name, size, a.CorrectionSchema())
		}
		if len(a.Examples.Examples) < 2 || len(a.Examples.Instructions.CommonPitfalls) == 0 || a.Examples.Description == "" {
			t.Errorf("%s lacks examples or pitfalls", a.Name)
		}
		for _, e := range a.Examples.Examples {
			if _, faults := with.Check(core.Plan{Steps: []core.Step{{Type: a.Name, Payload: e.Payload}}},
				who); len(faults) != 0 {
				t.Errorf("%s: example %s is refused: %v", a.Name, e.Payload, faults)
			}
		}
	}
	t.Logf("%d characters in all", all)
}

// TestNamesOfOtherWorkers: names of chats that one process stored survive when processes
// take over from each other.
func TestNamesOfOtherWorkers(t *testing.T) {
	w := newWorld(t, nil)
	first, second := w.driver(t), w.driver(t) // both begin with nothing
	hear := func(d *Driver, chat int64) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		in, done := &coretest.Inbox{}, make(chan error, 1)
		go func() { done <- d.Listen(ctx, in) }()
		w.Say(chat, jay, telegramtest.Saying{Text: "hello"})
		in.Wait(t, 1)
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	hear(first, group)
	hear(second, basic)
	w.Change(group, func(c *telegramtest.Chat) { c.Title = "New name" })
	hear(second, group)
	hear(first, forum)
	last := w.driver(t)
	for chat, want := range map[int64]string{group: "New name", basic: "Old group", forum: "Forum"} {
		if got := last.NameOf(place("telegram", chat, 0)); got != want {
			t.Errorf("%d: got %q, want %q", chat, got, want)
		}
	}
}
