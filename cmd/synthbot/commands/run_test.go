package commands

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"synthbot/core/coretest"
)

// daemonUnderTest runs the daemon in this process, with pipes as its terminal and a service manager that
// listens.
type daemonUnderTest struct {
	t       *testing.T
	file    string
	in      *io.PipeWriter
	out     *bufio.Reader
	manager *net.UnixConn // the service manager's socket
	notices chan string   // what the service manager got
	stop    context.CancelFunc
	status  chan int
	errs    journal // the log
}

func startDaemon(t *testing.T, config string) *daemonUnderTest {
	t.Helper()
	dir := t.TempDir()
	d := &daemonUnderTest{t: t, file: filepath.Join(dir, "config.toml"), status: make(chan int, 1)}
	d.write(config)
	socket := filepath.Join(dir, "notify")
	var err error
	if d.manager, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	d.notices = make(chan string, 100_000)
	var reader sync.WaitGroup
	reader.Go(d.readNotices)
	t.Setenv("NOTIFY_SOCKET", socket)
	t.Setenv("WATCHDOG_USEC", "300000")
	in, w := io.Pipe()
	r, out := io.Pipe()
	d.in, d.out = w, bufio.NewReader(r)
	ctx, stop := context.WithCancel(t.Context())
	d.stop = stop
	go func() {
		d.status <- run(ctx, []string{"run", "-c", d.file}, in, out, &d.errs)
		out.Close()
	}()
	t.Cleanup(func() { d.manager.Close(); w.Close(); reader.Wait() })
	return d
}

// readNotices reads what the daemon reports, as a service manager does all the time: the daemon waits a second for
// each message that nobody reads, and logs it.
func (d *daemonUnderTest) readNotices() {
	buf := make([]byte, 4096)
	for {
		n, err := d.manager.Read(buf)
		if err != nil {
			return
		}
		d.notices <- string(buf[:n])
	}
}

// dir returns the folder of the configuration.
func (d *daemonUnderTest) dir() string { return filepath.Dir(d.file) }

func (d *daemonUnderTest) write(config string) {
	d.t.Helper()
	if err := os.WriteFile(d.file, []byte(config), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// awaitNotice waits until the service manager gets a message.
func (d *daemonUnderTest) awaitNotice(want string) {
	d.t.Helper()
	if !d.notifiedWithin(want, coretest.Patience) {
		d.t.Fatalf("the service manager did not get %s; the log is: %s", want, d.errs.String())
	}
}

// notifiedWithin reports whether the service manager gets a message within a time.
func (d *daemonUnderTest) notifiedWithin(want string, within time.Duration) bool {
	late := time.After(within)
	for {
		select {
		case notice := <-d.notices:
			if strings.Contains(notice, want) {
				return true
			}
		case <-late:
			return false
		}
	}
}

// ask types a line and returns the reply.
func (d *daemonUnderTest) ask(line string) string {
	d.t.Helper()
	if _, err := io.WriteString(d.in, line+"\n"); err != nil {
		d.t.Fatal(err)
	}
	reply, err := d.out.ReadString('\n')
	if err != nil {
		d.t.Fatal(err)
	}
	return reply
}

const withTerminal = "[bot]\ndata_dir = \"data\"\n[interfaces.console]\nenabled = true\n"

// freeAddress returns a local address that is not in use.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// fetch gets a page of the daemon, as soon as it listens.
func fetch(t *testing.T, url string) string {
	t.Helper()
	var r *http.Response
	until(t, func() bool {
		var err error
		r, err = http.Get(url)
		return err == nil
	})
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v", url, r.StatusCode, err)
	}
	return string(body)
}

func TestMetricsOfTheDaemon(t *testing.T) {
	address := freeAddress(t)
	d := startDaemon(t, withTerminal+"[metrics]\nlisten = \""+address+"\"\n")
	d.awaitNotice("READY=1")
	d.ask("hello")
	d.ask("hello again") // the first turn has ended
	if body := fetch(t, "http://"+address+"/healthz"); body != "ok\n" {
		t.Errorf("/healthz: got %q", body)
	}
	if body := fetch(t, "http://"+address+"/metrics"); !strings.Contains(body, `synthbot_turns_total{outcome="answered"}`) {
		t.Errorf("metrics: %s", body)
	}
	d.end()
}

// TestToolsOfTheDaemon checks that other programs can call actions of the running daemon, and that the daemon
// still ends.
func TestToolsOfTheDaemon(t *testing.T) {
	address := freeAddress(t)
	d := startDaemon(t, withTerminal+"[plugins.games]\n[plugins.blueprint.serve]\nlisten = \""+address+"\"\ntoken = \"a token of sufficient length\"\n"+
		"as = \"console/@user/jay\"\nplace = \"console/main\"\nactions = [\"dice_*\"]\n")
	d.awaitNotice("READY=1")
	d.ask("hello")
	for token, want := range map[string]int{"a token of sufficient length": http.StatusOK, "another": http.StatusUnauthorized} {
		r, err := http.NewRequest("POST", "http://"+address+"/tools/dice_roll", strings.NewReader(`{"dice":"3d6"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != want {
			t.Errorf("token %q: got status %d, want %d", token, resp.StatusCode, want)
		}
	}
	d.end()
}

// TestFailedCallsAreCounted checks that the metrics and /status count failed calls by engine, although the
// built-in engine then answers.
func TestFailedCallsAreCounted(t *testing.T) {
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"message":"out of memory"}}`, http.StatusInternalServerError)
	}))
	defer broken.Close()
	address := freeAddress(t)
	d := startDaemon(t, "[bot]\ndata_dir = \"data\"\nadmins = [\"console/@user/you\"]\n[interfaces.console]\nenabled = true\nuser = \"you\"\n[metrics]\nlisten = \""+address+"\"\n[[engine]]\nname = \"lab\"\nprovider = \"vllm\"\nmodel = \"m\"\nbase_url = \""+broken.URL+"\"\n")
	d.awaitNotice("READY=1")
	failed := `synthbot_model_errors_total{engine="lab",kind="retry_later"} `
	if body := fetch(t, "http://"+address+"/metrics"); !strings.Contains(body, failed+"0") {
		t.Errorf("metrics before the first call: %s", body)
	}
	d.ask("hello")
	said := d.ask("/status")
	for !strings.Contains(said, "places that wait") {
		line, err := d.out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		said += line
	}
	if !regexp.MustCompile(`engine lab failed last \S+ ago: it cannot be reached, or is busy\n`).MatchString(said) {
		t.Errorf("/status lacks the first failure: %s", said)
	}
	if body := fetch(t, "http://"+address+"/metrics"); !strings.Contains(body, failed) || strings.Contains(body, failed+"0") {
		t.Errorf("metrics after a failed call: %s", body)
	}
	d.end()
}

