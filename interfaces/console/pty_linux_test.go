package console

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/term"

	"synthbot/core"
	"synthbot/core/coretest"
)

// session is a conversation on a test terminal.
type session struct {
	*coretest.Terminal
	t      *testing.T
	before *term.State
	stop   context.CancelFunc
	done   chan error
	bot    *bot
}

func newSession(t *testing.T, b *bot, o Options) *session {
	t.Helper()
	s := &session{t: t, Terminal: coretest.NewTerminal(t, 40, 12), bot: b, done: make(chan error, 1)}
	var err error
	if s.before, err = getState(s.File); err != nil {
		t.Fatal(err)
	}
	o.In, o.Out, o.Terminal = s.File, s.File, true
	if o.User == "" {
		o.User = "jay"
	}
	o.PersonaName = "Aria"
	b.t, b.console = t, New(o)
	ctx, stop := context.WithCancel(t.Context())
	s.stop = stop
	var listening sync.WaitGroup
	listening.Go(func() { s.done <- b.console.Listen(ctx, b) })
	defer s.Contains(o.User + ">")
	t.Cleanup(func() {
		stop()
		listening.Wait()
		b.end()
	})
	return s
}

// cursor waits until the cursor is in a column.
func (s *session) cursor(col int) {
	s.t.Helper()
	s.See(fmt.Sprintf("the cursor in column %d", col), func(screen *coretest.Screen) bool { return screen.Col == col })
}

// ended waits until Listen ends and checks that the terminal was restored.
func (s *session) ended() {
	s.t.Helper()
	select {
	case err := <-s.done:
		if err != nil {
			s.t.Errorf("Listen: %v", err)
		}
	case <-time.After(coretest.Patience):
		s.t.Fatal("Listen did not end")
	}
	after, err := getState(s.File)
	if err != nil || fmt.Sprint(*after) != fmt.Sprint(*s.before) {
		s.t.Errorf("the terminal was not restored: %v", err)
	}
	s.See("bracketed paste off", func(screen *coretest.Screen) bool { return !screen.Modes["?2004"] })
	s.See("only common escape sequences", func(screen *coretest.Screen) bool {
		if len(screen.Unknown) > 0 {
			s.t.Errorf("got escape sequences that not all terminals support: %q", screen.Unknown)
		}
		return true
	})
}

func getState(f *os.File) (*term.State, error) {
	var state *term.State
	err := onFile(f, func(fd int) (err error) { state, err = term.GetState(fd); return err })
	return state, err
}

// TestTerminalConversation: the greeting, messages and answers are shown, and Ctrl-D ends the conversation.
func TestTerminalConversation(t *testing.T) {
	s := newSession(t, &bot{reply: echo}, Options{Greeting: "Hello, I'm **Aria**."})
	s.Shows("Aria: Hello, I'm Aria.", "jay>")
	s.cursor(5)
	s.Press("hello\r")
	s.Shows("Aria: Hello, I'm Aria.", "jay> hello", "Aria: you said: hello", "jay>")
	s.Press("  \r\r")
	s.Press("\x01\x0bbye\n")
	s.Shows("Aria: Hello, I'm Aria.", "jay> hello", "Aria: you said: hello", "jay> bye", "Aria: you said: bye", "jay>")
	s.Press("\x04")
	s.ended()
	s.Shows("Aria: Hello, I'm Aria.", "jay> hello", "Aria: you said: hello", "jay> bye", "Aria: you said: bye")
}

