package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/coretest"
	"synthbot/core/watch"
	"synthbot/interfaces/telegram/telegramtest"
)

// TestPlain sends again without styles what the platform refuses.
func TestPlain(t *testing.T) {
	w := newWorld(t, nil)
	d, _ := w.listen(t, &coretest.Inbox{})
	w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.Refused, Text: "Bad Request: can't parse entities: Unsupported start tag"})
	if err := do(t, d, "message_telegram", place("telegram", jay, 0), `{"text":"**bold** [l](https://example.org/x)","buttons":[{"label":"ok"}]}`, &coretest.Parts{}); err != nil {
		t.Fatal(err)
	}
	m := w.Messages(jay)[0]
	if m.Text != "bold l (https://example.org/x)" || m.HTML || len(m.Markup) == 0 {
		t.Errorf("%+v", m)
	}
	w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.Refused, Text: "Bad Request: BUTTON_TYPE_INVALID"},
		telegramtest.Fault{Kind: telegramtest.Refused, Text: "Bad Request: BUTTON_TYPE_INVALID"})
	if err := do(t, d, "message_telegram", place("telegram", jay, 0), `{"text":"x","buttons":[{"label":"ok"}]}`, &coretest.Parts{}); err != nil {
		t.Fatal(err)
	}
	if m := w.Messages(jay)[1]; m.Text != "x" || len(m.Markup) != 0 {
		t.Errorf("%+v", m)
	}
}

// TestLongReply replies with the first part and puts buttons below the last.
func TestLongReply(t *testing.T) {
	w := newWorld(t, nil)
	d, _ := w.listen(t, &coretest.Inbox{})
	to := w.Say(jay, jay, telegramtest.Saying{Text: "tell me"})
	payload := `{"text":"` + strings.Repeat("many words ", 900) + `","reply_to_message_id":` + id(int64(to)) + `,"buttons":[{"label":"more"}]}`
	if err := do(t, d, "message_telegram", place("telegram", jay, 0), payload, &coretest.Parts{}); err != nil {
		t.Fatal(err)
	}
	list := w.Messages(jay)
	for i, m := range list {
		if first, last := i == 0, i == len(list)-1; (m.ReplyTo == to) != first || (len(m.Markup) > 0) != last {
			t.Errorf("part %d replies to %d, has buttons %s", i, m.ReplyTo, m.Markup)
		}
	}
	if len(list) != 3 {
		t.Errorf("%d parts", len(list))
	}
}

func TestTopics(t *testing.T) {
	w := newWorld(t, nil)
	d, _ := w.listen(t, &coretest.Inbox{})
	for _, tc := range []struct {
		path   string
		thread int
		err    core.ErrorKind
	}{
		{"telegram/-1009876543210/7", 7, ""}, {"telegram/-1009876543210", 0, ""}, {"telegram/-1009876543210/1", 0, ""},
		{"telegram/-1009876543210/9", 0, core.Broken}, {"telegram/-1009876543210/77", 0, core.Broken}, {"telegram/@user/1000", 0, ""},
	} {
		err := do(t, d, "message_telegram", core.MustPath(tc.path), `{"text":"`+tc.path+`"}`, &coretest.Parts{})
		var e *core.Error
		if errors.As(err, &e); e != nil && e.Kind != tc.err || e == nil && tc.err != "" {
			t.Errorf("%s: %v, want %q", tc.path, err, tc.err)
		}
		for _, m := range append(w.Messages(forum), w.Messages(jay)...) {
			if m.Text == tc.path && m.Thread != tc.thread {
				t.Errorf("%s landed in %d", tc.path, m.Thread)
			}
		}
	}
	if n := len(w.Messages(forum)) + len(w.Messages(jay)); n != 4 {
		t.Errorf("%d messages stand", n)
	}
}

