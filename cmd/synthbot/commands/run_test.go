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
	"strings"
	"syscall"
	"testing"
	"time"

	"synthbot/core/coretest"
)

// daemonUnderTest runs the daemon in this process, with a terminal of pipes and
// a service manager that listens.
type daemonUnderTest struct {
	t      *testing.T
	file   string
	in     *io.PipeWriter
	out    *bufio.Reader
	told   *net.UnixConn
	stop   context.CancelFunc
	status chan int
	errs   journal // its log
}

func startDaemon(t *testing.T, config string) *daemonUnderTest {
	t.Helper()
	dir := t.TempDir()
	d := &daemonUnderTest{t: t, file: filepath.Join(dir, "config.toml"), status: make(chan int, 1)}
	d.write(config)
	socket := filepath.Join(dir, "notify")
	var err error
	if d.told, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
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
	t.Cleanup(func() { d.told.Close(); w.Close() })
	return d
}

// dir is where its configuration lies.
func (d *daemonUnderTest) dir() string { return filepath.Dir(d.file) }

func (d *daemonUnderTest) write(config string) {
	d.t.Helper()
	if err := os.WriteFile(d.file, []byte(config), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// tells waits until the service manager gets a message.
func (d *daemonUnderTest) tells(want string) {
	d.t.Helper()
	buf := make([]byte, 4096)
	if err := d.told.SetReadDeadline(time.Now().Add(coretest.Patience)); err != nil {
		d.t.Fatal(err)
	}
	for {
		n, err := d.told.Read(buf)
		if err != nil {
			d.t.Fatalf("waiting for %s: %v", want, err)
		}
		if strings.Contains(string(buf[:n]), want) {
			return
		}
	}
}

// answers says a line and returns the reply.
func (d *daemonUnderTest) answers(line string) string {
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

// freeAddress is one of this machine that nobody listens at.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// fetch gets a page of the daemon; it may take a moment to listen.
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
	d.tells("READY=1")
	d.answers("hello")
	d.answers("hello again") // the first turn is over by now
	if body := fetch(t, "http://"+address+"/healthz"); body != "ok\n" {
		t.Errorf("healthz says %q", body)
	}
	if body := fetch(t, "http://"+address+"/metrics"); !strings.Contains(body, `synthbot_turns_total{outcome="answered"}`) {
		t.Errorf("metrics: %s", body)
	}
	d.stop()
	if status := <-d.status; status != statusDone {
		t.Errorf("it ended with %d", status)
	}
}

// TestToolsOfTheDaemon: other programs call actions of the running daemon, and it still ends.
func TestToolsOfTheDaemon(t *testing.T) {
	address := freeAddress(t)
	d := startDaemon(t, withTerminal+"[plugins.games]\n[plugins.blueprint.serve]\nlisten = \""+address+"\"\ntoken = \"a token of sufficient length\"\n"+
		"as = \"console/@user/jay\"\nplace = \"console/main\"\nactions = [\"dice_*\"]\n")
	d.tells("READY=1")
	d.answers("hello")
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
			t.Errorf("%q: %d", token, resp.StatusCode)
		}
	}
	d.stop()
	if status := <-d.status; status != statusDone {
		t.Errorf("it ended with %d", status)
	}
}

// TestFailedCallsAreCounted: calls that failed show in the metrics, by engine, also
// though the built-in engine answers then.
func TestFailedCallsAreCounted(t *testing.T) {
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"message":"out of memory"}}`, http.StatusInternalServerError)
	}))
	defer broken.Close()
	address := freeAddress(t)
	d := startDaemon(t, "[bot]\ndata_dir = \"data\"\nadmins = [\"console/@user/you\"]\n[interfaces.console]\nenabled = true\nuser = \"you\"\n[metrics]\nlisten = \""+address+"\"\n[[engine]]\nname = \"lab\"\nprovider = \"vllm\"\nmodel = \"m\"\nbase_url = \""+broken.URL+"\"\n")
	d.tells("READY=1")
	failed := `synthbot_model_errors_total{engine="lab",kind="retry_later"} `
	if body := fetch(t, "http://"+address+"/metrics"); !strings.Contains(body, failed+"0") {
		t.Errorf("before the first call: %s", body)
	}
	d.answers("hello")
	said := d.answers("/status")
	for !strings.Contains(said, "places that wait") {
		line, err := d.out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		said += line
	}
	if !strings.Contains(said, "engine lab failed last 1s ago: it cannot be reached, or is busy\n") {
		t.Errorf("the first failure is not in the state: %s", said)
	}
	if body := fetch(t, "http://"+address+"/metrics"); !strings.Contains(body, failed) || strings.Contains(body, failed+"0") {
		t.Errorf("after a call that failed: %s", body)
	}
	d.stop()
	if status := <-d.status; status != statusDone {
		t.Errorf("it ended with %d", status)
	}
}

func TestDaemon(t *testing.T) {
	d := startDaemon(t, withTerminal)
	d.tells("READY=1")
	d.tells("STATUS=running on console with offline")
	if reply := d.answers("who are you?"); !strings.Contains(reply, "Aria") {
		t.Errorf("it says %q", reply)
	}
	d.tells("WATCHDOG=1")

	// A broken file leaves the old life running.
	d.write("[bot\n")
	d.hangUp()
	if reply := d.answers("who are you?"); !strings.Contains(reply, "Aria") {
		t.Errorf("after a broken file it says %q", reply)
	}

	// A good one changes what differs, and the terminal goes on.
	persona := filepath.Join(filepath.Dir(d.file), "bo.toml")
	if err := os.WriteFile(persona, []byte("name = \"Bo\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.write(withTerminal + "[persona]\npath = \"bo.toml\"\n")
	d.hangUp()
	until(t, func() bool { // what has just been read may be the broken file, since the daemon watches it, too
		return strings.Contains(d.answers("who are you?"), "Bo")
	})

	d.stop()
	d.tells("STOPPING=1")
	select {
	case status := <-d.status:
		if status != statusDone {
			t.Errorf("it ended with %d", status)
		}
	case <-time.After(coretest.Patience):
		t.Fatal("it does not end")
	}
}

// hangUp sends SIGHUP and waits until the reload is over.
func (d *daemonUnderTest) hangUp() {
	d.t.Helper()
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		d.t.Fatal(err)
	}
	d.tells("RELOADING=1")
	d.tells("READY=1")
}

// TestNotReadyWithoutPlatform: the bot is alive, and not ready, while a platform does
// not answer.
func TestNotReadyWithoutPlatform(t *testing.T) {
	asked := make(chan struct{}, 1)
	platform := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the end of the connection is noticed
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
	d.tells("READY=1")
	<-asked
	if body := fetch(t, "http://"+address+"/healthz"); body != "ok\n" {
		t.Errorf("healthz says %q", body)
	}
	r, err := http.Get("http://" + address + "/readyz")
	if err != nil || r.Body.Close() != nil || r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("readyz: %v, %v", r.StatusCode, err)
	}
	d.stop()
	<-d.status
}
