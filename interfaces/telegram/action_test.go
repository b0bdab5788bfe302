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

// TestPlain: a message that the platform refuses is sent again without styles, and then
// without buttons.
func TestPlain(t *testing.T) {
	w := newWorld(t, nil)
	d, _ := w.listen(t, &coretest.Inbox{})
	w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.Refused, Text: "Bad Request: can't parse entities: Unsupported start tag"})
	if err := do(t, d, "message_telegram", place("telegram", jay, 0), `{"text":"**bold** [l](https://example.org/x)","buttons":[{"label":"ok"}]}`, &coretest.Parts{}); err != nil {
		t.Fatal(err)
	}
	m := w.Messages(jay)[0]
	if m.Text != "bold l (https://example.org/x)" || m.HTML || len(m.Markup) == 0 {
		t.Errorf("got %+v, want plain text with a button", m)
	}
	w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.Refused, Text: "Bad Request: BUTTON_TYPE_INVALID"},
		telegramtest.Fault{Kind: telegramtest.Refused, Text: "Bad Request: BUTTON_TYPE_INVALID"})
	if err := do(t, d, "message_telegram", place("telegram", jay, 0), `{"text":"x","buttons":[{"label":"ok"}]}`, &coretest.Parts{}); err != nil {
		t.Fatal(err)
	}
	if m := w.Messages(jay)[1]; m.Text != "x" || len(m.Markup) != 0 {
		t.Errorf("got %+v, want the text without a button", m)
	}
}

// TestLongReply: of a long reply, the first part is the reply and the last part has the buttons.
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
			t.Errorf("part %d of %d replies to %d and has buttons %q", i, len(list), m.ReplyTo, m.Markup)
		}
	}
	if len(list) != 3 {
		t.Errorf("got %d parts, want 3", len(list))
	}
}

// TestVeryLongAnswer: a text that needs too many messages is one message with a file. Where files are not allowed, its
// beginning is sent, also if sending fails between two messages.
func TestVeryLongAnswer(t *testing.T) {
	words := strings.TrimSpace(strings.Repeat("many *words* ", 15_000))
	payload, at := `{"text":"`+words+`","buttons":[{"label":"more"}]}`, place("telegram", jay, 0)
	for _, forbidden := range []bool{false, true} {
		w := newWorld(t, nil)
		d, _ := w.listen(t, &coretest.Inbox{})
		texts := 0
		w.Fail(func(c telegramtest.Call) telegramtest.Fault {
			if c.Method == "sendDocument" && forbidden {
				return telegramtest.Fault{Kind: telegramtest.Refused, Text: "not enough rights to send documents to the chat"}
			}
			if c.Method == "sendMessage" {
				if texts++; texts == 3 {
					return telegramtest.Fault{Kind: telegramtest.Refused, Text: "chat not found"}
				}
			}
			return telegramtest.Fault{}
		})
		parts := &coretest.Parts{}
		err := do(t, d, "message_telegram", at, payload, parts)
		if forbidden {
			if err == nil {
				t.Error("the third message was not refused")
			}
			err = do(t, d, "message_telegram", at, payload, parts)
		}
		list := w.Messages(jay)
		if wanted := map[bool]int{false: 1, true: maxMessages}[forbidden]; err != nil || len(list) != wanted {
			t.Fatalf("files forbidden: %v: got %d messages, want %d, and the error %v", forbidden, len(list), wanted, err)
		}
		for i, m := range list {
			if last := i == len(list)-1; strings.HasSuffix(m.Text, "\n…") != last || len(m.Markup) > 0 != last {
				t.Errorf("message %d: got buttons %q and the text %q", i, m.Markup, m.Text)
			}
		}
		if !forbidden && (string(list[0].File) != words || parts.Sent()[0].Text != words) {
			t.Errorf("got a file of %d bytes, and %d messages in the history", len(list[0].File), len(parts.Sent()))
		}
	}
}