func TestChanges(t *testing.T) {
	w := newWorld(t, nil)
	in := &coretest.Inbox{}
	d, _ := w.listen(t, in)
	at := place("telegram", jay, 0)
	if err := do(t, d, "message_telegram", at, `{"text":"one","silent":true}`, &coretest.Parts{}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ name, payload string }{
		{"edit_telegram", `{"message_id":"1","text":"*two*"}`}, {"edit_telegram", `{"message_id":1,"text":"*two*"}`}, {"react_telegram", `{"message_id":1,"emoji":"👍"}`},
	} {
		if err := do(t, d, step.name, at, step.payload, &coretest.Parts{}); err != nil {
			t.Errorf("%s %s: %v", step.name, step.payload, err)
		}
	}
	if m := w.Messages(jay)[0]; m.Text != "two" || m.Edits != 1 || len(m.Reactions) != 1 || !m.Silent {
		t.Errorf("%+v", m)
	}
	for range 2 { // gone is gone
		if err := do(t, d, "delete_telegram", at, `{"message_id":1}`, &coretest.Parts{}); err != nil {
			t.Error(err)
		}
	}
	var kinds []string
	for _, e := range in.Wait(t, 3) {
		kinds = append(kinds, string(e.Kind)+e.Message.ID)
	}
	if got := strings.Join(kinds, " "); !strings.HasPrefix(got, "edit1 edit1 deletion1") {
		t.Errorf("history is told %s", got)
	}
	theirs := w.Say(jay, jay, telegramtest.Saying{Text: "mine"})
	for name, payload := range map[string]string{
		"edit_telegram": `{"message_id":` + id(int64(theirs)) + `,"text":"x"}`, "react_telegram": `{"message_id":` + id(int64(theirs)) + `,"emoji":"🦄🦄"}`,
		"delete_telegram": `{"message_id":` + id(int64(theirs)) + `}`, "photo_telegram": `{"url":"http://10.0.0.1/x"}`, "document_telegram": `{}`,
		"poll_telegram": `{"question":"?","options":["one"]}`,
	} {
		err := do(t, d, name, at, payload, &coretest.Parts{})
		var e *core.Error
		if !errors.As(err, &e) || e.Kind != core.Invalid || e.Text == "" {
			t.Errorf("%s %s: %v, want it refused", name, payload, err)
		}
	}
}

// TestChangesAfterListen: the history learns of changes that a turn makes while the driver stops.
func TestChangesAfterListen(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		in := &coretest.Inbox{}
		d, stop := w.run(t, in)
		at := place("telegram", jay, 0)
		if err := do(t, d, "message_telegram", at, `{"text":"one"}`, &coretest.Parts{}); err != nil {
			t.Fatal(err)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		before := len(in.Events())
		for _, step := range [][2]string{{"edit", `{"message_id":1,"text":"two"}`}, {"delete", `{"message_id":1}`}} {
			if err := do(t, d, step[0]+"_telegram", at, step[1], &coretest.Parts{}); err != nil {
				t.Error(err)
			}
		}
		if n := len(in.Events()) - before; n != 2 {
			t.Errorf("%d of 2 changes came in", n)
		}
		d.api.Close()
	})
}

