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

// TestPlainForm answers line by line, as on a dumb terminal.
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
			t.Errorf("%d: %q, %v", i, got, err)
		}
	}
	if got := out.String(); !strings.Contains(got, "! it is wrong\n") || !strings.Contains(got, "! choose 1 to 2\n") || strings.Contains(got, "\x1b") {
		t.Errorf("it shows %q", got)
	}
}

// TestPlainHidden corrects a hidden answer with the Backspace key.
func TestPlainHidden(t *testing.T) {
	f := &formOf{t: t, Terminal: coretest.NewTerminal(t, 80, 24), done: make(chan string, 1)}
	f.form = NewForm(f.File, f.File, true)
	t.Cleanup(f.form.Close)
	f.asks(Question{Title: "The token?", Hidden: true})
	f.Contains(">")
	f.Press("\x7fs3\u00e9\x7fcrex\x7ft\r")
	f.answered("s3cret<nil>")
}

// formOf asks questions at a terminal of 80 to 24, or less.
type formOf struct {
	*coretest.Terminal
	t    *testing.T
	form *Form
	done chan string
}

func newFormOf(t *testing.T, columns, rows int) *formOf {
	t.Helper()
	f := &formOf{t: t, Terminal: coretest.NewTerminal(t, columns, rows), done: make(chan string, 1)}
	f.form = NewForm(f.File, f.File, false)
	t.Cleanup(f.form.Close)
	return f
}

// asks shows a question.
func (f *formOf) asks(q Question) {
	f.t.Helper()
	go func() {
		answer, err := f.form.Ask(f.t.Context(), q)
		f.done <- fmt.Sprint(answer, err)
	}()
	f.Contains(q.Title)
}

func (f *formOf) answered(want string) {
	f.t.Helper()
	select {
	case got := <-f.done:
		if got != want {
			f.t.Errorf("the answer is %q, want %q", got, want)
		}
	case <-time.After(coretest.Patience):
		f.t.Fatal("the form does not end")
	}
}

// TestForm presses keys on a terminal. Of each answered question one line stays, and none of what is hidden.
func TestForm(t *testing.T) {
	f := newFormOf(t, 80, 24)
	which := Question{Title: "Which one?", About: "There are three.", Options: []Option{{"the first", "1"}, {"a second", "2"}, {"the third", "3"}}, Initial: "3"}
	f.asks(which)
	f.Shows("Which one?", "There are three.", "  1. the first", "  2. a second", "> 3. the third", "Arrow keys or the number, then Enter · Ctrl-C: leave", ">")
	f.Press("\x1b[A")
	f.Contains("> 2. a second")
	f.Press("\x1b[A\x1b[A\x1b[B\x1b[B\x1b[B\x1b[B\r")
	f.answered("3<nil>")
	f.Shows("Which one? the third")

	f.asks(which)
	f.Contains("Shift-Tab: back")
	f.Press("7\r")
	f.Contains("! choose 1 to 3\n")
	f.Press("\x03sec")
	f.Contains("> 2. a second")
	f.Press("\r")
	f.answered("2<nil>")
	f.Shows("Which one? the third", "Which one? a second")

	f.asks(Question{Title: "The token?", Hidden: true})
	f.Press("s3cret")
	f.Contains("> ******")
	f.Press("\r")
	f.answered("s3cret<nil>")
	f.Shows("Which one? the third", "Which one? a second", "The token? (given)")
	if strings.Contains(f.Written(), "s3c") {
		t.Errorf("it was shown: %q", f.Written())
	}

	f.asks(Question{Title: "Word?", Initial: "righ", Check: mustBeRight})
	f.Press("\r")
	f.Contains("! it is wrong\n")
	f.Press("\x1b[Z")
	f.answered(ErrBack.Error())
	f.Shows("Which one? the third", "Which one? a second")

	f.asks(Question{Title: "Word?", Initial: "righ", Check: mustBeRight})
	f.Press("t\r")
	f.answered("right<nil>")
	f.form.Note("Asking somebody…")
	f.Shows("Which one? the third", "Which one? a second", "Word? right", "Asking somebody…")
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, syscall.SIGINT)
	defer signal.Stop(interrupted)
	f.Press("s3cret\r\x03") // as if it were asked already
	select {
	case <-interrupted:
	case <-time.After(coretest.Patience):
		t.Fatal("Ctrl-C is ignored")
	}
	f.Shows("Which one? the third", "Which one? a second", "Word? right", "Asking somebody…")
	f.asks(Question{Title: "And now?"})
	f.Press("\x03")
	f.answered(ErrLeft.Error())
	f.Shows("Which one? the third", "Which one? a second", "Word? right")
	f.asks(Question{Title: "And now?"})
	f.Hangup()
	f.answered(ErrLeft.Error())
}

// TestFormFits: a question is never higher or wider than the terminal; keys that are pressed ahead are not lost.
func TestFormFits(t *testing.T) {
	f := newFormOf(t, 30, 9)
	q := Question{Title: "Which one of them shall it be?", About: strings.Repeat("word ", 12)}
	for i := range 30 {
		q.Options = append(q.Options, Option{fmt.Sprintf("number %d %s", i+1, strings.Repeat("x", 40)), fmt.Sprint(i + 1)})
	}
	f.asks(q)
	for i := range 30 {
		f.Contains(fmt.Sprintf("> %d. number", i+1))
		f.See("the whole question", func(s *coretest.Screen) bool {
			return len(strings.Split(s.Text(), "\n")) <= 9 && strings.HasPrefix(s.Text(), "Which one")
		})
		f.Press("\x1b[B")
	}
	f.Press("12\r" + "next\r")
	f.answered("12<nil>")
	f.asks(Question{Title: ""})
	f.answered("next<nil>")
}