// TestTopics: messages arrive in the topic that the path names. A closed or unknown topic
// is an error.
func TestTopics(t *testing.T) {
	w := newWorld(t, nil)
	d, _ := w.listen(t, &coretest.Inbox{})
	for _, tc := range []struct {
		path   string
		thread int
		err    core.ErrorKind
	}{
		{"telegram/-1009876543210/7", 7, ""}, {"telegram/-1009876543210", 0, ""}, {"telegram/-1009876543210/1", 0, ""},
		{"telegram/-1009876543210/9", 0, core.Forbidden}, {"telegram/-1009876543210/77", 0, core.Forbidden}, {"telegram/@user/1000", 0, ""},
	} {
		err := do(t, d, "message_telegram", core.MustPath(tc.path), `{"text":"`+tc.path+`"}`, &coretest.Parts{})
		var e *core.Error
		if errors.As(err, &e); e != nil && e.Kind != tc.err || e == nil && tc.err != "" {
			t.Errorf("%s: %v, want %q", tc.path, err, tc.err)
		}
		for _, m := range append(w.Messages(forum), w.Messages(jay)...) {
			if m.Text == tc.path && m.Thread != tc.thread {
				t.Errorf("%s: sent to topic %d, want %d", tc.path, m.Thread, tc.thread)
			}
		}
	}
	if n := len(w.Messages(forum)) + len(w.Messages(jay)); n != 4 {
		t.Errorf("got %d messages, want 4", n)
	}
}

// TestChanges: edits, reactions and deletions change the bot's message and are reported to
// the inbox. What is not allowed is refused with an explanation.
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
		t.Errorf("got %+v, want two, silent, edited once and with one reaction", m)
	}
	for range 2 { // a second deletion succeeds, too
		if err := do(t, d, "delete_telegram", at, `{"message_id":1}`, &coretest.Parts{}); err != nil {
			t.Error(err)
		}
	}
	var kinds []string
	for _, e := range in.Wait(t, 3) {
		kinds = append(kinds, string(e.Kind)+e.Message.ID)
	}
	if got := strings.Join(kinds, " "); !strings.HasPrefix(got, "edit1 edit1 deletion1") {
		t.Errorf("got events %s, want two edits and a deletion", got)
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
			t.Errorf("%s %s: got %v, want an invalid request with a text", name, payload, err)
		}
	}
}

// TestChangesAfterListen: the history learns of changes that a turn makes while the driver stops.
func TestChangesAfterListen(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
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

// TestMedia: photos, documents and polls are sent and journalled. A caption that is too long
// is continued in a message.
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
				t.Errorf("journalled %+v, want an id, a text and topic 7", s)
			}
		}
	}
	var e *core.Error
	err := do(t, d, "photo_telegram", place("telegram", forum, 7), `{"url":"https://example.org/broken.png","caption":"**a**"}`, &coretest.Parts{})
	if n := len(w.Calls("sendPhoto")); !errors.As(err, &e) || e.Kind != core.Invalid || !strings.Contains(e.Text, "file") || n != 4 {
		t.Errorf("an unavailable picture: got %v after %d calls, want an invalid request after 4", err, n)
	}
	list := w.Messages(forum)
	if len(list) != 6 {
		t.Fatalf("got %d messages, want 6", len(list))
	}
	if list[0].Text != "a cat" || list[0].Source != "https://example.org/cat.jpg" || list[2].Text != "" || !list[2].Silent {
		t.Errorf("got photos %+v, want the caption without markup first and a silent one last", list[:3])
	}
	if got := list[3].Text + " " + list[4].Text; strings.TrimSpace(got) != strings.TrimSpace(long) || list[4].Kind != "text" {
		t.Errorf("got a caption of %d and a message of %d bytes, want the whole caption in both", len(list[3].Text), len(list[4].Text))
	}
	if c := w.Calls("sendDocument")[0]; c.Params["document.name"] != "table.csv" || string(c.Files["document"]) != "a;b" {
		t.Errorf("uploaded %q with %q, want table.csv with a;b", c.Params["document.name"], c.Files["document"])
	}
}

