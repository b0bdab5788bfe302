package console

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"synthbot/core/coretest"
)

func mustBeRight(s string) error {
	if s != "right" {
		return errors.New("it is wrong")
	}
	return nil
}

// TestPlainForm: a plain form reads answers line by line, without escape sequences.
func TestPlainForm(t *testing.T) {
	options := []Option{{"one", "1"}, {"two", "2"}}
	var out bytes.Buffer
	f := NewForm(strings.NewReader("2\n\n3\none\n<\n\nleft\nright\nleft\n"), &out, true)
	defer f.Close()
	for i, tc := range []struct {
		q    Question
		want string
		err  error
	}{
		{Question{Title: "Which?", Options: options}, "2", nil},
		{Question{Title: "Which?", Options: options, Initial: "2"}, "2", nil},
		{Question{Title: "Which?", Options: options, Initial: "2"}, "1", nil},
		{Question{Title: "Which?", Options: options}, "", ErrBack},
		{Question{Title: "Word?", Initial: "right", Check: mustBeRight}, "right", nil},
		{Question{Title: "Word?", Check: mustBeRight}, "right", nil},
		{Question{Title: "Word?", Check: mustBeRight}, "", ErrLeft},
	} {
		if got, err := f.Ask(t.Context(), tc.q); got != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("question %d: got %q, %v, want %q, %v", i, got, err, tc.want, tc.err)
		}
	}
	if got := out.String(); !strings.Contains(got, "! it is wrong\n") || !strings.Contains(got, "! choose 1 to 2\n") || strings.Contains(got, "\x1b") {
		t.Errorf("got output %q, want both corrections and no escape sequences", got)
	}
}

// TestPlainHidden: the Backspace key works in hidden answers of a plain form.
func TestPlainHidden(t *testing.T) {
	f := &testForm{t: t, Terminal: coretest.NewTerminal(t, 80, 24), done: make(chan string, 1)}
	f.form = NewForm(f.File, f.File, true)
	t.Cleanup(f.form.Close)
	f.ask(Question{Title: "The token?", Hidden: true})
	f.Contains(">")
	f.Press("\x7fs3\u00e9\x7fcrex\x7ft\r")
	f.wantAnswer("s3cret<nil>")
}

// testForm is a form on a test terminal.
type testForm struct {
	*coretest.Terminal
	t    *testing.T
	form *Form
	done chan string
}

func newTestForm(t *testing.T, columns, rows int) *testForm {
	t.Helper()
	f := &testForm{t: t, Terminal: coretest.NewTerminal(t, columns, rows), done: make(chan string, 1)}
	f.form = NewForm(f.File, f.File, false)
	t.Cleanup(f.form.Close)
	return f
}

// ask starts a question and waits until it is shown.
func (f *testForm) ask(q Question) {
	f.t.Helper()
	go func() {
		answer, err := f.form.Ask(f.t.Context(), q)
		f.done <- fmt.Sprint(answer, err)
	}()
	f.Contains(q.Title)
}

// wantAnswer waits for the result of Ask and compares it.
func (f *testForm) wantAnswer(want string) {
	f.t.Helper()
	select {
	case got := <-f.done:
		if got != want {
			f.t.Errorf("got answer %q, want %q", got, want)
		}
	case <-time.After(coretest.Patience):
		f.t.Fatal("the form did not end")
	}
}

// TestForm: a form on a terminal is answered with keys. One line stays of each answered question, without
// hidden answers.
func TestForm(t *testing.T) {
	f := newTestForm(t, 80, 24)
	which := Question{Title: "Which one?", About: "There are three.", Options: []Option{{"the first", "1"}, {"a second", "2"}, {"the third", "3"}}, Initial: "3"}
	f.ask(which)
	f.Shows("Which one?", "There are three.", "  1. the first", "  2. a second", "> 3. the third", "Arrow keys or the number, then Enter · Ctrl-C: leave", ">")
	f.Press("\x1b[A")
	f.Contains("> 2. a second")
	f.Press("\x1b[A\x1b[A\x1b[B\x1b[B\x1b[B\x1b[B\r")
	f.wantAnswer("3<nil>")
	f.Shows("Which one? the third")

	f.ask(which)
	f.Contains("Shift-Tab: back")
	f.Press("7\r")
	f.Contains("! choose 1 to 3\n")
	f.Press("\x03sec")
	f.Contains("> 2. a second")
	f.Press("\r")
	f.wantAnswer("2<nil>")
	f.Shows("Which one? the third", "Which one? a second")

	f.ask(Question{Title: "The token?", Hidden: true})
	f.Press("s3\x1b\rcret")
	f.Contains("> **\n****")
	f.Press("\r")
	f.wantAnswer("s3\ncret<nil>")
	f.Shows("Which one? the third", "Which one? a second", "The token? (given)")
	if strings.Contains(f.Written(), "s3c") {
		t.Errorf("the hidden answer was shown: %q", f.Written())
	}

	f.ask(Question{Title: "Word?", Initial: "righ", Check: mustBeRight})
	f.Press("\r")
	f.Contains("! it is wrong\n")
	f.Press("\x1b[Z")
	f.wantAnswer(ErrBack.Error())
	f.Shows("Which one? the third", "Which one? a second")

	f.ask(Question{Title: "Word?", Initial: "righ", Check: mustBeRight})
	f.Press("t\r")
	f.wantAnswer("right<nil>")
	f.form.Note("Asking somebody…")
	f.Shows("Which one? the third", "Which one? a second", "Word? right", "Asking somebody…")
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, syscall.SIGINT)
	defer signal.Stop(interrupted)
	f.Press("s3cret\r\x03") // before the next question is asked
	select {
	case <-interrupted:
	case <-time.After(coretest.Patience):
		t.Fatal("Ctrl-C was ignored")
	}
	f.Shows("Which one? the third", "Which one? a second", "Word? right", "Asking somebody…")
	f.ask(Question{Title: "And now?"})
	f.Press("\x03")
	f.wantAnswer(ErrLeft.Error())
	f.Shows("Which one? the third", "Which one? a second", "Word? right")
	f.ask(Question{Title: "And now?"})
	f.Hangup()
	f.wantAnswer(ErrLeft.Error())
}

// TestFormFits: a question is never larger than the terminal, and keys that are pressed ahead are not lost.
func TestFormFits(t *testing.T) {
	f := newTestForm(t, 30, 9)
	q := Question{Title: "Which one of them shall it be?", About: strings.Repeat("word ", 12)}
	for i := range 30 {
		q.Options = append(q.Options, Option{fmt.Sprintf("number %d %s", i+1, strings.Repeat("x", 40)), fmt.Sprint(i + 1)})
	}
	f.ask(q)
	for i := range 30 {
		f.Contains(fmt.Sprintf("> %d. number", i+1))
		f.See("the whole question", func(s *coretest.Screen) bool {
			return len(strings.Split(s.Text(), "\n")) <= 9 && strings.HasPrefix(s.Text(), "Which one")
		})
		f.Press("\x1b[B")
	}
	f.Press("12\r" + "next\r")
	f.wantAnswer("12<nil>")
	f.ask(Question{Title: ""})
	f.wantAnswer("next<nil>")
}
