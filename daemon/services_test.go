package daemon

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// TestNotifyDeadline checks that a service manager that does not read does not block the daemon.
func TestNotifyDeadline(t *testing.T) {
	name := t.TempDir() + "/notify"
	deaf, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	began := time.Now()
	for n := 0; notifyAt(name, "WATCHDOG=1") == nil; n++ {
		if n > 100_000 {
			t.Fatal("sends to a full socket still succeed")
		}
	}
	if took := time.Since(began); took > 2*time.Minute {
		t.Errorf("gave up after %s", took)
	}
}

// TestFileOfAnotherProcess checks that no way to read or write a file of another process blocks once its command has
// ended.
func TestFileOfAnotherProcess(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	limit := time.Now().Add(100 * time.Millisecond)
	if err := errors.Join(r.SetReadDeadline(limit), w.SetWriteDeadline(limit)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	from, to := &foreignFile{r, ctx}, &foreignFile{w, ctx}
	if _, err := io.Copy(io.Discard, from); err != nil {
		t.Errorf("Copy from it: got %v, want the end of the file", err)
	}
	text := strings.Repeat("x", 1<<20)
	if _, err := io.WriteString(to, text); !errors.Is(err, context.Canceled) {
		t.Errorf("WriteString: got %v, want %v", err, context.Canceled)
	}
	if _, err := io.Copy(to, strings.NewReader(text)); !errors.Is(err, context.Canceled) {
		t.Errorf("Copy to it: got %v, want %v", err, context.Canceled)
	}
}