// TestButtons: a button of message_telegram works once, and only for the users that it is
// meant for.
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
		author := core.Author{ID: "1000"} // a user requested the first message
		if strings.Contains(payload, "Who") {
			author.Rank = core.RankBot // the bot itself requested the second one
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
			t.Errorf("%s: %d may press, want %d; %v", where, got, whom, err)
		}
	}
	stranger := w.Press(group, message, ann, 0)
	right := w.Press(group, message, jay, 0)
	twice := w.Press(group, message, jay, 1) // a double click
	anyone := w.Press(group, open, ann, 0)
	w.listen(t, in) // not before, so that the buttons exist for all presses
	events := in.Wait(t, 2)
	first, second := events[0], events[1]
	if first.Kind != core.KindPress || first.Data != "Yes" || first.Message.Author.ID != "1000" || first.Target != id(int64(message)) {
		t.Errorf("got %+v, want Yes of user 1000", first)
	}
	if second.Data != long || second.Message.Author.ID != "1001" || second.Message.Author.Rank != core.RankModerator {
		t.Errorf("got %+v, want the long label of moderator 1001", second)
	}
	w.Await(t, func() bool {
		list := w.Messages(group)
		return w.Answered(stranger) && w.Answered(right) && w.Answered(twice) && w.Answered(anyone) &&
			len(list[0].Markup)+len(list[1].Markup) == 0
	})
	for _, c := range w.Calls("answerCallbackQuery") {
		if refused := c.Params["callback_query_id"] == stranger; refused != (c.Params["text"] == pressStranger) {
			t.Errorf("stranger: %v; the press was answered with %q", refused, c.Params["text"])
		}
		if late := c.Params["callback_query_id"] == twice; late != (c.Params["text"] == pressOld) {
			t.Errorf("second press: %v; it was answered with %q", late, c.Params["text"])
		}
	}
	if events := in.Events(); len(events) != 2 {
		t.Errorf("got %d presses, want 2", len(events))
	}
}

// TestButtonRows: a few buttons are placed one below the other, more of them side by side.
// A button without a visible label, or with a bad URL, is refused.
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
			t.Errorf("%d buttons %q: got rows of %s, want %s", tc.n, tc.label, got, tc.want)
		}
	}
	for _, bad := range []button{{Label: " "}, {Label: strings.Repeat("x", 200)}, {Label: "x", URL: "javascript:x"}} {
		if _, err := d.send.keyboard(core.Call{}, to, []button{bad}); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
	if _, err := d.send.keyboard(core.Call{}, to, make([]button, 26)); err == nil {
		t.Error("26 buttons were accepted")
	}
}

// plainQuestion is plain text that looks like markup.
const plainQuestion = "Delete *all*?\n1. to: [free](https://evil.example) ~~not~~ <b>x</b> || # @ann\nurl: https://a.example/_b_"

// TestChoices: a question is sent as plain text, presses arrive as events, a press can be
// answered with a whisper, and settling the question removes its buttons.
func TestChoices(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		in := &coretest.Inbox{}
		d, stop := w.run(t, in)
		at, parts := place("telegram", forum, 7), &coretest.Parts{}
		choices := []core.Choice{{Label: "Confirm", Data: "confirm:18446744073709551615.65535.65535:y"[:40]}, {Label: "Cancel", Data: "confirm:1.1.1:n"}}
		if err := d.Choose(t.Context(), parts, core.Sent{Path: at, Text: plainQuestion}, choices); err != nil {
			t.Fatal(err)
		}
		m := w.Messages(forum)[0]
		if m.Text != plainQuestion || m.Thread != 7 || parts.Sent()[0].ID != id(int64(m.ID)) {
			t.Fatalf("got %+v, want the question in topic 7", m)
		}
		first := w.Press(forum, m.ID, ann, 0)
		e := in.Wait(t, 1)[0]
		if e.Data != choices[0].Data || e.Message.Path != at || e.Target != id(int64(m.ID)) {
			t.Errorf("got %+v, want a press of Confirm", e)
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
			t.Errorf("got %+v, want Cancelled. without buttons", m)
		}
		time.Sleep(6 * time.Second)
		if calls := w.Calls("answerCallbackQuery"); !w.Answered(second) || len(calls) != 2 || calls[0].Params["text"] != "Not yours." || calls[1].Params["text"] != "" {
			t.Errorf("got %d answers to two presses, want a whisper and an empty one: %+v", len(calls), calls)
		}
		_ = stop()
	})
}

