package daemon

import (
	"net"
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
