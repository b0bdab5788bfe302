// Package shutdown tests that the program ends although parts of it hang. It starts real processes.
package shutdown

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"synthbot/cmd/synthbot/commands"
	"synthbot/core/coretest"
	"synthbot/daemon"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){faultyCommand: faultyMain})
}

// faultyCommand is the name of the program with injected faults.
const faultyCommand = "synthbot-faulty"

// faultyMain runs the program with a grace period of $GRACE and with $PATIENCE for the database. It hangs in
// database jobs whose names begin with $SPIN.
func faultyMain() {
	e := &daemon.Env{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Clock: time.Now, Patience: time.Hour,
	}
	grace := time.Hour
	if d, err := time.ParseDuration(os.Getenv("GRACE")); err == nil {
		grace = d
	}
	if d, err := time.ParseDuration(os.Getenv("PATIENCE")); err == nil {
		e.Patience = d
	}
	if spin := os.Getenv("SPIN"); spin != "" {
		e.BeforeJob = func(job string) {
			if !strings.HasPrefix(job, spin) {
				return
			}
			fmt.Fprintln(os.Stderr, "SPIN", job)
			for { // hangs without using the processor
				time.Sleep(time.Millisecond)
			}
		}
	}
	os.Exit(commands.Main(context.Background(), e, os.Args[1:], grace, 0))
}

// process is a running faulty program.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   *os.File
	mu   sync.Mutex
	said bytes.Buffer
	over chan struct{}
}

// Write implements io.Writer for the program's output.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.Write(b)
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// begin starts the faulty program in a folder, with a pipe as its standard input.
func begin(t *testing.T, dir string, env []string, args ...string) *process {
	t.Helper()
	in, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, in: ours, over: make(chan struct{})}
	p.cmd = exec.Command(os.Args[0], args...)
	p.cmd.Args[0] = faultyCommand
	p.cmd.Dir, p.cmd.Env = dir, append(os.Environ(), append(env, "XDG_STATE_HOME="+dir, "NOTIFY_SOCKET=", "WATCHDOG_USEC=")...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr, p.cmd.WaitDelay = in, p, p, time.Second
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	go func() {
		_ = p.cmd.Wait() // tests check the status
		close(p.over)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.over
		ours.Close()
	})
	return p
}

// until waits until the program's output contains a text.
func (p *process) until(want string) {
	p.t.Helper()
	eventually(p.t, func() bool { return strings.Contains(p.text(), want) },
		func() string { return "waiting for " + want + " in: " + p.text() })
}

// eventually polls until ready returns true.
func eventually(t *testing.T, ready func() bool, otherwise func() string) {
	t.Helper()
	for end := time.Now().Add(coretest.Patience); !ready(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(otherwise())
		}
	}
}

