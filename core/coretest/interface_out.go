package coretest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"synthbot/core"
)

// try calls a driver's message action.
func try(ctx context.Context, t testing.TB, d core.Interface, p Place, payload string, parts *Parts) error {
	t.Helper()
	call := core.Call{Path: p.Path, Private: p.Private, Author: core.Author{ID: "1"}, Payload: json.RawMessage(payload), Deliveries: parts}
	_, err := message(t, d).Do(ctx, call)
	return err
}

// send is try, but fails the test on an error. It returns what was sent.
func send(t testing.TB, d core.Interface, p Place, payload string, parts *Parts) []core.Sent {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if err := try(ctx, t, d, p, payload, parts); err != nil {
		t.Fatalf("%.60s to %s: %v", payload, p.Path, err)
	}
	return parts.Sent()
}

func testSends(t *testing.T, w World) {
	l := listen(t, w, &Inbox{})
	for _, p := range w.Places() {
		sent := send(t, l, p, `{"text":"Hello, *you*."}`, &Parts{})
		shown := w.Shown(t, p)
		if len(shown) != 1 || shown[0].Text != "Hello, you." {
			t.Fatalf("%s shows %+v", p.Path, shown)
		}
		if len(sent) != 1 || sent[0].ID != shown[0].ID || sent[0].Path != p.Path || !strings.Contains(sent[0].Text, "you") {
			t.Errorf("%s journalled %+v, shows %+v", p.Path, sent, shown)
		}
	}
}

// long returns a text of different words, with code in it, of at least so many units.
func long(measure func(string) int, units int) string {
	var b strings.Builder
	for i := 0; measure(b.String()) < units; i++ {
		switch {
		case i%97 == 96:
			fmt.Fprintf(&b, "\n\n```go\ncode%d()\ncode%d()\n```\n\n", i, i)
		case i%23 == 22:
			b.WriteString(".\n\n")
		default:
			fmt.Fprintf(&b, "word%d😀 ", i)
		}
	}
	return b.String()
}

func testSendsLong(t *testing.T, w World) {
	d, p := w.Start(t), pick(t, w, true)
	text := long(w.Measure, 3*w.Limit())
	payload, _ := json.Marshal(map[string]string{"text": text})
	sent := send(t, d, p, string(payload), &Parts{})
	shown := w.Shown(t, p)
	if len(shown) < 3 || len(shown) > 6 || len(sent) != len(shown) {
		t.Fatalf("%d messages are shown, %d are journalled", len(shown), len(sent))
	}
	for i, s := range shown {
		if n := w.Measure(s.Text); n > w.Limit() || s.ID != sent[i].ID {
			t.Errorf("part %d has %d units, id %q, journalled %q", i, n, s.ID, sent[i].ID)
		}
	}
	if got, want := letters(joined(shown)), letters(text); strings.ReplaceAll(got, "go", "") != strings.ReplaceAll(want, "go", "") {
		t.Error("letters are lost or out of order")
	}
}

// testSendsOn: after a crash, only the part that may not have been sent is sent again.
func testSendsOn(t *testing.T, w World) {
	p := pick(t, w, true)
	payload, _ := json.Marshal(map[string]string{"text": long(w.Measure, 2*w.Limit())})
	parts := &Parts{}
	before := len(send(t, w.Start(t), p, string(payload), parts))
	parts.Forget(before)
	send(t, w.Start(t), p, string(payload), parts)
	shown := w.Shown(t, p)
	if n := len(shown); n != before && n != before+1 {
		t.Fatalf("%d messages are shown after %d parts were sent and the last one forgotten", n, before)
	}
	if last := shown[len(shown)-1]; last.Text != shown[before-1].Text || last.ID != parts.Sent()[before-1].ID {
		t.Errorf("the last part is %.40q, want %.40q", last.Text, shown[before-1].Text)
	}
}