// TestChoicesInRows: a choice that is answered in writing gets no button, because users
// reply instead. Rows stay narrow enough to read.
func TestChoicesInRows(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
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
			t.Errorf("got buttons %s, want red and green above blue", got)
		}
	})
}

// TestSigner: what a button carries cannot be forged or used in another chat or by another bot.
func TestSigner(t *testing.T) {
	s := newSigner("token")
	sealed, ok := s.seal(-100, kindChoice, []int64{123456789}, strings.Repeat("x", 40))
	if !ok || len(sealed) > maxCallback {
		t.Fatalf("%q does not fit", sealed)
	}
	kind, people, data, ok := s.open(-100, sealed)
	if !ok || kind != kindChoice || !slices.Equal(people, []int64{123456789}) || len(data) != 40 {
		t.Errorf("opened: got %c, users %d, data %q, %v; want what was sealed", kind, people, data, ok)
	}
	several := []int64{7_000_000_001, 7_000_000_002, 7_000_000_003, 7_000_000_004}
	shared, ok := s.seal(-100, kindText, several, "24")
	if _, people, _, opened := s.open(-100, shared); !ok || !opened || !slices.Equal(people, several) {
		t.Errorf("%q: got users %d, want %d", shared, people, several)
	}
	if _, ok := s.seal(-100, kindText, slices.Repeat(several, 3), "24"); ok {
		t.Error("a button for twelve users was sealed")
	}
	for i := range sealed {
		forged := []byte(sealed)
		forged[i] ^= 1
		if _, _, _, ok := s.open(-100, string(forged)); ok {
			t.Fatalf("a button whose byte %d was changed is accepted", i)
		}
	}
	if _, _, _, ok := s.open(-101, sealed); ok {
		t.Error("a button of another chat is accepted")
	}
	if _, _, _, ok := newSigner("other").open(-100, sealed); ok {
		t.Error("a button of another bot is accepted")
	}
}

// TestMenu: each audience is offered the commands that it may call, in its language. Lists
// are set once and deleted when they are no longer needed.
func TestMenu(t *testing.T) {
	offer := commands()
	admins := []core.Path{core.MustPath("telegram/@user/1000")}
	alter := func(o *Options) {
		o.Commands = func() []command.Spec { return offer }
		o.Admins = func() []core.Path { return admins }
	}
	inBubble(t, alter, func(t *testing.T, w *world) {
		restart := func() {
			_, stop := w.run(t, &coretest.Inbox{})
			synctest.Wait()
			time.Sleep(time.Second)
			_ = stop()
		}
		restart()
		restart()
		set := w.Commands()
		if n := len(w.Calls("setMyCommands")); n != 8 || len(set) != 8 {
			t.Errorf("got %d calls that set %d lists, want 8 and 8", n, len(set))
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
				t.Errorf("%s: got %s, want %s", key, got, want)
			}
		}
		if !strings.Contains(set[`{"type":"default"} it`], "Mostra") {
			t.Errorf("got %s for Italian, want Italian descriptions", set[`{"type":"default"} it`])
		}
		admins = append(admins, core.MustPath("telegram/@user/777")) // never wrote to the bot
		restart()
		restart()
		if n := len(w.Calls("setMyCommands")); n != 8+2*10 || len(w.Commands()) != 8 {
			t.Errorf("with an unknown admin, got %d calls that set %d lists, want 28 and 8", n, len(w.Commands()))
		}
		admins = admins[:1]
		restart()
		offer = slices.Clone(offer[1:]) // nothing Italian is left
		restart()
		if set := w.Commands(); len(set) != 4 || strings.Contains(set[`{"type":"all_private_chats"} `], "help") {
			t.Errorf("without help, got %v, want four lists", set)
		}
		d, stop := w.run(t, &coretest.Inbox{})
		defer func() { _ = stop() }()
		synctest.Wait()
		offer = nil
		d.CommandsChanged() // while it runs
		time.Sleep(time.Second)
		if set := w.Commands(); len(set) != 0 {
			t.Errorf("without commands, got %v, want no lists", set)
		}
	})
}

