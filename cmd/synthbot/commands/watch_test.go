package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWatch: a saved configuration is read again without a signal, and so are a
// persona and a secret in folders that it did not name before.
func TestWatch(t *testing.T) {
	d := startDaemon(t, atDesk)
	d.tells("READY=1")
	file := filepath.Join(d.dir(), "cast", "new.toml")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, file, `name = "Berta"`)
	d.write(atDesk + "[persona]\npath = \"cast/new.toml\"\n")
	d.tells("RELOADING=1")
	d.tells("READY=1")
	d.answers("hello") // what follows the reload has been done by now
	write(t, file, `name = "Clara"`)
	d.tells("RELOADING=1")
	d.tells("READY=1")
	if reply := d.answers("who are you?"); !strings.Contains(reply, "Clara") {
		t.Errorf("it says %q", reply)
	}
	key := filepath.Join(d.dir(), "keys", "home")
	if err := os.Mkdir(filepath.Dir(key), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, key, "first")
	d.write(atDesk + "[persona]\npath = \"cast/new.toml\"\n[[engine]]\nprovider = \"offline\"\napi_key = \"file:keys/home\"\n")
	d.tells("RELOADING=1")
	d.tells("READY=1")
	d.answers("hello")
	write(t, key, "second")
	d.tells("RELOADING=1")
	d.tells("READY=1")
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
	if reply := d.answers("who are you?"); !strings.Contains(reply, "Clara") {
		t.Errorf("afterwards it says %q", reply)
	}
	d.end()
}