func TestMedia(t *testing.T) {
	w := newWorld(t, nil)
	w.AddFile("AgACAg", []byte("x"))
	d, _ := w.listen(t, &coretest.Inbox{})
	long := strings.Repeat("many words ", 300)
	for _, tc := range []struct{ name, payload string }{
		{"photo_telegram", `{"url":"https://example.org/cat.jpg","caption":"a **cat**"}`},
		{"photo_telegram", `{"ref":"AgACAg"}`},
		{"photo_telegram", `{"url":"https://example.org/a/dog.png","silent":true}`},
		{"document_telegram", `{"content":"a;b","name":"../../etc/table.csv","caption":"` + long + `"}`},
		{"poll_telegram", `{"question":"When?","options":["Fri","Sat"],"anonymous":false}`},
	} {
		parts := &coretest.Parts{}
		if err := do(t, d, tc.name, place("telegram", forum, 7), tc.payload, parts); err != nil {
			t.Errorf("%s %.60s: %v", tc.name, tc.payload, err)
		}
		for _, s := range parts.Sent() {
			if s.ID == "" || s.Text == "" || s.Path != place("telegram", forum, 7) {
				t.Errorf("journalled %+v", s)
			}
		}
	}
	var e *core.Error
	err := do(t, d, "photo_telegram", place("telegram", forum, 7), `{"url":"https://example.org/broken.png","caption":"**a**"}`, &coretest.Parts{})
	if n := len(w.Calls("sendPhoto")); !errors.As(err, &e) || e.Kind != core.Invalid || !strings.Contains(e.Text, "file") || n != 4 {
		t.Errorf("a picture that is not there: %v after %d calls", err, n)
	}
	list := w.Messages(forum)
	if len(list) != 6 {
		t.Fatalf("%d messages stand", len(list))
	}
	if list[0].Text != "a cat" || list[0].Source != "https://example.org/cat.jpg" || list[2].Text != "" || !list[2].Silent {
		t.Errorf("photos %+v", list[:3])
	}
	if got := list[3].Text + " " + list[4].Text; strings.TrimSpace(got) != strings.TrimSpace(long) || list[4].Kind != "text" {
		t.Errorf("the caption became %d and %d characters", len(list[3].Text), len(list[4].Text))
	}
	if c := w.Calls("sendDocument")[0]; c.Params["document.name"] != "table.csv" || string(c.Files["document"]) != "a;b" {
		t.Errorf("uploaded %q", c.Params["document.name"])
	}
}

// TestButtons presses what message_telegram offers: once, and only who may.
func TestButtons(t *testing.T) {
	w := newWorld(t, nil)
	in := &coretest.Inbox{}
	d := w.driver(t)
	const long = "Нет, спасибо 🙂, не сейчас, а когда-нибудь потом, может быть, завтра"
	at := place("telegram", group, 0)
	for _, payload := range []string{
		`{"text":"Go on?","buttons":[{"label":"Yes","data":"block Ann"},{"label":"No"},{"label":"Site","url":"https://example.org/x"}]}`,
		`{"text":"Who comes?","buttons":[{"label":"` + long + `"}]}`,
	} {
		author := core.Author{ID: "1000"} // asked for the first
		if strings.Contains(payload, "Who") {
			author.Rank = core.RankBot // the bot itself for the second
		}
		call := core.Call{Path: at, Author: author, Authors: []core.Author{author}, Payload: []byte(payload),
			Deliveries: &coretest.Parts{}}
		if _, err := d.send.messageAction().Do(t.Context(), call); err != nil {
			t.Fatal(err)
		}
	}
	message, open := w.Messages(group)[0].ID, w.Messages(group)[1].ID
	both := []core.Author{{ID: "1000"}, {ID: "1001"}}
	for where, whom := range map[string][]int64{at.String(): {1000, 1001}, "telegram/1001": nil} { // elsewhere everybody may
		to, err := d.send.target(core.Path{}, where)
		if got := d.send.pressers(core.Call{Path: at, Authors: both}, to); err != nil || !slices.Equal(got, whom) {
			t.Errorf("%s: %d may press, %v", where, got, err)
		}
	}
	stranger := w.Press(group, message, ann, 0)
	right := w.Press(group, message, jay, 0)
	twice := w.Press(group, message, jay, 1) // a trembling finger
	anyone := w.Press(group, open, ann, 0)
	w.listen(t, in) // now, so that the buttons are still there for all three
	events := in.Wait(t, 2)
	first, second := events[0], events[1]
	if first.Kind != core.KindPress || first.Data != "Yes" || first.Message.Author.ID != "1000" || first.Target != id(int64(message)) {
		t.Errorf("event %+v", first)
	}
	if second.Data != long || second.Message.Author.ID != "1001" || second.Message.Author.Rank != core.RankModerator {
		t.Errorf("event %+v", second)
	}
	w.Await(t, func() bool {
		list := w.Messages(group)
		return w.Answered(stranger) && w.Answered(right) && w.Answered(twice) && w.Answered(anyone) &&
			len(list[0].Markup)+len(list[1].Markup) == 0
	})
	for _, c := range w.Calls("answerCallbackQuery") {
		if refused := c.Params["callback_query_id"] == stranger; refused != (c.Params["text"] == pressStranger) {
			t.Errorf("press answered with %q", c.Params["text"])
		}
		if late := c.Params["callback_query_id"] == twice; late != (c.Params["text"] == pressOld) {
			t.Errorf("press answered with %q", c.Params["text"])
		}
	}
	if events := in.Events(); len(events) != 2 {
		t.Errorf("%d presses came in", len(events))
	}
}