// TestRefusedMenu: a command list that the platform refuses is sent again, a few times at most.
func TestRefusedMenu(t *testing.T) {
	alter := func(o *Options) { o.Commands = func() []command.Spec { return commands()[:1] } }
	inBubble(t, alter, func(t *testing.T, w *world) {
		refusal := telegramtest.Fault{Kind: telegramtest.Refused, Text: "Bad Request: BOT_COMMAND_INVALID"}
		w.FailNext("setMyCommands", refusal, refusal)
		_, stop := w.run(t, &coretest.Inbox{})
		time.Sleep(10 * time.Minute)
		if n := len(w.Commands()); n == 0 {
			t.Error("no command list was set after two refusals")
		}
		_ = stop()
	})
	inBubble(t, alter, func(t *testing.T, w *world) {
		refusal := telegramtest.Fault{Kind: telegramtest.Refused, Text: "Bad Request: BOT_COMMAND_INVALID"}
		w.FailNext("setMyCommands", slices.Repeat([]telegramtest.Fault{refusal}, 20)...)
		_, stop := w.run(t, &coretest.Inbox{})
		time.Sleep(48 * time.Hour)
		if n := len(w.Calls("setMyCommands")); n != 5 {
			t.Errorf("got %d tries in two days, want 5", n)
		}
		_ = stop()
	})
}

// TestRanks: chat administrators are moderators. Their list is requested once and again
// only when an administrator changes.
func TestRanks(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
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
			t.Errorf("got ranks %v and %v, want moderator and member; %d requests, want 1", events[0].Message.Author.Rank, events[1].Message.Author.Rank, len(w.Calls("getChatAdministrators")))
		}
		w.Change(group, func(c *telegramtest.Chat) { c.Admins = []int64{jay} })
		w.Push(`{"chat_member":{"chat":{"id":-1001234567890,"type":"supergroup"},"from":{"id":1001},"date":1,"old_chat_member":{"user":{"id":1000},"status":"member"},"new_chat_member":{"user":{"id":1000},"status":"administrator"}}}`)
		w.Say(group, jay, telegramtest.Saying{Text: "x"})
		if e := in.Wait(t, 5)[4]; e.Message.Author.Rank != core.RankModerator {
			t.Errorf("got rank %v for a new administrator, want moderator", e.Message.Author.Rank)
		}
		_ = stop()
	})
}

// TestChannelsOfAGroup: posts of the group's linked channel are distinguished from posts of
// other channels, also if the update does not mark them as forwarded automatically.
func TestChannelsOfAGroup(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
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
				t.Errorf("message %d: got %+v, want %s", i, e.Message.Author, want[i])
			}
		}
		if n := len(w.Calls("getChat")); n != 1 {
			t.Errorf("got %d calls of getChat, want 1", n)
		}
		_ = stop()
	})
}