// ends waits for the end of the program and returns its exit status.
func (p *process) ends() int {
	p.t.Helper()
	select {
	case <-p.over:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(coretest.Patience):
		p.t.Fatalf("the program does not end: %s", p.text())
		return 0
	}
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// TestStuckWriterEndsTheProcess checks that the process ends by itself when a database job hangs, and prints
// the reason and the stacks. The fourth start does not run the job again.
func TestStuckWriterEndsTheProcess(t *testing.T) {
	dir := t.TempDir()
	forget := []string{"SPIN=forget console/@user/", "PATIENCE=2s"}
	ask := func() *process {
		p := begin(t, dir, forget, "chat", "--user", "ann")
		if _, err := fmt.Fprintln(p.in, "/forgetme yes"); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for range 3 {
		p := ask()
		status := p.ends()
		for _, want := range []string{"makes no progress", "forget console/@user/ann", "goroutine ", "memory.(*writer).run"} {
			if !strings.Contains(p.text(), want) {
				t.Errorf("the output lacks %q: %s", want, p.text())
			}
		}
		if status != 1 {
			t.Errorf("exit status %d, want 1", status)
		}
	}
	p := begin(t, dir, forget, "chat", "--user", "ann")
	if _, err := fmt.Fprintln(p.in, "hello"); err != nil {
		t.Fatal(err)
	}
	p.in.Close()
	if status := p.ends(); status != 0 || !strings.Contains(p.text(), "refused") {
		t.Errorf("fourth start: status %d, %s", status, p.text())
	}
}

// hungServer is a server that accepts requests and never answers.
type hungServer struct {
	*httptest.Server
	requests chan struct{}
}

func newHungServer(t *testing.T) *hungServer {
	h := &hungServer{requests: make(chan struct{}, 100)}
	h.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server notices a closed connection only after it read the body
		h.requests <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(h.Close)
	return h
}

// awaitRequest waits for a request.
func (h *hungServer) awaitRequest(t *testing.T) {
	t.Helper()
	select {
	case <-h.requests:
	case <-time.After(coretest.Patience):
		t.Fatal("no request arrives")
	}
}

// TestSignalTwiceAtOnce: signals that come together, as from `timeout`, are one request to end.
func TestSignalTwiceAtOnce(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.toml"), "[bot]\ndata_dir = \"data\"\n[interfaces.desk]\ntype = \"console\"\n")
	p := begin(t, dir, nil, "run", "-c", "config.toml")
	p.until("running")
	p.signal(syscall.SIGTERM)
	p.signal(syscall.SIGINT)
	if status := p.ends(); status != 0 || strings.Contains(p.text(), "at once") {
		t.Errorf("exit status %d: %s", status, p.text())
	}
}

// TestSignalsEndTheProcess checks that one signal ends the process after the grace period, and a second one at
// once, although a part of the process hangs.
func TestSignalsEndTheProcess(t *testing.T) {
	const bot = "[bot]\ndata_dir = \"data\"\n"
	const engine = "[[engine]]\nprovider = \"vllm\"\nmodel = \"m\"\nbase_url = %q\n"
	const tools = "[[plugins.mcp.server]]\nname = \"hung\"\ncommand = [%q]\n"
	const telegram = "[interfaces.telegram]\ntoken = \"1:a\"\napi_url = %q\n"
	const desk = "[interfaces.desk]\ntype = \"console\"\n"
	model, platform := newHungServer(t), newHungServer(t)
	script := filepath.Join(t.TempDir(), "server")
	write(t, script, "#!/bin/sh\ntrap '' TERM INT\nwhile [ -e \"$0\" ]; do read x || sleep 1; done\n")
	if err := os.Chmod(script, 0o700); err != nil {
		t.Fatal(err)
	}
	sayHello := func(p *process) {
		p.until("running")
		fmt.Fprintln(p.in, "hello")
	}
	for name, c := range map[string]struct {
		command, config, spin string
		before                func(p *process)
	}{
		"a spinning writer": {"run", bot + desk, "message", func(p *process) { sayHello(p); p.until("SPIN") }},
		"a spinning writer at a terminal": {"chat", bot, "message", func(p *process) {
			fmt.Fprintln(p.in, "hello")
			p.until("SPIN")
		}},
		"a hung model": {"run", bot + desk + fmt.Sprintf(engine, model.URL), "none", func(p *process) {
			sayHello(p)
			model.awaitRequest(t)
		}},
		"a hung platform": {"run", bot + fmt.Sprintf(telegram, platform.URL), "none", func(*process) { platform.awaitRequest(t) }},
		"a hung program":  {"run", bot + desk + fmt.Sprintf(tools, script), "none", func(p *process) { p.until("running") }},
	} {
		t.Run(name, func(t *testing.T) {
			both := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT}
			for _, signals := range [][]syscall.Signal{both[:1], both[1:], both} {
				dir := t.TempDir()
				write(t, filepath.Join(dir, "config.toml"), c.config)
				env := []string{"SPIN=" + c.spin}
				if len(signals) == 1 {
					env = append(env, "GRACE=500ms")
				}
				p := begin(t, dir, env, c.command, "-c", "config.toml")
				c.before(p)
				p.signal(signals[0])
				for len(signals) == 2 && p.cmd.Process.Signal(signals[1]) == nil {
					time.Sleep(50 * time.Millisecond) // signals that come together are one
				}
				p.ends()
			}
		})
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
