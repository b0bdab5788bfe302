package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
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
		d.status <- run(ctx, []string{"run", "-c", d.file}, in, out, io.Discard)
		out.Close()
	}()
	t.Cleanup(func() { d.told.Close(); w.Close() })
	return d
}

func (d *daemonUnderTest) write(config string) {
	d.t.Helper()
	if err := os.WriteFile(d.file, []byte(config), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// tells waits until the service manager is told something.
func (d *daemonUnderTest) tells(want string) {
	d.t.Helper()
	buf := make([]byte, 4096)
	if err := d.told.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
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

func TestDaemon(t *testing.T) {
	d := startDaemon(t, withTerminal)
	d.tells("READY=1")
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
	if reply := d.answers("who are you?"); !strings.Contains(reply, "Bo") {
		t.Errorf("with another persona it says %q", reply)
	}

	d.stop()
	d.tells("STOPPING=1")
	select {
	case status := <-d.status:
		if status != statusDone {
			t.Errorf("it ended with %d", status)
		}
	case <-time.After(10 * time.Second):
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
