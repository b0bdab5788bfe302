package commands

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"synthbot/core/coretest"
	"synthbot/interfaces/telegram/telegramtest"
)

// maxInputs is how many inputs a new user may need until the first answer.
const maxInputs = 10

// newcomer is a new user with an empty home folder and a terminal of 80 columns and 24 lines. Each command,
// line and message counts as an input.
type newcomer struct {
	*coretest.Terminal
	t      *testing.T
	inputs int
	leave  context.CancelFunc
	status chan int
}

func newNewcomer(t *testing.T) *newcomer {
	t.Helper()
	emptyMachine(t)
	t.Setenv("TERM", "xterm")
	return &newcomer{t: t, Terminal: coretest.NewTerminal(t, 80, 24), status: make(chan int, 1)}
}

// types runs a synthbot command.
func (n *newcomer) types(args ...string) {
	n.inputs++
	ctx, leave := context.WithCancel(n.t.Context())
	n.leave = leave
	go func() { n.status <- run(ctx, args, n.File, n.File, n.File) }()
}

// enters waits for a question and answers it.
func (n *newcomer) enters(question, line string) {
	n.t.Helper()
	n.Contains(question)
	n.inputs++
	n.Press(line + "\r")
}

// ended waits until the program ends with a status.
func (n *newcomer) ended(want int) {
	n.t.Helper()
	select {
	case status := <-n.status:
		if status != want {
			n.t.Fatalf("exit status %d, want %d", status, want)
		}
	case <-time.After(coretest.Patience):
		n.t.Fatal("the program does not end")
	}
}

// done checks the number of inputs.
func (n *newcomer) done() {
	n.t.Helper()
	n.t.Logf("%d inputs", n.inputs)
	if n.inputs > maxInputs {
		n.t.Errorf("%d inputs, want at most %d", n.inputs, maxInputs)
	}
}

// TestNewcomerChats checks that the first command in the README leads to an answer. With $TEST_FULL it runs in
// a fresh clone.
func TestNewcomerChats(t *testing.T) {
	const line = "go run ./cmd/synthbot chat"
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil || !strings.Contains(string(readme), "$ "+line+"\nAria: Hello, I'm Aria.") {
		t.Errorf("README.md does not begin with %q: %v", line, err)
	}
	cloned := coretest.Sample(1, 0) == 1
	if cloned {
		keepCaches(t)
	}
	n := newNewcomer(t)
	if !cloned {
		n.types("chat")
	} else {
		n.clones(root, strings.Fields(line))
	}
	n.enters("Aria: Hello, I'm Aria.", "what can you do?")
	n.Contains("Aria: I can chat a little")
	n.Press("\x04")
	n.ended(statusDone)
	n.done()
}

// TestDumbTerminal checks that a terminal that cannot move the cursor gets plain lines, like a pipe.
func TestDumbTerminal(t *testing.T) {
	for _, name := range []string{"dumb", ""} {
		n := newNewcomer(t)
		t.Setenv("TERM", name)
		n.types("chat")
		n.Press("what can you do?\r")
		n.Contains("I can chat a little")
		n.Press("\x04")
		n.ended(statusDone)
		if written := n.Written(); strings.Contains(written, "\x1b") {
			t.Errorf("TERM=%q: got control sequences: %q", name, written)
		}
	}
}

// keepCaches makes go use this machine's module and build caches although the home folder changes.
func keepCaches(t *testing.T) {
	t.Helper()
	for _, name := range []string{"GOMODCACHE", "GOCACHE"} {
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv(name, strings.TrimSpace(string(value)))
	}
}

// clones clones the repository and starts a command in the clone.
func (n *newcomer) clones(root string, args []string) {
	n.t.Helper()
	home := os.Getenv("HOME")
	n.inputs += 2
	clone := exec.Command("git", "clone", "--quiet", root, filepath.Join(home, "synthbot"))
	if out, err := clone.CombinedOutput(); err != nil {
		n.t.Skipf("no repository to clone: %v: %s", err, out)
	}
	c := exec.Command(args[0], args[1:]...)
	c.Dir, c.Stdin, c.Stdout, c.Stderr = filepath.Join(home, "synthbot"), n.File, n.File, n.File
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		n.t.Fatal(err)
	}
	go func() {
		_ = c.Wait()
		n.status <- c.ProcessState.ExitCode()
	}()
}

// TestNewcomerRuns checks that a few answers and two messages lead to an answer on Telegram.
func TestNewcomerRuns(t *testing.T) {
	n := newNewcomer(t)
	telegram := telegramtest.New(t)
	telegram.AddPerson(telegramtest.Person{ID: 1000, Name: "Jay"})
	n.types("init", "--telegram-api-url", telegram.URL)
	n.enters("Who is the bot?", "")
	n.enters("Which language model", "")
	n.enters("Telegram token?", telegramtest.Token)
	n.enters("Discord token?", "")
	n.enters("Who is its admin?", "")
	n.ended(statusDone)
	n.Contains("Next:\n  synthbot run")
	var code string
	n.See("one line for each answer", func(s *coretest.Screen) bool {
		code = regexp.MustCompile(`/claim \S+`).FindString(s.Text())
		return strings.HasPrefix(s.Text(), "Who is the bot? Aria, the built-in persona\nWhich language model does it use? none: only small built-in answers for now\n"+
			"Telegram token? (given)\nDiscord token? –\nWho is its admin? ") && !strings.Contains(s.Text(), "Ctrl-C")
	})
	n.types("run")
	says := func(text string) {
		n.inputs++
		telegram.Say(1000, 1000, telegramtest.Saying{Text: text})
	}
	says(code)
	awaitReplies(t, telegram, 1000, 1)
	says("what can you do?")
	if texts := awaitReplies(t, telegram, 1000, 2); !strings.Contains(texts[0], "You are my admin") || !strings.Contains(texts[1], "I can chat a little") {
		t.Errorf("replies: got %q", texts)
	}
	n.done()
	n.leave()
	n.ended(statusDone)
}

// TestRunOffersInit checks that `run` without a configuration offers in a terminal to write one.
func TestRunOffersInit(t *testing.T) {
	n := newNewcomer(t)
	const offer = "There is no configuration yet. Answer a few questions to write one? [Y/n]"
	n.types("run")
	n.enters(offer, "no")
	n.ended(statusUsage)
	n.Contains("no configuration file: `synthbot init` asks")
	n.types("run")
	n.See("another offer", func(s *coretest.Screen) bool { return strings.Count(s.Text(), offer) == 2 })
	n.Press("\r")
	n.Contains("Who is the bot?")
	n.Press("\x03")
	n.ended(statusFailed)
	n.Contains("cancelled: no file was changed")
	if files, err := os.ReadDir("."); err != nil || len(files) > 0 {
		t.Errorf("got files %v, %v, want none", files, err)
	}
}

// TestNewcomerSkipsModel checks that init says when it waits for a model, and that Ctrl-C skips the wait.
func TestNewcomerSkipsModel(t *testing.T) {
	release := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(silent.Close)
	t.Cleanup(func() { close(release) })
	n := newNewcomer(t)
	n.types("init", "--yes", "--engine", "vllm", "--model", "m", "--base-url", silent.URL)
	n.Contains("Asking vllm whether it answers, for up to 15 seconds (Ctrl-C skips this)…")
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	n.ended(statusDone)
	n.Contains("not checked: `synthbot check --online` does that")
	n.Contains("Next:\n  synthbot chat")
}