// TestButtonRows lays buttons out: a few one below the other, more of them side
// by side, none where its label would not be seen.
func TestButtonRows(t *testing.T) {
	d := newWorld(t, nil).driver(t)
	to, err := d.send.target(place("telegram", jay, 0), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		label string
		n     int
		want  string
	}{{"a", 1, "1"}, {"a", 3, "1,1,1"}, {"a", 4, "3,1"}, {"a", 15, "3,3,3,3,3"}, {"a", 25, "5,5,5,5,5"}, {"quite a long label", 5, "2,2,1"}} {
		k, err := d.send.keyboard(core.Call{}, to, slices.Repeat([]button{{Label: tc.label}}, tc.n))
		if err != nil {
			t.Fatal(err)
		}
		var rows []string
		for _, row := range k.Rows {
			rows = append(rows, fmt.Sprint(len(row)))
		}
		if got := strings.Join(rows, ","); got != tc.want {
			t.Errorf("%d times %q stand in rows of %s, want %s", tc.n, tc.label, got, tc.want)
		}
	}
	for _, bad := range []button{{Label: " "}, {Label: strings.Repeat("x", 200)}, {Label: "x", URL: "javascript:x"}} {
		if _, err := d.send.keyboard(core.Call{}, to, []button{bad}); err == nil {
			t.Errorf("%+v is a button", bad)
		}
	}
	if _, err := d.send.keyboard(core.Call{}, to, make([]button, 26)); err == nil {
		t.Error("26 buttons are possible")
	}
}

// await waits for what happens in another goroutine.
func await(t *testing.T, f func() bool) {
	t.Helper()
	for end := time.Now().Add(coretest.Patience); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never happened")
		}
	}
}

// plainQuestion has nothing in it that is markup.
const plainQuestion = "Delete *all*?\n1. to: [free](https://evil.example) ~~not~~ <b>x</b> || # @ann\nurl: https://a.example/_b_"

// TestChoices asks as the core does: whispers, settles.
func TestChoices(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		in := &coretest.Inbox{}
		d, stop := w.run(t, in)
		at, parts := place("telegram", forum, 7), &coretest.Parts{}
		choices := []core.Choice{{Label: "Confirm", Data: "confirm:18446744073709551615.65535.65535:y"[:40]}, {Label: "Cancel", Data: "confirm:1.1.1:n"}}
		if err := d.Choose(t.Context(), parts, core.Sent{Path: at, Text: plainQuestion}, choices); err != nil {
			t.Fatal(err)
		}
		m := w.Messages(forum)[0]
		if m.Text != plainQuestion || m.Thread != 7 || parts.Sent()[0].ID != id(int64(m.ID)) {
			t.Fatalf("question %+v", m)
		}
		first := w.Press(forum, m.ID, ann, 0)
		e := in.Wait(t, 1)[0]
		if e.Data != choices[0].Data || e.Message.Path != at || e.Target != id(int64(m.ID)) {
			t.Errorf("event %+v", e)
		}
		if err := d.Whisper(t.Context(), e.Message, "Not yours."); err != nil || !w.Answered(first) {
			t.Errorf("whisper: %v", err)
		}
		second := w.Press(forum, m.ID, jay, 1)
		in.Wait(t, 2)
		if err := d.Settle(t.Context(), core.Sent{Path: at, ID: id(int64(m.ID)), Text: "Cancelled."}); err != nil {
			t.Error(err)
		}
		if m := w.Messages(forum)[0]; m.Text != "Cancelled." || len(m.Markup) != 0 {
			t.Errorf("settled as %+v", m)
		}
		time.Sleep(2 * whisperWait)
		if calls := w.Calls("answerCallbackQuery"); !w.Answered(second) || len(calls) != 2 || calls[0].Params["text"] != "Not yours." || calls[1].Params["text"] != "" {
			t.Errorf("%d answers: %+v", len(calls), calls)
		}
		_ = stop()
	})
}

