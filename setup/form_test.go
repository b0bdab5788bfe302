package setup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"synthbot/core/coretest"
)

// TestPlainForm answers line by line, as on a dumb terminal.
func TestPlainForm(t *testing.T) {
	var out bytes.Buffer
	plain := func(in string) Form { return Form{In: strings.NewReader(in), Out: &out, Plain: true} }
	options := []Option{{"one", "1"}, {"two", "2"}}
	if got, err := plain("2\n").Ask(t.Context(), Question{Title: "Which?", Options: options}); err != nil || got != "2" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := plain("\n").Ask(t.Context(), Question{Title: "Which?", Options: options, Initial: "2"}); err != nil || got != "2" {
		t.Errorf("what is proposed: %q, %v", got, err)
	}
	check := func(s string) error {
		if s != "right" {
			return errors.New("it is wrong")
		}
		return nil
	}
	if got, err := plain("left\nright\n").Ask(t.Context(), Question{Title: "Word?", Check: check}); err != nil || got != "right" || !strings.Contains(out.String(), "it is wrong") {
		t.Errorf("%q, %v: %s", got, err, out.String())
	}
	if _, err := plain("left\n").Ask(t.Context(), Question{Title: "Word?", Check: check}); !errors.Is(err, ErrAborted) {
		t.Errorf("the input ended: %v", err)
	}
}

// pty is a pseudo terminal: keys are pressed at the master, the program has the
// slave.
func pty(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("there is no pseudo terminal here: ", err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	if slave, err = os.OpenFile("/dev/pts/"+itoa(n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close(); master.Close() })
	return master, slave
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}

// screen collects what is shown, until somebody has seen enough.
type screen struct {
	t     *testing.T
	shown chan []byte
	all   string
}

func watch(t *testing.T, master *os.File) *screen {
	s := &screen{t: t, shown: make(chan []byte, 1000)}
	go func() {
		for {
			buf := make([]byte, 4096)
			n, err := master.Read(buf)
			s.shown <- buf[:n]
			if err != nil {
				close(s.shown)
				return
			}
		}
	}()
	return s
}

// sees waits until a text was shown after what was seen before.
func (s *screen) sees(text string) {
	s.t.Helper()
	late := time.After(coretest.Patience)
	for from := len(s.all); !strings.Contains(s.all[from:], text); {
		select {
		case more, ok := <-s.shown:
			if s.all += string(more); !ok {
				s.t.Fatalf("the terminal closed; it showed %q", s.all[from:])
			}
		case <-late:
			s.t.Fatalf("%q is not shown, but %q", text, s.all[from:])
		}
	}
}

// TestForm presses keys on a terminal. What is typed into a hidden question is
// never shown.
func TestForm(t *testing.T) {
	if raced {
		t.Skip("the library of the form closes its reader while it reads, at the form's end: a race of its own")
	}
	t.Setenv("TERM", "xterm-256color")
	master, slave := pty(t)
	s := watch(t, master)
	f := Form{In: slave, Out: slave}
	ask := func(q Question, keys, mark, typed string) (string, error) {
		t.Helper()
		type reply struct {
			text string
			err  error
		}
		done := make(chan reply, 1)
		go func() {
			text, err := f.Ask(t.Context(), q)
			done <- reply{text, err}
		}()
		s.sees(mark)
		press := func(keys string) {
			if _, err := master.WriteString(keys); err != nil {
				t.Error(err)
			}
		}
		press(keys)
		if typed != "" {
			s.sees(typed)
			press("\r")
		}
		select {
		case r := <-done:
			return r.text, r.err
		case <-time.After(coretest.Patience):
			t.Fatal("the form does not end")
		}
		return "", nil
	}
	options := []Option{{"the first", "1"}, {"the second", "2"}}
	if got, err := ask(Question{Title: "Which one?", Options: options}, "\x1b[B\r", "the second", ""); err != nil || got != "2" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := ask(Question{Title: "The token?", Hidden: true}, "s3cret", "token?", "*"); err != nil || got != "s3cret" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := ask(Question{Title: "Your name?", Initial: "Ja"}, "y", "name?", "y"); err != nil || got != "Jay" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := ask(Question{Title: "And now?"}, "\x03", "now?", ""); !errors.Is(err, ErrAborted) {
		t.Errorf("who leaves: %v", err)
	}
	fmt.Fprintln(f.Out, "over")
	s.sees("over")
	if strings.Contains(s.all, "s3c") || strings.Contains(s.all, "cret") || !strings.Contains(s.all, "The token? (given)") {
		t.Errorf("it was shown: %q", s.all)
	}
}