// testSendsRest: the parts after one with an unknown outcome are sent.
func testSendsRest(t *testing.T, w World) {
	d, p := w.Start(t), pick(t, w, true)
	payload, _ := json.Marshal(map[string]string{"text": long(w.Measure, 3*w.Limit())})
	n := len(send(t, d, p, string(payload), &Parts{}))
	whole := w.Shown(t, p)
	parts := &Parts{}
	parts.Doubt(1)
	parts.Doubt(n - 1)
	for range 2 { // again, as after a death
		if err := try(t.Context(), t, d, p, string(payload), parts); !unsure(err) {
			t.Fatal(err)
		}
	}
	want := slices.Delete(append(slices.Clone(whole), whole[1:]...), 2*n-3, 2*n-2)
	if got := w.Shown(t, p); joined(got) != joined(want) {
		t.Errorf("%d messages are shown, want %d: %.200q", len(got), len(want), joined(got))
	}
}

// unsure reports whether err is a core.Error of kind Unsure.
func unsure(err error) bool {
	var e *core.Error
	return errors.As(err, &e) && e.Kind == core.Unsure
}

// testSendsFiles: if the outcome of a file is unknown, the rest of its long caption is sent.
func testSendsFiles(t *testing.T, w World) {
	d, p := w.Start(t), pick(t, w, true)
	carrier, ok := d.(core.FileSender)
	if !ok {
		t.Skip("the driver sends no files")
	}
	parts := &Parts{}
	parts.Doubt(1)
	what := core.Sent{Path: p.Path, Text: long(w.Measure, 3*w.Limit())}
	for range 2 {
		if err := carrier.SendFile(t.Context(), parts, 1, what, core.Upload{Name: "a.txt", Data: []byte("a")}); !unsure(err) {
			t.Fatal(err)
		}
	}
	shown, said := w.Shown(t, p), letters(what.Text)
	if got := letters(joined(shown)); len(shown) < 2 || !strings.HasSuffix(got, said[len(said)-100:]) {
		t.Errorf("%d messages are shown: %.200q", len(shown), got)
	}
}

// testShowsEverything: no letters are lost from texts that are difficult to escape.
func testShowsEverything(t *testing.T, w World) {
	d, p := w.Start(t), pick(t, w, true)
	for i, text := range []string{
		"a < b && c > d <b>bold</b> <script>x</script> </div>", "snake_case_word *star **two ~~three", "1. one\n2. two\n   - three\n\n> quote",
		"`code` ``a`b`` **`bold code`** [link](https://example.org/?a=1&b=2) [bad](javascript:x)", "```\nopen fence", "| a | b |\n|---|---|\n| 1 | 2 |",
		"[x] \\* \\_ \\` # no title\n# title", "@everyone @here <@123> <#5> :smile:", "مرحبا 猫 ñ é 👨‍👩‍👧 \u200d z", "_\n\n*\n\n~~\n\n||x||", "end\x00\x01with\ufffdcontrols",
		"<", "&", "*", "**bold *both*** _it_ __u__", "![alt](https://example.org/i.png)", "---\n\ntext", "    indented",
	} {
		payload, _ := json.Marshal(map[string]string{"text": text})
		send(t, d, p, string(payload), &Parts{})
		shown := w.Shown(t, p)
		last := letters(shown[len(shown)-1].Text)
		for _, want := range strings.FieldsFunc(text, func(r rune) bool { return letters(string(r)) == "" }) {
			if want = letters(want); !strings.Contains(last, want) && !strings.Contains(text, "]("+want) && !strings.Contains("httpsexampleorgipnga1b2", want) {
				t.Errorf("%d: %q is shown as %q: %q is lost", i, text, shown[len(shown)-1].Text, want)
			}
		}
	}
}

func testReplies(t *testing.T, w World) {
	l := listen(t, w, &Inbox{})
	for _, p := range w.Places() {
		id := w.Say(t, p, Say{Text: "question"})
		send(t, l, p, `{"text":"answer","reply_to_message_id":"`+id+`"}`, &Parts{})
		send(t, l, p, `{"text":"no such","reply_to_message_id":"999999"}`, &Parts{})
		shown := w.Shown(t, p)
		if len(shown) != 2 || shown[0].ReplyTo != id || shown[1].ReplyTo != "" {
			t.Errorf("%s shows %+v, want a reply to %s and then none", p.Path, shown, id)
		}
	}
}

