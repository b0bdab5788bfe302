package commands

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestWatch: a saved configuration is read again without a signal, and so are a
// persona and a secret in folders that it did not name before.
func TestWatch(t *testing.T) {
	d := startDaemon(t, atDesk)
	d.awaitNotice("READY=1")
	file := filepath.Join(d.dir(), "cast", "new.toml")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, file, `name = "Berta"`)
	d.write(atDesk + "[persona]\npath = \"cast/new.toml\"\n")
	d.awaitNotice("RELOADING=1")
	d.awaitNotice("READY=1")
	d.ask("hello") // what follows the reload has been done by now
	write(t, file, `name = "Clara"`)
	d.awaitNotice("RELOADING=1")
	d.awaitNotice("READY=1")
	if reply := d.ask("who are you?"); !strings.Contains(reply, "Clara") {
		t.Errorf("it says %q", reply)
	}
	key := filepath.Join(d.dir(), "keys", "home")
	if err := os.Mkdir(filepath.Dir(key), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, key, "first")
	d.write(atDesk + "[persona]\npath = \"cast/new.toml\"\n[[engine]]\nprovider = \"offline\"\napi_key = \"file:keys/home\"\n")
	d.awaitNotice("RELOADING=1")
	d.awaitNotice("READY=1")
	d.ask("hello")
	write(t, key, "second")
	d.awaitNotice("RELOADING=1")
	d.awaitNotice("READY=1")
	// A file that is refused changes nothing, and what stays in force is named.
	d.errs.take()
	d.write(atDesk + "[persona]\nname = \"Dora\"\n")
	var log string
	until(t, func() bool {
		log += d.errs.take()
		return strings.Contains(log, "The configuration was refused, the one of 2")
	})
	if !strings.Contains(log, "stays in force: ") || !strings.Contains(log, "persona.name") || !strings.Contains(log, `"since":"2`) {
		t.Errorf("it logs %s", log)
	}
	if reply := d.ask("who are you?"); !strings.Contains(reply, "Clara") {
		t.Errorf("afterwards it says %q", reply)
	}
	d.end()
}

// TestWatchNoticesReplacements: a file of equal size and time that takes the place of another one is read.
func TestWatchNoticesReplacements(t *testing.T) {
	d := startDaemon(t, atDesk)
	d.awaitNotice("READY=1")
	file := filepath.Join(d.dir(), "bo.toml")
	write(t, file, `name = "Berta"`)
	d.write(atDesk + "[persona]\npath = \"bo.toml\"\n")
	d.awaitNotice("RELOADING=1")
	d.awaitNotice("READY=1")
	d.ask("hello") // what follows the reload has been done by now
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file+".new", `name = "Clara"`)
	err = errors.Join(os.Chtimes(file+".new", info.ModTime(), info.ModTime()), os.Rename(file+".new", file))
	if err != nil {
		t.Fatal(err)
	}
	d.awaitNotice("RELOADING=1")
	d.awaitNotice("READY=1")
	if reply := d.ask("who are you?"); !strings.Contains(reply, "Clara") {
		t.Errorf("it says %q", reply)
	}
	d.end()
}

// TestWatchTriesRefusedAgain: a refused configuration is read again when a file that it names is put right.
func TestWatchTriesRefusedAgain(t *testing.T) {
	d := startDaemon(t, atDesk)
	d.awaitNotice("READY=1")
	if err := d.told.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, d.told) // so that reloads need not wait for the service manager
	engine := "[[engine]]\nprovider = \"offline\"\napi_key = \"file:key\"\n"
	d.write(atDesk + "[persona]\npath = \"bo.toml\"\n" + engine)
	refused := func(why string) {
		t.Helper()
		log := ""
		until(t, func() bool {
			log += d.errs.take()
			_, cause, _ := strings.Cut(log, "configuration refused, the former one stays in force")
			return strings.Contains(cause, why)
		})
	}
	refused("bo.toml")
	write(t, filepath.Join(d.dir(), "key"), "")
	refused("is empty")
	write(t, filepath.Join(d.dir(), "key"), "secret")
	refused("bo.toml")
	write(t, filepath.Join(d.dir(), "bo.toml"), `name = `)
	refused("bo.toml")
	write(t, filepath.Join(d.dir(), "bo.toml"), `name = "Berta"`)
	until(t, func() bool { return strings.Contains(d.ask("who are you?"), "Berta") })
	d.end()
}

// TestWatchReadsOnce: what a reload by request has read does not cause another one.
func TestWatchReadsOnce(t *testing.T) {
	d := startDaemon(t, atDesk)
	d.awaitNotice("READY=1")
	for _, history := range []string{"7", "0"} { // the second one is refused
		d.write(atDesk + "[prompt]\nhistory = " + history + "\n")
		d.hangUp()
		if d.notifiedWithin("RELOADING=1", 2*time.Second) {
			t.Errorf("history = %s is read twice", history)
		}
	}
	d.end()
}

// hears reports whether the service manager gets a message within a time.
func (d *daemonUnderTest) notifiedWithin(want string, within time.Duration) bool {
	d.t.Helper()
	if err := d.told.SetReadDeadline(time.Now().Add(within)); err != nil {
		d.t.Fatal(err)
	}
	buf := make([]byte, 4096)
	for {
		n, err := d.told.Read(buf)
		if err != nil {
			return false
		}
		if strings.Contains(string(buf[:n]), want) {
			return true
		}
	}
}