// TestTerminalSuggestions: suggested replies are numbered, and a number sends one of the latest.
func TestTerminalSuggestions(t *testing.T) {
	s := newSession(t, &bot{reply: echo, suggest: map[string][]string{"hello": {"green \x1b[2Jtea", "black tea"}}}, Options{})
	s.Press("hello\r")
	s.Shows("jay> hello", "Aria: you said: hello", "", "1. green [2Jtea", "2. black tea", "jay>")
	s.Press("2\r")
	s.Shows("jay> hello", "Aria: you said: hello", "", "1. green [2Jtea", "2. black tea", "jay> 2", "Aria: you said: black tea", "jay>")
	s.Press("2\r")
	s.Shows("jay> hello", "Aria: you said: hello", "", "1. green [2Jtea", "2. black tea", "jay> 2", "Aria: you said: black tea",
		"jay> 2", "Aria: you said: 2", "jay>")
	s.Press("\x04")
	s.ended()
}

// TestTerminalEditing: the keys of a line editor edit the line.
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
		"wide space":       {"one\u00a0two\x17x", "one\u00a0x", 10},
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
			s.Shows("jay>")
			s.Press(tc.keys)
			s.Shows(strings.TrimSpace("jay> " + tc.line))
			s.cursor(tc.col)
			s.Press("\x03")
			s.Shows("jay>") // a line is cleared first
			s.Press("\x03")
			s.ended()
			s.Shows("")
		})
	}
}

// TestTerminalWrapsLongLines: a line longer than the terminal is wrapped and can be edited.
func TestTerminalWrapsLongLines(t *testing.T) {
	s := newSession(t, &bot{reply: echo}, Options{})
	s.Press(strings.Repeat("a", 34))
	s.Shows("jay> " + strings.Repeat("a", 34))
	s.Press("a") // the row is full: the cursor is on the next one
	s.See("the cursor below", func(screen *coretest.Screen) bool { return screen.Row == 1 && screen.Col == 0 })
	s.Press("bc\x1b[D\x1b[D\x1b[D\x7f")
	s.Shows("jay> "+strings.Repeat("a", 34)+"b", "c")
	s.See("the cursor above", func(screen *coretest.Screen) bool { return screen.Row == 0 && screen.Col == 38 })
	s.Press("\r")
	s.Contains("c\nAria: you said:")
	s.Press("\x04")
	s.ended()
	if got := s.bot.messages(); len(got) != 1 || got[0].Text != strings.Repeat("a", 34)+"bc" {
		t.Errorf("got %+v, want the edited line", got)
	}
}

// TestTerminalHistory: the arrow keys go through former lines and back to the one being written.
func TestTerminalHistory(t *testing.T) {
	history := func(context.Context) []string { return []string{"old", "older\x1b[2J", "older[2J"} }
	silent := func(core.Message) []string { return nil }
	s := newSession(t, &bot{reply: silent}, Options{Editing: Editing{History: history}})
	s.Press("new\r")
	s.Shows("jay> new", "jay>")
	s.Press("draft\x1b[A")
	s.Shows("jay> new", "jay> new")
	s.Press("\x1b[A")
	s.Shows("jay> new", "jay> older[2J")
	s.Press("\x10\x10\x10\x10")
	s.Shows("jay> new", "jay> old")
	s.Press("\x1b[B\x0e\x1b[B\x1b[B")
	s.Shows("jay> new", "jay> draft")
	s.Press("\x03\x03")
	s.ended()
}

// TestTerminalCompletes: Tab completes a command as far as it is unambiguous, and then lists the candidates.
func TestTerminalCompletes(t *testing.T) {
	complete := func(_ context.Context, line string) []string {
		return map[string][]string{
			"/": {"/say", "/set", "/status"}, "/s": {"/say", "/set", "/status"}, "/st": {"/status"}, "/status ": nil,
			"/set ": {"égal", "était"}, "/set é": {"égal", "était"},
		}[line]
	}
	s := newSession(t, &bot{reply: echo}, Options{Editing: Editing{Complete: complete}})
	s.Press("/\t")
	s.Shows("jay> /s")
	s.Press("\t")
	s.Shows("/say  /set  /status", "jay> /s")
	s.Press("t\t")
	s.Shows("/say  /set  /status", "jay> /status")
	s.cursor(13)
	s.Press("\t\x03/set \t")
	s.Shows("/say  /set  /status", "jay> /set é")
	s.Press("\t")
	s.Shows("/say  /set  /status", "égal  était", "jay> /set é")
	s.Press("\x03say\tx\x03/x\t")
	s.Shows("/say  /set  /status", "égal  était", "jay> /x")
	s.Press("\x03\x03")
	s.ended()
}

