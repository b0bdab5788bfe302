package console

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/term"

	"synthbot/core"
	"synthbot/core/coretest"
)

// session is a conversation on a real pseudo terminal: the test presses keys at
// its master side and looks at what a vt makes of the output.
type session struct {
	t      *testing.T
	master *os.File
	slave  *os.File
	before *term.State
	stop   context.CancelFunc
	done   chan error
	bot    *bot

	mu      sync.Mutex
	changed *sync.Cond
	vt      *vt
	late    bool // the wait is over
	written string
}

func newSession(t *testing.T, b *bot, o Options) *session {
	t.Helper()
	master, slave := openPTY(t)
	s := &session{t: t, master: master, slave: slave, bot: b, vt: newVT(40, 12), done: make(chan error, 1)}
	s.changed = sync.NewCond(&s.mu)
	s.setSize(40, 12)
	var err error
	if s.before, err = getState(slave); err != nil {
		t.Fatal(err)
	}
	o.In, o.Out, o.Terminal = slave, slave, true
	if o.User == "" {
		o.User = "jay"
	}
	o.PersonaName = "Aria"
	b.t, b.console = t, New(o)
	ctx, stop := context.WithCancel(t.Context())
	s.stop = stop
	var copied sync.WaitGroup
	copied.Go(s.copy)
	var listening sync.WaitGroup
	listening.Go(func() { s.done <- b.console.Listen(ctx, b) })
	defer s.contains(o.User + ">")
	t.Cleanup(func() {
		stop()
		listening.Wait()
		b.end()
		if t.Failed() {
			s.mu.Lock()
			t.Logf("written: %q", s.written)
			s.mu.Unlock()
		}
		slave.Close()
		master.Close()
		copied.Wait()
	})
	return s
}