func TestDaemon(t *testing.T) {
	d := startDaemon(t, withTerminal)
	d.awaitNotice("READY=1")
	d.awaitNotice("STATUS=running on console with offline")
	if reply := d.ask("who are you?"); !strings.Contains(reply, "Aria") {
		t.Errorf("got %q, want Aria's name", reply)
	}
	d.awaitNotice("WATCHDOG=1")

	// A broken file changes nothing.
	d.write("[bot\n")
	d.hangUp()
	if reply := d.ask("who are you?"); !strings.Contains(reply, "Aria") {
		t.Errorf("after a broken file: got %q, want Aria's name", reply)
	}

	// A good file applies its changes, and the terminal stays connected.
	persona := filepath.Join(filepath.Dir(d.file), "bo.toml")
	if err := os.WriteFile(persona, []byte("name = \"Bo\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.write(withTerminal + "[persona]\npath = \"bo.toml\"\n")
	d.hangUp()
	until(t, func() bool { // the reload may be that of the broken file, which the daemon also watches
		return strings.Contains(d.ask("who are you?"), "Bo")
	})

	d.stop()
	d.awaitNotice("STOPPING=1")
	select {
	case status := <-d.status:
		if status != statusDone {
			t.Errorf("exit status %d", status)
		}
	case <-time.After(coretest.Patience):
		t.Fatal("the daemon does not end")
	}
}

// hangUp sends SIGHUP and waits until the reload has ended.
func (d *daemonUnderTest) hangUp() {
	d.t.Helper()
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		d.t.Fatal(err)
	}
	d.awaitNotice("RELOADING=1")
	d.awaitNotice("READY=1")
}

// TestNotReadyWithoutPlatform checks that the bot reports itself as alive but not ready while a platform does
// not respond.
func TestNotReadyWithoutPlatform(t *testing.T) {
	asked := make(chan struct{}, 1)
	platform := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server notices a closed connection only after it read the body
		select {
		case asked <- struct{}{}:
		default:
		}
		<-r.Context().Done()
	}))
	defer platform.Close()
	address := freeAddress(t)
	d := startDaemon(t, fmt.Sprintf(
		"[bot]\ndata_dir = \"data\"\n[interfaces.telegram]\ntoken = \"1:a\"\napi_url = %q\n[metrics]\nlisten = %q\n", platform.URL, address))
	d.awaitNotice("READY=1")
	<-asked
	if body := fetch(t, "http://"+address+"/healthz"); body != "ok\n" {
		t.Errorf("/healthz: got %q", body)
	}
	r, err := http.Get("http://" + address + "/readyz")
	if err != nil || r.Body.Close() != nil || r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("/readyz: %v, %v", r.StatusCode, err)
	}
	d.end()
}