// TestTerminalThinking: while the bot works on an answer, a moving notice is shown above the edited line.
func TestTerminalThinking(t *testing.T) {
	b := &bot{reply: echo, think: make(chan struct{})}
	s := newSession(t, b, Options{})
	s.Press("hello\r")
	s.Contains("jay> hello\nAria is thinking")
	s.Press("next") // the line below the notice can be edited
	s.See("the notice and the line", func(screen *coretest.Screen) bool {
		shown := screen.Text()
		return strings.HasPrefix(shown, "jay> hello\nAria is thinking") && strings.HasSuffix(shown, "\njay> next")
	})
	s.See("dots that move", func(screen *coretest.Screen) bool { return strings.Contains(screen.Text(), "thinking..") })
	b.end()
	s.Shows("jay> hello", "Aria: you said: hello", "jay> next")
	s.Press("\x03\x03")
	s.ended()
	s.Shows("jay> hello", "Aria: you said: hello")
}

// TestTerminalLeavesWhileThinking: the user can leave while the bot works on an answer.
func TestTerminalLeavesWhileThinking(t *testing.T) {
	b := &bot{reply: echo, think: make(chan struct{})}
	s := newSession(t, b, Options{})
	s.Press("hello\r")
	s.Contains("thinking")
	s.Press("\x04")
	s.ended()
	s.Shows("jay> hello")
	b.end()
	s.Shows("jay> hello", "Aria: you said: hello") // the reply still comes, on a plain terminal
}

// TestTerminalMessagesWhileTyping: a message is shown above the edited line, which stays as it is.
func TestTerminalMessagesWhileTyping(t *testing.T) {
	s := newSession(t, &bot{reply: echo}, Options{})
	s.Press("half a line\x1b[D\x1b[D")
	s.Shows("jay> half a line")
	if err := s.bot.console.say("First.\n\nSecond."); err != nil {
		t.Fatal(err)
	}
	s.Shows("Aria: First.", "", "Second.", "jay> half a line")
	s.Press("X")
	s.Shows("Aria: First.", "", "Second.", "jay> half a liXne")
	s.Press("\x03\x03")
	s.ended()
}

// TestTerminalResizes: the edited line is wrapped again when the terminal changes its size.
func TestTerminalResizes(t *testing.T) {
	s := newSession(t, &bot{reply: echo}, Options{})
	s.Press("0123456789 0123456789 0123456789 0123456789")
	s.Shows("jay> 0123456789 0123456789 0123456789 01", "23456789")
	s.Resize(20, 12)
	s.Shows("jay> 0123456789 0123", "456789 0123456789 01", "23456789")
	s.Resize(60, 12)
	s.Shows("jay> 0123456789 0123456789 0123456789 0123456789")
	s.Press("\x01\x1b[C")
	s.Resize(10, 12)
	s.Contains("jay> 01234\n")
	s.Press("Z")
	s.Contains("jay> 0Z123\n")
	s.Press("\x03\x03")
	s.ended()
}