// TestChoicesInRows: people reply where an answer is to be written, and no row is too wide to read.
func TestChoicesInRows(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		d := w.driver(t)
		choices := []core.Choice{{Label: "Answer", Data: "q:w", Writes: true}}
		for _, label := range []string{"red", "green", "blue"} {
			choices = append(choices, core.Choice{Label: label, Data: "q:" + label})
		}
		if err := d.Choose(t.Context(), &coretest.Parts{}, core.Sent{Path: place("telegram", forum, 7), Text: "Which?"}, choices); err != nil {
			t.Fatal(err)
		}
		var keyboard struct {
			Rows [][]struct{ Text string } `json:"inline_keyboard"`
		}
		if err := json.Unmarshal(w.Messages(forum)[0].Markup, &keyboard); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(keyboard.Rows); got != "[[{red} {green}] [{blue}]]" {
			t.Errorf("the buttons are %s", got)
		}
	})
}

func TestSigner(t *testing.T) {
	s := newSigner("token")
	sealed, ok := s.seal(-100, kindChoice, []int64{123456789}, strings.Repeat("x", 40))
	if !ok || len(sealed) > maxCallback {
		t.Fatalf("%q does not fit", sealed)
	}
	kind, people, data, ok := s.open(-100, sealed)
	if !ok || kind != kindChoice || !slices.Equal(people, []int64{123456789}) || len(data) != 40 {
		t.Errorf("%c %d %q %v", kind, people, data, ok)
	}
	several := []int64{7_000_000_001, 7_000_000_002, 7_000_000_003, 7_000_000_004}
	shared, ok := s.seal(-100, kindText, several, "24")
	if _, people, _, opened := s.open(-100, shared); !ok || !opened || !slices.Equal(people, several) {
		t.Errorf("%q is for %d", shared, people)
	}
	if _, ok := s.seal(-100, kindText, slices.Repeat(several, 3), "24"); ok {
		t.Error("a button names twelve people")
	}
	for i := range sealed {
		forged := []byte(sealed)
		forged[i] ^= 1
		if _, _, _, ok := s.open(-100, string(forged)); ok {
			t.Fatalf("byte %d may be changed", i)
		}
	}
	if _, _, _, ok := s.open(-101, sealed); ok {
		t.Error("it may be used in another chat")
	}
	if _, _, _, ok := newSigner("other").open(-100, sealed); ok {
		t.Error("another bot's buttons are good")
	}
}

// TestMenu offers each audience what it may call, in its language, once; and
// takes away what is offered no more.
func TestMenu(t *testing.T) {
	offer := commands()
	admins := []core.Path{core.MustPath("telegram/@user/1000")}
	alter := func(o *Options) {
		o.Commands = func() []command.Spec { return offer }
		o.Admins = func() []core.Path { return admins }
	}
	bubble(t, alter, func(t *testing.T, w *world) {
		life := func() {
			_, stop := w.run(t, &coretest.Inbox{})
			synctest.Wait()
			time.Sleep(time.Second)
			_ = stop()
		}
		life()
		life()
		set := w.Commands()
		if n := len(w.Calls("setMyCommands")); n != 8 || len(set) != 8 {
			t.Errorf("%d calls set %d lists", n, len(set))
		}
		for key, want := range map[string]string{
			`{"type":"default"} `: "help", `{"type":"default"} it`: "help", `{"type":"all_private_chats"} `: "help,export",
			`{"type":"all_chat_administrators"} `: "help,persona", `{"chat_id":1000,"type":"chat"} `: "help,persona,export,reload",
		} {
			var list []struct{ Command, Description string }
			_ = json.Unmarshal([]byte(set[key]), &list)
			var names []string
			for _, c := range list {
				names = append(names, c.Command)
			}
			if got := strings.Join(names, ","); got != want {
				t.Errorf("%s is offered %s, want %s", key, got, want)
			}
		}
		if !strings.Contains(set[`{"type":"default"} it`], "Mostra") {
			t.Error("the Italian list is not Italian")
		}
		admins = append(admins, core.MustPath("telegram/@user/777")) // who never wrote to the bot
		life()
		life()
		if n := len(w.Calls("setMyCommands")); n != 8+2*10 || len(w.Commands()) != 8 {
			t.Errorf("with a stranger among the admins %d calls set %d lists", n, len(w.Commands()))
		}
		admins = admins[:1]
		life()
		offer = slices.Clone(offer[1:]) // nothing Italian is left
		life()
		if set := w.Commands(); len(set) != 4 || strings.Contains(set[`{"type":"all_private_chats"} `], "help") {
			t.Errorf("then %v is offered", set)
		}
		d, stop := w.run(t, &coretest.Inbox{})
		defer func() { _ = stop() }()
		synctest.Wait()
		offer = nil
		d.CommandsChanged() // while it runs
		time.Sleep(time.Second)
		if set := w.Commands(); len(set) != 0 {
			t.Errorf("at last %v is offered", set)
		}
	})
}

