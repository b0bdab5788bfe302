package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/watch"
)

// script runs a conversation over a pipe and returns both outputs.
func script(t *testing.T, b *bot, in io.Reader) (out, notices string) {
	t.Helper()
	var o, e bytes.Buffer
	b.t = t
	b.console = New(Options{In: in, Out: &o, Err: &e, User: "jay", Rank: core.RankAdmin})
	if err := b.console.Listen(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	b.busy.Wait()
	return o.String(), e.String()
}

// TestScriptAnswersLineByLine: each line that is not blank is a private message of the user and is answered.
func TestScriptAnswersLineByLine(t *testing.T) {
	b := &bot{reply: echo}
	out, notices := script(t, b, strings.NewReader("one\n\n \t \u00a0\r\ntwo\r\nthree"))
	if out != "you said: one\nyou said: two\nyou said: three\n" || notices != "" {
		t.Errorf("got output %q, want three answers; notices %q, want none", out, notices)
	}
	ids := map[string]bool{}
	for _, m := range b.messages() {
		ids[m.ID] = true
		if m.Path.String() != "console/main" || m.Author.ID != "jay" || m.Author.Name != "jay" || m.Author.Rank != core.RankAdmin ||
			!m.Private || m.Addressed != core.AddressedDirect || m.Time.IsZero() {
			t.Errorf("got %+v, want a private message of the admin jay", m)
		}
	}
	if len(ids) != 3 {
		t.Errorf("got %d ids for 3 messages", len(ids))
	}
}

// TestScriptGoesOnWithoutAnAnswer: a message without an answer does not block the next line.
func TestScriptGoesOnWithoutAnAnswer(t *testing.T) {
	b := &bot{reply: func(m core.Message) []string {
		if m.Text == "hush" {
			return nil
		}
		return []string{m.Text, "and\nmore\n"}
	}}
	if out, _ := script(t, b, strings.NewReader("hush\nhello\n")); out != "hello\nand\nmore\n" {
		t.Errorf("got output %q, want the answers to hello", out)
	}
}

// TestScriptCleansItsInput: control characters are removed from the input, and invalid UTF-8 is replaced.
func TestScriptCleansItsInput(t *testing.T) {
	for in, want := range map[string]string{
		"a\x00b\x07c\x1b[31md\n": "abc[31md",
		"\xff\xfeok\n":           "\uFFFDok",
		"\ufeffbom\n":            "bom",
		"tab\there  \n":          "tab\there",
		"\u202eevil\n":           "evil",
		"\x00\x01\n":             "",
		"grüße 👩‍👧\n":            "grüße 👩‍👧",
	} {
		b := &bot{reply: echo}
		script(t, b, strings.NewReader(in))
		got := ""
		for _, m := range b.messages() {
			got += m.Text
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// TestScriptCutsLongLines: a line that is longer than a message may be is cut, with a notice.
func TestScriptCutsLongLines(t *testing.T) {
	for name, tc := range map[string]struct {
		line string
		size int
		said bool
	}{
		"just fits":   {strings.Repeat("a", core.MaxText), core.MaxText, false},
		"one more":    {strings.Repeat("a", core.MaxText+1), core.MaxText, true},
		"much more":   {strings.Repeat("é", 3*core.MaxText/2), core.MaxText, true},
		"in a letter": {"a" + strings.Repeat("é", core.MaxText/2), core.MaxText - 1, true},
		"grows":       {strings.Repeat("\xff ", core.MaxText/2), core.MaxText, true},
	} {
		b := &bot{reply: func(core.Message) []string { return []string{"ok"} }}
		out, notices := script(t, b, strings.NewReader(tc.line+"\nnext\n"))
		got := b.messages()
		if len(got) != 2 || got[1].Text != "next" || out != "ok\nok\n" {
			t.Errorf("%s: got %d messages, want 2; output %q", name, len(got), out)
			continue
		}
		if n := len(got[0].Text); n > core.MaxText || n < tc.size-1 || !utf8.ValidString(got[0].Text) {
			t.Errorf("%s: got %d bytes, want %d", name, n, tc.size)
		}
		if said := notices == "console: line 1 is longer than 1048576 bytes: the rest was left out\n"; said != tc.said || !said && notices != "" {
			t.Errorf("%s: got notices %q, want one: %v", name, notices, tc.said)
		}
	}
}

// TestScriptEndsWithItsContext: Listen ends with its context, even if a read of the input blocks.
func TestScriptEndsWithItsContext(t *testing.T) {
	for name, pipe := range map[string]func() (io.Reader, io.Writer){
		"a file": func() (io.Reader, io.Writer) { r, w, _ := os.Pipe(); return r, w },
		"any":    func() (io.Reader, io.Writer) { return io.Pipe() },
	} {
		t.Run(name, func(t *testing.T) {
			in, w := pipe()
			ctx, stop := context.WithCancel(t.Context())
			b := &bot{t: t, reply: func(core.Message) []string { stop(); return nil }}
			b.console = New(Options{In: in, Out: io.Discard})
			done := make(chan error)
			go func() { done <- b.console.Listen(ctx, b) }()
			fmt.Fprintln(w, "hello")
			if err := <-done; err != nil {
				t.Error(err)
			}
			b.busy.Wait()
		})
	}
}

// TestScriptEndsWhileATurnHangs: Listen ends with its context, even if a turn does not end.
func TestScriptEndsWhileATurnHangs(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	inbox := inboxFunc(func(core.Event) error { stop(); return nil }) // the turn never ends
	c := New(Options{In: strings.NewReader("hello\n"), Out: io.Discard})
	if err := c.Listen(ctx, inbox); err != nil {
		t.Error(err)
	}
}

type inboxFunc func(core.Event) error

func (f inboxFunc) Receive(_ context.Context, e ...core.Event) error { return f(e[0]) }

// TestScriptReturnsErrors: Listen returns errors of the inbox, the input and the session's name.
func TestScriptReturnsErrors(t *testing.T) {
	broken := errors.New("disk full")
	c := New(Options{In: strings.NewReader("hello\n"), Out: io.Discard})
	if err := c.Listen(t.Context(), inboxFunc(func(core.Event) error { return broken })); !errors.Is(err, broken) {
		t.Errorf("a refusing inbox: got %v, want %v", err, broken)
	}
	c = New(Options{In: io.MultiReader(strings.NewReader("x\n"), failing{broken}), Out: io.Discard})
	b := &bot{t: t, console: c, reply: echo}
	if err := c.Listen(t.Context(), b); !errors.Is(err, broken) || len(b.messages()) != 1 {
		t.Errorf("a broken input: got %v, want %v and one message", err, broken)
	}
	c = New(Options{In: strings.NewReader(""), Out: io.Discard, Session: strings.Repeat("/", 200)})
	if err := c.Listen(t.Context(), b); err == nil || !strings.Contains(err.Error(), "bad path") {
		t.Errorf("a long session name: got %v, want a bad path", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// TestFailedEngines: admins see which engines failed, once per outage.
func TestFailedEngines(t *testing.T) {
	for rank, want := range map[core.Rank]string{
		core.RankAdmin: "console: engine a: off; engine b: slow\nconsole: engine a: off\n", core.RankMember: "",
	} {
		var notices strings.Builder
		c := New(Options{In: strings.NewReader(""), Out: io.Discard, Err: &notices, Rank: rank})
		for _, failed := range [][]string{{"engine a: off", "engine a: off", "engine b: slow"}, {"engine a: off", "engine b: slow"}, nil, {"engine a: off"}} {
			asks := []watch.Ask{{}, {Engine: "offline", Failed: failed}}
			c.Observe(watch.TurnEnd{Turn: core.TurnID{Path: c.place}, Trace: &watch.Trace{Asks: asks}})
			c.Observe(watch.TurnEnd{Turn: core.TurnID{Path: c.place}, Trace: &watch.Trace{}, Command: true})
			c.Observe(watch.TurnEnd{Turn: core.TurnID{Path: c.place}})
		}
		if notices.String() != want {
			t.Errorf("rank %v: got %q, want %q", rank, notices.String(), want)
		}
	}
}

// TestObserveKnowsItsOwn: only the end of the message's own turn lets the next line be read.
func TestObserveKnowsItsOwn(t *testing.T) {
	var notices bytes.Buffer
	c := New(Options{In: strings.NewReader(""), Out: io.Discard, Err: &notices})
	over := make(chan struct{})
	c.waiting["1"] = over
	c.Observe(watch.TurnEnd{Turn: core.TurnID{Path: core.MustPath("console/other")}, Messages: []string{"1"}})
	c.Observe(watch.TurnEnd{Turn: core.TurnID{Path: c.place}, Messages: []string{"2"}})
	select {
	case <-over:
		t.Error("the end of another turn ended the wait")
	default:
	}
	c.Observe(watch.TurnEnd{Turn: core.TurnID{Path: c.place}, Messages: []string{"0", "1"}, Aside: true})
	<-over
	if !strings.Contains(notices.String(), "no answer") {
		t.Errorf("got notices %q, want one about no answer", notices.String())
	}
}

// TestMessageAction: the message action writes to its own session only and refuses invalid payloads.
func TestMessageAction(t *testing.T) {
	var out bytes.Buffer
	c := New(Options{In: strings.NewReader(""), Out: &out, Name: "term", Session: "a b"})
	a := c.Actions()[0]
	if a.Name != "message_term" || !a.IsMessage() || !json.Valid(a.Schema) || len(a.Brief) > 100 || !a.Essential || c.Name() != "term" {
		t.Errorf("got action %+v", a)
	}
	for _, e := range a.Examples.Examples {
		if !json.Valid(e.Payload) {
			t.Errorf("example %s is not JSON", e.Payload)
		}
	}
	elsewhere := core.MustPath("telegram/1")
	for name, tc := range map[string]struct {
		path    core.Path
		payload string
		want    string // of the output; empty: refused
	}{
		"here":           {c.place, `{"text":"hi\u001b[2J"}`, "hi[2J\n"},
		"named":          {elsewhere, `{"text":"hi","interface_path":"term/a%20b","priority":"high"}`, "hi\n"},
		"elsewhere":      {elsewhere, `{"text":"hi"}`, ""},
		"other session":  {c.place, `{"text":"hi","interface_path":"term/other"}`, ""},
		"below":          {c.place, `{"text":"hi","interface_path":"term/a%20b/c"}`, ""},
		"the interface":  {c.place, `{"text":"hi","interface_path":"term"}`, ""},
		"no path":        {c.place, `{"text":"hi","interface_path":"//"}`, ""},
		"nothing":        {c.place, `{"text":" \u0000\n"}`, ""},
		"no object":      {c.place, `[]`, ""},
		"empty zero one": {core.Path{}, `{"text":"hi"}`, ""},
	} {
		out.Reset()
		var sent []core.Sent
		call := core.Call{Path: tc.path, Payload: json.RawMessage(tc.payload), Deliveries: parts{&sent}}
		checked := a.Check(t.Context(), call)
		_, err := a.Do(t.Context(), call)
		if out.String() != tc.want || (err == nil) != (tc.want != "") || (checked == nil) != (err == nil) {
			t.Errorf("%s: got output %q, %v, check %v, want %q", name, out.String(), err, checked, tc.want)
		}
		if e, ok := errors.AsType[*core.Error](err); err != nil && (!ok || e.Kind != core.Invalid || e.Text == "") {
			t.Errorf("%s: got %v, want an invalid request with a text", name, err)
		}
		if err == nil && (len(sent) != 1 || sent[0].Path != c.place || sent[0].ID == "") {
			t.Errorf("%s: sent %+v, want one part with an id", name, sent)
		}
	}
}

// TestMessageActionOnAClosedOutput: a message to a closed output is an error.
func TestMessageActionOnAClosedOutput(t *testing.T) {
	r, w := io.Pipe()
	r.Close()
	c := New(Options{In: strings.NewReader(""), Out: w})
	_, err := c.Actions()[0].Do(t.Context(), core.Call{Path: c.place, Payload: json.RawMessage(`{"text":"hi"}`), Deliveries: parts{}})
	if e, ok := errors.AsType[*core.Error](err); !ok || e.Kind != core.Broken || !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v, want %v", err, io.ErrClosedPipe)
	}
}

// TestIDsDifferBetweenRuns: messages of different runs have different ids.
func TestIDsDifferBetweenRuns(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		b := &bot{reply: echo}
		script(t, b, strings.NewReader("one\ntwo\nthree\n"))
		for _, m := range b.messages() {
			if seen[m.ID] {
				t.Fatalf("id %s was used twice", m.ID)
			}
			seen[m.ID] = true
		}
	}
}

// TestTypingOnAPipe: ShowTyping on a pipe writes nothing, and returns when its context ends.
func TestTypingOnAPipe(t *testing.T) {
	var out strings.Builder
	c := New(Options{In: strings.NewReader(""), Out: &out})
	for _, place := range []core.Path{c.place, core.MustPath("telegram/1")} {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		c.ShowTyping(ctx, place)
	}
	if out.Len() > 0 {
		t.Errorf("got %q, want nothing", &out)
	}
}

// FuzzClean: clean returns valid UTF-8 without control characters, and cleaning twice changes nothing.
func FuzzClean(f *testing.F) {
	f.Add("a\x1b[2Jb\x00\xff\u202e\r\n")
	f.Fuzz(func(t *testing.T, s string) {
		got := clean(s)
		if !utf8.ValidString(got) || clean(got) != got {
			t.Fatalf("%q becomes %q", s, got)
		}
		for _, r := range got {
			if unicode.IsControl(r) && r != '\t' && r != '\n' {
				t.Fatalf("%q keeps %q", s, r)
			}
		}
	})
}

// TestScriptWaitsForContinuations: further messages with which the bot continues belong to its answer. The next
// line, and the end, wait for them.
func TestScriptWaitsForContinuations(t *testing.T) {
	b := &bot{reply: func(m core.Message) []string { return []string{m.Text} }, more: map[string]string{"one": "and one more", "and one more": "the end of it"}}
	if out, _ := script(t, b, strings.NewReader("one\ntwo\n")); out != "one\nand one more\nthe end of it\ntwo\n" {
		t.Errorf("got output %q", out)
	}
}