// TestTerminalPastes: a paste of several lines is one message, without control characters.
func TestTerminalPastes(t *testing.T) {
	s := newSession(t, &bot{reply: func(core.Message) []string { return []string{"ok"} }}, Options{})
	s.See("bracketed paste on", func(screen *coretest.Screen) bool { return screen.Modes["?2004"] })
	s.Press("see:\x1b[200~ one\rtwo\r\nthree\x1b[31m\x03\x1b[201~!")
	s.Shows("jay> see: one", "two", "three[31m!")
	s.Press("\r")
	s.Shows("jay> see: one", "two", "three[31m!", "Aria: ok", "jay>")
	if got := s.bot.messages(); got[0].Text != "see: one\ntwo\nthree[31m!" {
		t.Errorf("got message %q, want all lines", got[0].Text)
	}
	long := strings.Repeat("0123456789 ", 3000) // more than the screen, and than most editors hold
	s.Press("\x1b[200~" + long + "end\x1b[201~")
	s.See("the end of it", func(screen *coretest.Screen) bool { return strings.HasSuffix(screen.Text(), "end") })
	s.Press("\r")
	s.See("the second answer", func(screen *coretest.Screen) bool { return strings.Count(screen.Text(), "Aria: ok") == 2 })
	if got := s.bot.messages(); got[1].Text != long+"end" {
		t.Errorf("got a message of %d bytes, want %d", len(got[1].Text), len(long)+3)
	}
	s.Press("\x04")
	s.ended()
}

// TestTerminalClears: Ctrl-L clears the screen and keeps the line.
func TestTerminalClears(t *testing.T) {
	s := newSession(t, &bot{reply: echo}, Options{})
	s.Press("hello\r")
	s.Contains("you said")
	s.Press("more\x0c")
	s.Shows("jay> more")
	s.Press("\x03\x03")
	s.ended()
}

// TestTerminalEndsWithItsContext: Listen ends with its context and removes the edited line.
func TestTerminalEndsWithItsContext(t *testing.T) {
	s := newSession(t, &bot{reply: echo}, Options{})
	s.Press("half")
	s.Shows("jay> half")
	s.stop()
	s.ended()
	s.Shows("")
}

// TestTerminalEndsWhenItIsGone: Listen ends when the terminal is closed.
func TestTerminalEndsWhenItIsGone(t *testing.T) {
	s := newSession(t, &bot{reply: echo}, Options{})
	s.Shows("jay>")
	s.Hangup()
	select {
	case err := <-s.done:
		if err != nil {
			t.Errorf("Listen: %v", err)
		}
	case <-time.After(coretest.Patience):
		t.Fatal("Listen did not end")
	}
}

// TestTerminalRefusesOtherFiles: Listen refuses files that are not a terminal.
func TestTerminalRefusesOtherFiles(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if err := New(Options{In: r, Out: w, Terminal: true}).Listen(t.Context(), &bot{}); err == nil || !strings.Contains(err.Error(), "use a pipe") {
		t.Errorf("got %v, want advice to use a pipe", err)
	}
}

// TestRowsOfALog: log lines appear above the edited line, which stays as it is. While no terminal is open,
// they are written to Out.
func TestRowsOfALog(t *testing.T) {
	var elsewhere strings.Builder
	rows := &Rows{Out: &elsewhere}
	fmt.Fprintln(rows, "before")
	s := newSession(t, &bot{}, Options{Err: rows})
	s.Press("half a li")
	s.Shows("jay> half a li")
	fmt.Fprintln(rows, "the disk is full\nagain")
	s.Shows("the disk is full", "again", "jay> half a li")
	s.Press("ne")
	s.Shows("the disk is full", "again", "jay> half a line")
	s.Press("\x03\x04")
	s.ended()
	fmt.Fprintln(rows, "after")
	if elsewhere.String() != "before\nafter\n" {
		t.Errorf("Out: got %q, want before and after", elsewhere.String())
	}
}

// TestCompletionLogs: a completion function may write to the log above the line.
func TestCompletionLogs(t *testing.T) {
	rows := &Rows{Out: &strings.Builder{}}
	complete := func(context.Context, string) []string {
		fmt.Fprintln(rows, "places not found")
		return []string{"/help"}
	}
	s := newSession(t, &bot{}, Options{Err: rows, Editing: Editing{Complete: complete}})
	s.Press("/h\t")
	s.Shows("places not found", "jay> /help")
	s.Press("\x03\x04")
	s.ended()
}