// TestRefusedMenu: a menu that the platform refused is offered again, a few times.
func TestRefusedMenu(t *testing.T) {
	alter := func(o *Options) { o.Commands = func() []command.Spec { return commands()[:1] } }
	bubble(t, alter, func(t *testing.T, w *world) {
		refusal := telegramtest.Fault{Kind: telegramtest.Refused, Text: "Bad Request: BOT_COMMAND_INVALID"}
		w.FailNext("setMyCommands", refusal, refusal)
		_, stop := w.run(t, &coretest.Inbox{})
		time.Sleep(10 * time.Minute)
		if n := len(w.Commands()); n == 0 {
			t.Error("nothing is offered")
		}
		_ = stop()
	})
	bubble(t, alter, func(t *testing.T, w *world) {
		refusal := telegramtest.Fault{Kind: telegramtest.Refused, Text: "Bad Request: BOT_COMMAND_INVALID"}
		w.FailNext("setMyCommands", slices.Repeat([]telegramtest.Fault{refusal}, 20)...)
		_, stop := w.run(t, &coretest.Inbox{})
		time.Sleep(48 * time.Hour)
		if n := len(w.Calls("setMyCommands")); n != 5 {
			t.Errorf("it was offered %d times", n)
		}
		_ = stop()
	})
}

func TestRanks(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		in := &coretest.Inbox{}
		_, stop := w.run(t, in)
		for _, who := range []int64{ann, jay, ann} {
			w.Say(group, who, telegramtest.Saying{Text: "x"})
		}
		events := in.Wait(t, 3)
		w.Push(`{"chat_member":{"chat":{"id":-1001234567890,"type":"supergroup"},"from":{"id":9},"date":1,"old_chat_member":{"user":{"id":9},"status":"left"},"new_chat_member":{"user":{"id":9},"status":"member"}}}`)
		w.Say(group, ann, telegramtest.Saying{Text: "somebody joined, nothing else"})
		in.Wait(t, 4)
		if events[0].Message.Author.Rank != core.RankModerator || events[1].Message.Author.Rank != core.RankMember || len(w.Calls("getChatAdministrators")) != 1 {
			t.Errorf("ranks %v, %v after %d questions", events[0].Message.Author.Rank, events[1].Message.Author.Rank, len(w.Calls("getChatAdministrators")))
		}
		w.Change(group, func(c *telegramtest.Chat) { c.Admins = []int64{jay} })
		w.Push(`{"chat_member":{"chat":{"id":-1001234567890,"type":"supergroup"},"from":{"id":1001},"date":1,"old_chat_member":{"user":{"id":1000},"status":"member"},"new_chat_member":{"user":{"id":1000},"status":"administrator"}}}`)
		w.Say(group, jay, telegramtest.Saying{Text: "x"})
		if e := in.Wait(t, 5)[4]; e.Message.Author.Rank != core.RankModerator {
			t.Error("the new moderator is not one")
		}
		_ = stop()
	})
}

