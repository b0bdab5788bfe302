package commands

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestWatch checks that a saved configuration is reloaded without a signal, and so are a persona and a secret
// in folders that the configuration did not name before.
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
	d.ask("hello") // the new files are watched by then
	write(t, file, `name = "Clara"`)
	d.awaitNotice("RELOADING=1")
	d.awaitNotice("READY=1")
	if reply := d.ask("who are you?"); !strings.Contains(reply, "Clara") {
		t.Errorf("got %q, want Clara", reply)
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
	// An invalid file changes nothing, and the log says which configuration stays in force.
	d.errs.take()
	d.write(atDesk + "[persona]\nname = \"Dora\"\n")
	var log string
	until(t, func() bool {
		log += d.errs.take()
		return strings.Contains(log, "The configuration was refused, the one of 2")
	})
	if !strings.Contains(log, "stays in force: ") || !strings.Contains(log, "persona.name") || !strings.Contains(log, `"since":"2`) {
		t.Errorf("log: got %s", log)
	}
	if reply := d.ask("who are you?"); !strings.Contains(reply, "Clara") {
		t.Errorf("after an invalid file: got %q, want Clara", reply)
	}
	d.end()
}

// TestWatchNoticesReplacements checks that a file is reloaded after another file with the same size and time
// has replaced it.
func TestWatchNoticesReplacements(t *testing.T) {
	d := startDaemon(t, atDesk)
	d.awaitNotice("READY=1")
	file := filepath.Join(d.dir(), "bo.toml")
	write(t, file, `name = "Berta"`)
	d.write(atDesk + "[persona]\npath = \"bo.toml\"\n")
	d.awaitNotice("RELOADING=1")
	d.awaitNotice("READY=1")
	d.ask("hello") // the new files are watched by then
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
		t.Errorf("got %q, want Clara", reply)
	}
	d.end()
}

// TestWatchTriesRefusedAgain checks that an invalid configuration is tried again when a file that it names
// changes.
func TestWatchTriesRefusedAgain(t *testing.T) {
	d := startDaemon(t, atDesk)
	d.awaitNotice("READY=1")
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

// TestWatchReadsOnce checks that a requested reload is not followed by another one for the same change.
func TestWatchReadsOnce(t *testing.T) {
	d := startDaemon(t, atDesk)
	d.awaitNotice("READY=1")
	for _, history := range []string{"7", "0"} { // 0 is invalid
		until(t, func() bool {
			began := time.Now()
			d.write(atDesk + "[prompt]\nhistory = " + history + "\n")
			d.hangUp()
			// Later, the change may have been noticed before the request.
			requested := time.Since(began) < 500*time.Millisecond
			again := d.notifiedWithin("RELOADING=1", 2*time.Second)
			if requested && again {
				t.Errorf("history = %s was loaded twice", history)
			}
			return requested
		})
	}
	d.end()
}
