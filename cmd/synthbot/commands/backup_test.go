package commands

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"synthbot/memory"
)

// TestBackupRefusesToOverwrite checks that a backup refuses to overwrite the database itself, and anything that
// is not a regular file, with and without a running daemon. It also checks a backup to standard output.
func TestBackupRefusesToOverwrite(t *testing.T) {
	d := startDaemon(t, atDesk)
	d.awaitNotice("READY=1")
	d.ask("hello there")
	own := filepath.Join(filepath.Dir(d.file), "data", memory.FileName)
	folder, link, pipe := t.TempDir(), filepath.Join(t.TempDir(), "hard.db"), filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(own, link); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(own)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(when string) {
		t.Helper()
		for file, want := range map[string]string{own: "the database itself", link: "the database itself", folder: "not a regular file", pipe: "not a regular file"} {
			if status, _, errs := d.command("", "backup", file); status != statusUsage || !strings.Contains(errs, want) {
				t.Errorf("%s, backup %s: got status %d, %q, want %q", when, file, status, errs, want)
			}
		}
		if after, err := os.Stat(own); err != nil || !os.SameFile(before, after) {
			t.Fatalf("%s: the database was replaced (%v)", when, err)
		}
		beside, err := filepath.Glob(filepath.Join(filepath.Dir(folder), "*.part"))
		if err != nil || len(beside) > 0 {
			t.Errorf("%s: files left behind: %v", when, beside)
		}
	}
	refused("with a running daemon")
	status, stream, errs := d.command("", "backup", "-")
	copied := filepath.Join(t.TempDir(), "copy.db")
	write(t, copied, stream)
	if err := memory.Restore(t.TempDir(), copied); status != 0 || err != nil {
		t.Errorf("backup - with a running daemon: status %d, %q, %v", status, errs, err)
	}
	d.end()
	refused("without a daemon")
}