// copy shows the output on the vt as it comes.
func (s *session) copy() {
	buffer := make([]byte, 4096)
	for {
		n, err := s.master.Read(buffer)
		s.mu.Lock()
		_, _ = s.vt.Write(buffer[:n])
		s.written += string(buffer[:n])
		s.changed.Broadcast()
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *session) press(keys string) {
	s.t.Helper()
	if _, err := s.master.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// see waits until the screen fulfils a condition.
func (s *session) see(what string, ok func(screen string) bool) {
	s.t.Helper()
	timer := time.AfterFunc(coretest.Patience, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.late = true
		s.changed.Broadcast()
	})
	defer timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !ok(s.vt.text()) {
		if s.late {
			select {
			case err := <-s.done:
				s.t.Logf("Listen is over: %v", err)
			default:
			}
			s.t.Fatalf("never saw %s:\n%s\ncursor at %d,%d", what, s.vt.text(), s.vt.row, s.vt.col)
		}
		s.changed.Wait()
	}
}

// shows waits for exactly this screen.
func (s *session) shows(want ...string) {
	s.t.Helper()
	text := strings.Join(want, "\n")
	s.see(fmt.Sprintf("%q", text), func(screen string) bool { return screen == text })
}

func (s *session) contains(part string) {
	s.t.Helper()
	s.see(fmt.Sprintf("%q", part), func(screen string) bool { return strings.Contains(screen, part) })
}

// cursor waits until the cursor is in a column.
func (s *session) cursor(col int) {
	s.t.Helper()
	s.see(fmt.Sprintf("the cursor in column %d", col), func(string) bool { return s.vt.col == col })
}

// ended waits for Listen, and looks whether the terminal is as it was.
func (s *session) ended() {
	s.t.Helper()
	select {
	case err := <-s.done:
		if err != nil {
			s.t.Errorf("Listen: %v", err)
		}
	case <-time.After(coretest.Patience):
		s.t.Fatalf("Listen did not end; the screen is\n%s", s.vt.text())
	}
	after, err := getState(s.slave)
	if err != nil || fmt.Sprint(*after) != fmt.Sprint(*s.before) {
		s.t.Errorf("the terminal was not restored: %v", err)
	}
	s.see("pastes unmarked again", func(string) bool { return !s.vt.modes["?2004"] })
	if len(s.vt.unknown) > 0 {
		s.t.Errorf("sequences that not all terminals know: %q", s.vt.unknown)
	}
}

// resize changes the window as a person would, and waits until the line is drawn
// anew.
func (s *session) resize(columns, rows int) {
	s.t.Helper()
	s.mu.Lock()
	before := len(s.written)
	defer s.see("the line drawn anew", func(string) bool { return len(s.written) > before })
	s.vt.resize(columns)
	s.vt.height = rows
	s.mu.Unlock()
	s.setSize(columns, rows)
	if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil { // no controlling terminal tells us
		s.t.Fatal(err)
	}
}

func (s *session) setSize(columns, rows int) {
	size := [4]uint16{uint16(rows), uint16(columns)}
	ioctl(s.t, s.master, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
}

func getState(f *os.File) (*term.State, error) {
	var state *term.State
	_, err := onFile(f, func(fd int) (err error) { state, err = term.GetState(fd); return err })
	return state, err
}

func openPTY(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	var unlock, number int32
	ioctl(t, master, syscall.TIOCSPTLCK, unsafe.Pointer(&unlock))
	ioctl(t, master, syscall.TIOCGPTN, unsafe.Pointer(&number))
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	return master, slave
}

func ioctl(t *testing.T, f *os.File, request uintptr, value unsafe.Pointer) {
	t.Helper()
	_, err := onFile(f, func(fd int) error {
		if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), request, uintptr(value)); e != 0 {
			return e
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTerminalConversation(t *testing.T) {
	s := newSession(t, &bot{reply: echo}, Options{Greeting: "Hello, I'm **Aria**."})
	s.shows("Aria: Hello, I'm Aria.", "jay>")
	s.cursor(5)
	s.press("hello\r")
	s.shows("Aria: Hello, I'm Aria.", "jay> hello", "Aria: you said: hello", "jay>")
	s.press("  \r\r")
	s.press("\x01\x0bbye\n")
	s.shows("Aria: Hello, I'm Aria.", "jay> hello", "Aria: you said: hello", "jay> bye", "Aria: you said: bye", "jay>")
	s.press("\x04")
	s.ended()
	s.shows("Aria: Hello, I'm Aria.", "jay> hello", "Aria: you said: hello", "jay> bye", "Aria: you said: bye")
}

// TestTerminalSuggestions: suggested replies have numbers, and a number says one of the last ones.
func TestTerminalSuggestions(t *testing.T) {
	s := newSession(t, &bot{reply: echo, suggest: map[string][]string{"hello": {"green \x1b[2Jtea", "black tea"}}}, Options{})
	s.press("hello\r")
	s.shows("jay> hello", "Aria: you said: hello", "", "1. green [2Jtea", "2. black tea", "jay>")
	s.press("2\r")
	s.shows("jay> hello", "Aria: you said: hello", "", "1. green [2Jtea", "2. black tea", "jay> 2", "Aria: you said: black tea", "jay>")
	s.press("2\r")
	s.shows("jay> hello", "Aria: you said: hello", "", "1. green [2Jtea", "2. black tea", "jay> 2", "Aria: you said: black tea",
		"jay> 2", "Aria: you said: 2", "jay>")
	s.press("\x04")
	s.ended()
}

func TestTerminalEditing(t *testing.T) {
	for name, tc := range map[string]struct {
		keys, line string
		col        int
	}{
		"backspace":        {"abd\x7fc", "abc", 8},
		"ctrl-h":           {"abd\bc", "abc", 8},
		"left and insert":  {"ac\x1b[Db", "abc", 7},
		"home and end":     {"b\x1b[Ha\x1b[Fc", "abc", 8},
		"ctrl-a ctrl-e":    {"b\x01a\x05c", "abc", 8},
		"delete":           {"abbc\x1b[D\x1b[D\x1b[3~", "abc", 7},
		"ctrl-d deletes":   {"abbc\x02\x02\x04", "abc", 7},
		"kill and yank":    {"one two\x17\x01\x19", "twoone", 8},
		"kill right":       {"abc\x02\x02\x0b", "a", 6},
		"kill left":        {"abc\x02\x15", "c", 5},
		"words":            {"one two\x1b[1;5D\x1b[1;3DX\x1bfY", "XoneY two", 10},
		"transpose":        {"acb\x14", "abc", 8},
		"wide characters":  {"日本語\x7f\x1b[D猫", "日猫本", 9},
		"combining":        {"e\u0301x\x7f\x7fa", "a", 6},
		"family":           {"👨‍👩‍👧b\x1b[D\x7fa", "ab", 6},
		"invalid bytes":    {"a\xffb", "a\uFFFDb", 8},
		"split characters": {"\xe7", "", 5},
		"unknown keys":     {"a\x1b[24~\x1bOP\x1b[1;2Q\x1b]0;x\ab\x1a\x1b[200", "ab", 7},
		"past the edges":   {"\x7f\x1b[D\x1b[C\x1b[3~\x1b[A\x1b[B\x17\x15\x0b\x14x", "x", 6},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, &bot{reply: echo}, Options{})
			s.shows("jay>")
			s.press(tc.keys)
			s.shows(strings.TrimSpace("jay> " + tc.line))
			s.cursor(tc.col)
			s.press("\x03")
			s.shows("jay>") // a line is cleared first
			s.press("\x03")
			s.ended()
			s.shows("")
		})
	}
}

func TestTerminalWrapsLongLines(t *testing.T) {
	s := newSession(t, &bot{reply: echo}, Options{})
	s.press(strings.Repeat("a", 34))
	s.shows("jay> " + strings.Repeat("a", 34))
	s.press("a") // the row is full: the cursor is on the next one
	s.see("the cursor below", func(string) bool { return s.vt.row == 1 && s.vt.col == 0 })
	s.press("bc\x1b[D\x1b[D\x1b[D\x7f")
	s.shows("jay> "+strings.Repeat("a", 34)+"b", "c")
	s.see("the cursor above", func(string) bool { return s.vt.row == 0 && s.vt.col == 38 })
	s.press("\r")
	s.contains("c\nAria: you said:")
	s.press("\x04")
	s.ended()
	if got := s.bot.messages(); len(got) != 1 || got[0].Text != strings.Repeat("a", 34)+"bc" {
		t.Errorf("messages %+v", got)
	}
}

func TestTerminalHistory(t *testing.T) {
	s := newSession(t, &bot{reply: func(core.Message) []string { return nil }},
		Options{History: func(context.Context) []string { return []string{"old", "older\x1b[2J", "older[2J"} }})
	s.press("new\r")
	s.shows("jay> new", "jay>")
	s.press("draft\x1b[A")
	s.shows("jay> new", "jay> new")
	s.press("\x1b[A")
	s.shows("jay> new", "jay> older[2J")
	s.press("\x10\x10\x10\x10")
	s.shows("jay> new", "jay> old")
	s.press("\x1b[B\x0e\x1b[B\x1b[B")
	s.shows("jay> new", "jay> draft")
	s.press("\x03\x03")
	s.ended()
}

func TestTerminalThinking(t *testing.T) {
	b := &bot{reply: echo, think: make(chan struct{})}
	s := newSession(t, b, Options{})
	s.press("hello\r")
	s.contains("jay> hello\nAria is thinking")
	s.press("next") // typing goes on below the sign
	s.see("the sign and the line", func(screen string) bool {
		return strings.HasPrefix(screen, "jay> hello\nAria is thinking") && strings.HasSuffix(screen, "\njay> next")
	})
	s.see("dots that move", func(screen string) bool { return strings.Contains(screen, "thinking..") })
	b.end()
	s.shows("jay> hello", "Aria: you said: hello", "jay> next")
	s.press("\x03\x03")
	s.ended()
	s.shows("jay> hello", "Aria: you said: hello")
}

func TestTerminalLeavesWhileThinking(t *testing.T) {
	b := &bot{reply: echo, think: make(chan struct{})}
	s := newSession(t, b, Options{})
	s.press("hello\r")
	s.contains("thinking")
	s.press("\x04")
	s.ended()
	s.shows("jay> hello")
	b.end()
	s.shows("jay> hello", "Aria: you said: hello") // the reply still comes, on a plain terminal
}

func TestTerminalMessagesWhileTyping(t *testing.T) {
	s := newSession(t, &bot{reply: echo}, Options{})
	s.press("half a line\x1b[D\x1b[D")
	s.shows("jay> half a line")
	if err := s.bot.console.say("First.\n\nSecond."); err != nil {
		t.Fatal(err)
	}
	s.shows("Aria: First.", "", "Second.", "jay> half a line")
	s.press("X")
	s.shows("Aria: First.", "", "Second.", "jay> half a liXne")
	s.press("\x03\x03")
	s.ended()
}

func TestTerminalResizes(t *testing.T) {
	s := newSession(t, &bot{reply: echo}, Options{})
	s.press("0123456789 0123456789 0123456789 0123456789")
	s.shows("jay> 0123456789 0123456789 0123456789 01", "23456789")
	s.resize(20, 12)
	s.shows("jay> 0123456789 0123", "456789 0123456789 01", "23456789")
	s.resize(60, 12)
	s.shows("jay> 0123456789 0123456789 0123456789 0123456789")
	s.press("\x01\x1b[C")
	s.resize(10, 12)
	s.contains("jay> 01234\n")
	s.press("Z")
	s.contains("jay> 0Z123\n")
	s.press("\x03\x03")
	s.ended()
}

func TestTerminalPastes(t *testing.T) {
	s := newSession(t, &bot{reply: func(core.Message) []string { return []string{"ok"} }}, Options{})
	s.see("pastes marked", func(string) bool { return s.vt.modes["?2004"] })
	s.press("see:\x1b[200~ one\rtwo\r\nthree\x1b[31m\x03\x1b[201~!")
	s.shows("jay> see: one", "two", "three[31m!")
	s.press("\r")
	s.shows("jay> see: one", "two", "three[31m!", "Aria: ok", "jay>")
	if got := s.bot.messages(); got[0].Text != "see: one\ntwo\nthree[31m!" {
		t.Errorf("message %q", got[0].Text)
	}
	long := strings.Repeat("0123456789 ", 3000) // more than the screen, and than most editors hold
	s.press("\x1b[200~" + long + "end\x1b[201~")
	s.see("the end of it", func(screen string) bool { return strings.HasSuffix(screen, "end") })
	s.press("\r")
	s.see("the second answer", func(screen string) bool { return strings.Count(screen, "Aria: ok") == 2 })
	if got := s.bot.messages(); got[1].Text != long+"end" {
		t.Errorf("message of %d bytes, want %d", len(got[1].Text), len(long)+3)
	}
	s.press("\x04")
	s.ended()
}

func TestTerminalClears(t *testing.T) {
	s := newSession(t, &bot{reply: echo}, Options{})
	s.press("hello\r")
	s.contains("you said")
	s.press("more\x0c")
	s.shows("jay> more")
	s.press("\x03\x03")
	s.ended()
}

func TestTerminalEndsWithItsContext(t *testing.T) {
	s := newSession(t, &bot{reply: echo}, Options{})
	s.press("half")
	s.shows("jay> half")
	s.stop()
	s.ended()
	s.shows("")
}

func TestTerminalEndsWhenItIsGone(t *testing.T) {
	s := newSession(t, &bot{reply: echo}, Options{})
	s.shows("jay>")
	s.master.Close()
	select {
	case err := <-s.done:
		if err != nil {
			t.Errorf("Listen: %v", err)
		}
	case <-time.After(coretest.Patience):
		t.Fatal("Listen did not end")
	}
}

func TestTerminalRefusesOtherFiles(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if err := New(Options{In: r, Out: w, Terminal: true}).Listen(t.Context(), &bot{}); err == nil || !strings.Contains(err.Error(), "use a pipe") {
		t.Errorf("error %v", err)
	}
}