// TestChannelsOfAGroup: the group's own channel is kept apart from any other one, also where
// somebody writes as it without the platform saying so.
func TestChannelsOfAGroup(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		const news, foreign = -1005555555555, -1006666666666
		w.Change(group, func(c *telegramtest.Chat) { c.Linked = news })
		in := &coretest.Inbox{}
		_, stop := w.run(t, in)
		as := func(chat int64, extra map[string]any) {
			more := map[string]any{"from": map[string]any{"id": channelBot, "is_bot": true, "first_name": "Channel"}}
			more["sender_chat"] = map[string]any{"id": chat, "type": "channel", "title": "C"}
			maps.Copy(more, extra)
			w.Say(group, jay, telegramtest.Saying{Text: "x", Extra: more})
		}
		as(news, nil)
		as(foreign, nil)
		as(foreign, map[string]any{"is_automatic_forward": true})
		as(group, nil)
		want := []core.Channel{core.ChannelLinked, core.ChannelOther, core.ChannelLinked, core.ChannelLinked}
		for i, e := range in.Wait(t, 4) {
			if e.Message.Author.Channel != want[i] {
				t.Errorf("%d: %+v, want %s", i, e.Message.Author, want[i])
			}
		}
		if n := len(w.Calls("getChat")); n != 1 {
			t.Errorf("the platform was asked %d times, want 1", n)
		}
		_ = stop()
	})
}

// TestAcknowledge puts a reaction on what is being answered, and takes it away
// when that is over.
func TestAcknowledge(t *testing.T) {
	bubble(t, func(o *Options) { o.Config.Acknowledge = "👀" }, func(t *testing.T, w *world) {
		in := &coretest.Inbox{}
		d, stop := w.run(t, in)
		at := place("telegram", group, 0)
		w.Say(group, jay, telegramtest.Saying{Text: "@" + telegramtest.BotName + " hi"})
		w.Say(group, ann, telegramtest.Saying{Text: "not for the bot"})
		in.Wait(t, 2)
		synctest.Wait()
		if n := len(w.Calls("setMessageReaction")); n != 0 {
			t.Errorf("%d reactions before anything is thought", n)
		}
		for range 2 { // two questions of one turn
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			d.ShowTyping(ctx, at)
			cancel()
		}
		d.Observe(watch.TurnEnd{Turn: core.TurnID{Path: at, Seq: 1}, Messages: []string{"1"}})
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		d.ShowTyping(ctx, at) // about nothing
		cancel()
		d.Observe(watch.TurnEnd{Turn: core.TurnID{Path: at}, Messages: []string{"2"}}) // no turn
		d.Observe(watch.TurnEnd{Turn: core.TurnID{Path: at, Seq: 2}, Messages: []string{"2"}})
		d.Observe(watch.TurnEnd{Turn: core.TurnID{Path: place("telegram", ann, 0), Seq: 9}, Messages: []string{"77"}})
		time.Sleep(time.Second)
		var got []string
		for _, c := range w.Calls("setMessageReaction") {
			got = append(got, fmt.Sprint(c.Chat, " ", c.Params["message_id"], " ", strings.Contains(c.Params["reaction"], "👀")))
		}
		// The last one was marked by a former life, if at all.
		if want := []string{fmt.Sprint(group, " 1 true"), fmt.Sprint(group, " 1 false"), fmt.Sprint(ann, " 77 false")}; !slices.Equal(got, want) {
			t.Errorf("reactions %q, want %q", got, want)
		}
		_ = stop()
	})
}

