package commands

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"synthbot/memory"
)

// TestDisplacedDatabase checks that no other database takes the place of one that was moved while the daemon uses it,
// and that the daemon notices.
func TestDisplacedDatabase(t *testing.T) {
	address := freeAddress(t)
	d := startDaemon(t, atDesk+"[metrics]\nlisten = \""+address+"\"\n")
	d.awaitNotice("READY=1")
	d.ask("hello there")
	backup := filepath.Join(t.TempDir(), "backup.db")
	if status, _, errs := d.command("", "backup", backup); status != statusDone {
		t.Fatalf("backup: %d, %q", status, errs)
	}
	own := filepath.Join(d.dir(), "data", memory.FileName)
	if err := os.Rename(own, own+".old"); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][]string{{"restore", backup}, {"restore", "--salvage", backup}, {"run"}} {
		status, _, errs := d.command("", c...)
		if status != statusFailed || !strings.Contains(errs, "another synthbot") {
			t.Errorf("%v: got status %d, %q", c, status, errs)
		}
	}
	if _, err := os.Lstat(own); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is another database: %v", err)
	}
	ready := func() int {
		t.Helper()
		r, err := http.Get("http://" + address + "/readyz")
		if err := errors.Join(err, r.Body.Close()); err != nil {
			t.Fatal(err)
		}
		return r.StatusCode
	}
	if status := ready(); status != http.StatusServiceUnavailable {
		t.Errorf("/readyz while the database is elsewhere: %d", status)
	}
	d.awaitNotice("replaced my database file")
	if err := os.Rename(own+".old", own); err != nil {
		t.Fatal(err)
	}
	if status := ready(); status != http.StatusOK {
		t.Errorf("/readyz when it is back: %d", status)
	}
	d.end()
}
