package admin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// serveControl starts a control socket in a directory.
func serveControl(t *testing.T, dir string, carry Executor) {
	t.Helper()
	serveControlWithLog(t, dir, carry, slog.New(slog.DiscardHandler))
}

func serveControlWithLog(t *testing.T, dir string, carry Executor, log *slog.Logger) {
	t.Helper()
	s, err := ListenControl(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { s.Serve(ctx, log, carry); close(over) }()
	t.Cleanup(func() {
		stop()
		<-over
	})
}

func dial(t *testing.T, dir string) *Control {
	t.Helper()
	c, ok := DialControl(dir)
	if !ok {
		t.Fatal("no daemon listens")
	}
	return c
}

func TestControl(t *testing.T) {
	for name, dir := range map[string]string{"short": t.TempDir(), "long": filepath.Join(t.TempDir(), strings.Repeat("long", 40))} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		serveControl(t, dir, func(_ context.Context, a Request, in, out, errs *os.File) int {
			line, err := bufio.NewReader(in).ReadString('\n')
			fmt.Fprintf(out, "%v %s %s", a.Args, a.Env["TERM"], line)
			fmt.Fprintf(errs, "%v", err)
			return 3
		})
		c := dial(t, dir)
		in, typed := pipe(t)
		shown, out := pipe(t)
		fmt.Fprintln(typed, "typed")
		status, err := c.Run(t.Context(), Request{Args: []string{"history", "x"}, Env: map[string]string{"TERM": "vt"}}, in, out, out)
		out.Close()
		text, _ := io.ReadAll(shown)
		if status != 3 || err != nil || string(text) != "[history x] vt typed\n<nil>" {
			t.Errorf("%s: status %d, %v, %q", name, status, err, text)
		}
		if info, err := os.Stat(filepath.Join(dir, SocketName)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got %v, %v", name, info, err)
		}
	}
}

// TestUnused checks that a client that closes its connection without a command causes no warning.
func TestUnused(t *testing.T) {
	var log bytes.Buffer
	dir, done := t.TempDir(), make(chan struct{})
	t.Run("served", func(t *testing.T) {
		carry := func(context.Context, Request, *os.File, *os.File, *os.File) int { close(done); return 0 }
		serveControlWithLog(t, dir, carry, slog.New(slog.NewTextHandler(&log, nil)))
		if err := dial(t, dir).Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := dial(t, dir).Run(t.Context(), Request{Args: []string{"x"}}, os.Stdin, os.Stdout, os.Stderr); err != nil {
			t.Fatal(err)
		}
		<-done
	})
	if log.Len() > 0 { // all connections have ended
		t.Errorf("log: got %s", log.String())
	}
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// TestControlClientLeaves checks that a command is cancelled when its client leaves.
func TestControlClientLeaves(t *testing.T) {
	dir, begun, ended := t.TempDir(), make(chan struct{}), make(chan struct{})
	serveControl(t, dir, func(ctx context.Context, _ Request, _, _, _ *os.File) int {
		close(begun)
		<-ctx.Done()
		close(ended)
		return 0
	})
	ctx, leave := context.WithCancel(t.Context())
	r, w := pipe(t)
	gone := make(chan error, 1)
	c := dial(t, dir)
	go func() {
		_, err := c.Run(ctx, Request{}, r, w, w)
		gone <- err
	}()
	<-begun
	leave()
	if err := <-gone; err == nil {
		t.Error("a cancelled command succeeded")
	}
	<-ended
}

// TestControlForeigners checks that an invalid command is dropped and the next one is served.
func TestControlForeigners(t *testing.T) {
	dir := t.TempDir()
	serveControl(t, dir, func(context.Context, Request, *os.File, *os.File, *os.File) int { return 7 })
	dial(t, dir).Close()
	for _, text := range []string{"", "x", "\x00\x00\x00\x02{}", "\xff\xff\xff\xff", "GET / HTTP/1.1\r\n\r\n"} {
		c, err := net.Dial("unix", filepath.Join(dir, SocketName))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, text)
		if text != "" {
			if n, _ := c.Read(make([]byte, 1)); n > 0 {
				t.Errorf("the invalid command %q was answered", text)
			}
		}
		c.Close()
	}
	r, w := pipe(t)
	if status, err := dial(t, dir).Run(t.Context(), Request{}, r, w, w); status != 7 || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
}

// TestControlBodies checks that a command is executed only if exactly its JSON arrives, and is then not cancelled.
func TestControlBodies(t *testing.T) {
	dir := t.TempDir()
	serveControl(t, dir, func(ctx context.Context, _ Request, _, _, _ *os.File) int {
		select {
		case <-ctx.Done():
			return 1
		case <-time.After(50 * time.Millisecond):
			return 7
		}
	})
	r, w := pipe(t)
	rights := syscall.UnixRights(int(r.Fd()), int(w.Fd()), int(w.Fd()))
	for name, tc := range map[string]struct {
		size uint32
		body string
		want string
	}{
		"exact":              {2, "{}", "\x07"},
		"with white space":   {8000, "{}" + strings.Repeat(" ", 7998), "\x07"},
		"empty":              {0, "", ""},
		"invalid":            {5, "{} {}", ""},
		"cut off":            {20, "{}", ""},
		"larger than said":   {1, "{}", ""},
		"over the limit":     {maxRequest + 1, "{}" + strings.Repeat(" ", maxRequest-1), ""},
		"far over the limit": {math.MaxUint32, "{}", ""},
	} {
		c := dial(t, dir).conn
		head := binary.BigEndian.AppendUint32(nil, tc.size)
		if _, _, err := c.WriteMsgUnix(head, rights, nil); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, tc.body) // fails if the daemon does not read it
		if tc.want == "" {
			_ = c.CloseWrite()
		}
		got, _ := io.ReadAll(c)
		if string(got) != tc.want {
			t.Errorf("%s: the answer is %q, want %q", name, got, tc.want)
		}
		c.Close()
	}
}

func TestControlNobody(t *testing.T) {
	if _, ok := DialControl(t.TempDir()); ok {
		t.Error("Dial found a daemon")
	}
}

// TestControlPanic checks that a panic in a command ends only this command.
func TestControlPanic(t *testing.T) {
	dir := t.TempDir()
	serveControl(t, dir, func(_ context.Context, a Request, _, _, _ *os.File) int {
		if len(a.Args) > 0 {
			panic("of a command")
		}
		return 7
	})
	r, w := pipe(t)
	if _, err := dial(t, dir).Run(t.Context(), Request{Args: []string{"x"}}, r, w, w); err == nil {
		t.Error("a command that panicked succeeded")
	}
	if status, err := dial(t, dir).Run(t.Context(), Request{}, r, w, w); status != 7 || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
}

// TestControlOutlivesErrors checks that the socket continues after failed accepts, and ends with its context.
func TestControlOutlivesErrors(t *testing.T) {
	s, err := ListenControl(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.listener.SetDeadline(time.Unix(1, 0)); err != nil { // every accept fails
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var warnings strings.Builder
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { s.Serve(ctx, slog.New(slog.NewTextHandler(&warnings, nil)), nil); close(over) }()
		time.Sleep(3*acceptPause + acceptPause/2)
		stop()
		<-over
		if n := strings.Count(warnings.String(), "a connection was not accepted"); n != 4 {
			t.Errorf("%d accepts failed, want 4", n)
		}
	})
}