func TestFetch(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "photo.jpg"), []byte("local"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(o *Options) { o.Config.MaxFile, o.Config.FilesDir = 1000, dir })
	w.AddFile("small", []byte("content"))
	w.AddFile("large", bytes.Repeat([]byte("x"), 2000))
	w.AddFile("../../../getMe", []byte("{}"))
	w.AddFile("//evil.example/x", []byte("{}"))
	w.AddFile(filepath.Join(dir, "photo.jpg"), []byte("x"))
	w.AddFile(dir+"/../secret", []byte("x"))
	w.AddFile("/etc/passwd", []byte("x"))
	own := filepath.Join(dir, telegramtest.Token) // such a server calls its folder so
	if err := os.MkdirAll(filepath.Join(own, "documents"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(own, "out")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"documents", "documents/gone.pdf", "out"} {
		w.AddFile(filepath.Join(own, name), []byte("x"))
	}
	d := w.driver(t)
	w.AddFile("middle", bytes.Repeat([]byte("x"), 1200))
	if _, err := d.Fetch(t.Context(), core.Attachment{Ref: "middle"}, 5000); err == nil {
		t.Error("more than max_file is fetched")
	}
	if _, err := d.Fetch(t.Context(), core.Attachment{Ref: "small"}, 6); err == nil {
		t.Error("more than was asked for is fetched")
	}
	for ref, want := range map[string]string{"small": "content", filepath.Join(dir, "photo.jpg"): "local"} {
		if got, err := d.Fetch(t.Context(), core.Attachment{Ref: ref}, 1500); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", ref, got, err)
		}
	}
	for _, ref := range []string{
		"large", "unknown", "", "../../../getMe", "//evil.example/x", dir + "/../secret", "/etc/passwd",
		own + "/documents", own + "/documents/gone.pdf", own + "/out",
	} {
		got, err := d.Fetch(t.Context(), core.Attachment{Ref: ref}, 1500)
		if err == nil || strings.Contains(err.Error(), telegramtest.Token[10:]) {
			t.Errorf("%s: %q, %v", ref, got, err)
		}
	}
	if _, err := d.Fetch(t.Context(), core.Attachment{Ref: "small", Size: 5000}, 9000); err == nil {
		t.Error("what says that it is too large is fetched")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Fetch(ended, core.Attachment{Ref: "small"}, 100); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestSuggestionsAreButtons: who presses one says it.
func TestSuggestionsAreButtons(t *testing.T) {
	list := suggest([]button{{Label: "Yes"}}, []string{"Tell me  more", " ", "\u2800", strings.Repeat("long ", 20), "No"})
	want := []button{{Label: "Yes"}, {Label: "Tell me more"}, {Label: "No"}}
	if !slices.Equal(list, want) {
		t.Errorf("buttons %+v, want %+v", list, want)
	}
}

// TestAcknowledgeBesideCommand: the end of a chat command leaves the reaction on the
// message that the turn beside it answers.
func TestAcknowledgeBesideCommand(t *testing.T) {
	bubble(t, func(o *Options) { o.Config.Acknowledge = "👀" }, func(t *testing.T, w *world) {
		in := &coretest.Inbox{}
		d, stop := w.run(t, in)
		at := place("telegram", group, 0)
		w.Say(group, jay, telegramtest.Saying{Text: "@" + telegramtest.BotName + " hi"})
		in.Wait(t, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		d.ShowTyping(ctx, at)
		cancel()
		d.Observe(watch.TurnEnd{Turn: core.TurnID{Path: at, Seq: 2}, Messages: []string{"2"}, Command: true})
		time.Sleep(time.Second)
		reacted := func(message string, on bool) int {
			n := 0
			for _, c := range w.Calls("setMessageReaction") {
				if c.Params["message_id"] == message && strings.Contains(c.Params["reaction"], "👀") == on {
					n++
				}
			}
			return n
		}
		if set, gone := reacted("1", true), reacted("1", false); set != 1 || gone != 0 {
			t.Errorf("while the turn runs, the reaction was set %d times and removed %d times", set, gone)
		}
		d.Observe(watch.TurnEnd{Turn: core.TurnID{Path: at, Seq: 1}, Messages: []string{"1"}})
		time.Sleep(time.Second)
		if gone := reacted("1", false); gone != 1 {
			t.Errorf("after the turn, the reaction was removed %d times", gone)
		}
		_ = stop()
	})
}