// testRefuses: invalid payloads are errors with a text, and nothing is sent.
func testRefuses(t *testing.T, w World) {
	d, p := w.Start(t), pick(t, w, true)
	for _, payload := range []string{
		`{"text":""}`, `{"text":" \n "}`, `{"text":"\u200b"}`, `{"text":"x","interface_path":"elsewhere/1"}`, `{"text":"x","interface_path":"a//b"}`,
		`{"text":"x","interface_path":"` + d.Name() + `"}`, `{"text":5}`, `[]`,
	} {
		err := try(t.Context(), t, d, p, payload, &Parts{})
		var e *core.Error
		if !errors.As(err, &e) || e.Kind != core.Invalid || e.Text == "" {
			t.Errorf("%s: %v, want an invalid payload", payload, err)
		}
	}
	if shown := w.Shown(t, p); len(shown) != 0 {
		t.Errorf("sent all the same: %+v", shown)
	}
}

// testFaults: messages arrive once, whatever fails.
func testFaults(t *testing.T, w World) {
	l := listen(t, w, &Inbox{})
	for i, fault := range []SendFault{SendLimited, SendBroken, SendReset} {
		p := w.Places()[i%len(w.Places())]
		before := len(w.Shown(t, p))
		w.Fail(t, p, fault)
		var all sync.WaitGroup
		for n := range 2 {
			parts := &Parts{}
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), Patience)
				defer cancel()
				send := func() error { return try(ctx, t, l, p, fmt.Sprintf(`{"text":"%s %d"}`, fault, n), parts) }
				if err := Again(ctx, send); err != nil {
					t.Errorf("%s: %v", fault, err)
				}
			})
		}
		all.Wait()
		var got []string
		for _, s := range w.Shown(t, p)[before:] {
			got = append(got, s.Text)
		}
		slices.Sort(got)
		if want := []string{string(fault) + " 0", string(fault) + " 1"}; !slices.Equal(got, want) {
			t.Errorf("%s: %s are shown, want %s", fault, quoted(got), quoted(want))
		}
	}
}

func testManyPlaces(t *testing.T, w World) {
	d := w.Start(t)
	var all sync.WaitGroup
	for _, p := range w.Places() {
		all.Go(func() {
			for n := range 3 {
				if err := try(t.Context(), t, d, p, fmt.Sprintf(`{"text":"number %d"}`, n), &Parts{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for _, p := range w.Places() {
		if got := joined(w.Shown(t, p)); got != "number 0\nnumber 1\nnumber 2" {
			t.Errorf("%s shows %q", p.Path, got)
		}
	}
}

// testSendsAlone: actions also work before Listen begins and after it has ended, because turns may run then.
func testSendsAlone(t *testing.T, w World) {
	d, p := w.Start(t), pick(t, w, true)
	send(t, d, p, `{"text":"before"}`, &Parts{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := d.Listen(ctx, &Inbox{}); err != nil {
		t.Fatal(err)
	}
	send(t, d, p, `{"text":"after"}`, &Parts{})
	if got := joined(w.Shown(t, p)); got != "before\nafter" {
		t.Errorf("%q is shown", got)
	}
	err := try(ctx, t, d, p, `{"text":"never"}`, &Parts{})
	if err == nil || strings.Contains(joined(w.Shown(t, p)), "never") {
		t.Error("sent with an ended context")
	}
}

// testThinks: a typing indicator appears soon, and none after the context has ended.
func testThinks(t *testing.T, w World) {
	d := w.Start(t)
	thinker, ok := d.(core.TypingIndicator)
	if !ok {
		t.Skip("the driver shows nothing while the bot is at work")
	}
	for _, p := range w.Places() {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); thinker.ShowTyping(ctx, p.Path) }()
		for end := time.Now().Add(Patience); w.Thinking(t, p) == 0; {
			if time.Now().After(end) {
				t.Fatalf("%s shows no sign", p.Path)
			}
			time.Sleep(time.Millisecond)
		}
		cancel()
		select {
		case <-done:
		case <-time.After(Patience):
			t.Fatalf("%s: ShowTyping has not returned", p.Path)
		}
		send(t, d, p, `{"text":"here"}`, &Parts{})
		if n := w.Thinking(t, p); n != 1 {
			t.Errorf("%s showed %d signs in a moment", p.Path, n)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	thinker.ShowTyping(ctx, core.MustPath("elsewhere/1")) // returns
}