// TestAcknowledge: a message gets a reaction while a turn answers it, and loses it when the
// turn ends.
func TestAcknowledge(t *testing.T) {
	inBubble(t, func(o *Options) { o.Config.Acknowledge = "👀" }, func(t *testing.T, w *world) {
		in := &coretest.Inbox{}
		d, stop := w.run(t, in)
		at := place("telegram", group, 0)
		w.Say(group, jay, telegramtest.Saying{Text: "@" + telegramtest.BotName + " hi"})
		w.Say(group, ann, telegramtest.Saying{Text: "not for the bot"})
		in.Wait(t, 2)
		synctest.Wait()
		if n := len(w.Calls("setMessageReaction")); n != 0 {
			t.Errorf("got %d reactions before a turn, want 0", n)
		}
		for range 2 { // two model calls of one turn
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			d.ShowTyping(ctx, at)
			cancel()
		}
		d.Observe(watch.TurnEnd{Turn: core.TurnID{Path: at, Seq: 1}, Messages: []string{"1"}})
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		d.ShowTyping(ctx, at) // without a new message
		cancel()
		d.Observe(watch.TurnEnd{Turn: core.TurnID{Path: at}, Messages: []string{"2"}}) // no turn
		d.Observe(watch.TurnEnd{Turn: core.TurnID{Path: at, Seq: 2}, Messages: []string{"2"}})
		d.Observe(watch.TurnEnd{Turn: core.TurnID{Path: place("telegram", ann, 0), Seq: 9}, Messages: []string{"77"}})
		time.Sleep(time.Second)
		var got []string
		for _, c := range w.Calls("setMessageReaction") {
			got = append(got, fmt.Sprint(c.Chat, " ", c.Params["message_id"], " ", strings.Contains(c.Params["reaction"], "👀")))
		}
		// A former process may have marked the last message.
		if want := []string{fmt.Sprint(group, " 1 true"), fmt.Sprint(group, " 1 false"), fmt.Sprint(ann, " 77 false")}; !slices.Equal(got, want) {
			t.Errorf("got reactions %q, want %q", got, want)
		}
		_ = stop()
	})
}

// TestFetch: attachments are fetched from the server or its folder, up to the limit. Paths
// that lead elsewhere are refused, and errors do not contain the token.
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
	own := filepath.Join(dir, telegramtest.Token) // a local server's folder is named after the token
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
		t.Error("a file larger than max_file was fetched")
	}
	if _, err := d.Fetch(t.Context(), core.Attachment{Ref: "small"}, 6); err == nil {
		t.Error("a file larger than the caller's limit was fetched")
	}
	for ref, want := range map[string]string{"small": "content", filepath.Join(dir, "photo.jpg"): "local"} {
		if got, err := d.Fetch(t.Context(), core.Attachment{Ref: ref}, 1500); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v, want %q", ref, got, err, want)
		}
	}
	for _, ref := range []string{
		"large", "unknown", "", "../../../getMe", "//evil.example/x", dir + "/../secret", "/etc/passwd",
		own + "/documents", own + "/documents/gone.pdf", own + "/out",
	} {
		got, err := d.Fetch(t.Context(), core.Attachment{Ref: ref}, 1500)
		if err == nil || strings.Contains(err.Error(), telegramtest.Token[10:]) {
			t.Errorf("%s: got %q, %v, want an error without the token", ref, got, err)
		}
	}
	if _, err := d.Fetch(t.Context(), core.Attachment{Ref: "small", Size: 5000}, 9000); err == nil {
		t.Error("an attachment with a declared size of 5000, above max_file, was fetched")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Fetch(ended, core.Attachment{Ref: "small"}, 100); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v, want %v", err, context.Canceled)
	}
}

// TestSuggestionsAreButtons: suggested replies become buttons, without blank and overlong ones.
func TestSuggestionsAreButtons(t *testing.T) {
	list := suggest([]button{{Label: "Yes"}}, []string{"Tell me  more", " ", "\u2800", strings.Repeat("long ", 20), "No"})
	want := []button{{Label: "Yes"}, {Label: "Tell me more"}, {Label: "No"}}
	if !slices.Equal(list, want) {
		t.Errorf("got buttons %+v, want %+v", list, want)
	}
}

// TestAcknowledgeBesideCommand: the end of a chat command does not remove the reaction of a
// turn that runs at the same time.
func TestAcknowledgeBesideCommand(t *testing.T) {
	inBubble(t, func(o *Options) { o.Config.Acknowledge = "👀" }, func(t *testing.T, w *world) {
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
