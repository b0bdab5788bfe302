package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pipedConfig returns the name of a pipe with a configuration, as a shell makes it for <(…).
func pipedConfig(t *testing.T, text string) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	if _, err := w.WriteString(text); err != nil {
		t.Fatal(err)
	}
	w.Close()
	return fmt.Sprintf("/dev/fd/%d", r.Fd())
}

// TestConfigurationFromPipe checks that commands never work on the default database instead of the one that a
// configuration from a pipe names.
func TestConfigurationFromPipe(t *testing.T) {
	emptyMachine(t)
	if status, _, errs := runLine(t, "hello\n", "chat"); status != statusDone {
		t.Fatal(status, errs)
	}
	mine := fmt.Sprintf("[bot]\ndata_dir = %q\n", filepath.Join(t.TempDir(), "mine"))
	for _, line := range []string{"memory forget --all", "history", "usage", "memory export", "prompt --path console/main --text hi", "pair"} {
		status, out, errs := runLine(t, "", append(strings.Fields(line), "-c", pipedConfig(t, mine+"nonsense = 1\n"))...)
		if status != statusUsage || out != "" || !strings.Contains(errs, "nonsense") {
			t.Errorf("%s with an invalid configuration: %d, %q, %q", line, status, out, errs)
		}
	}
	for _, line := range []string{"history", "history console/main", "memory forget --all", "memory export"} {
		_, out, errs := runLine(t, "", append(strings.Fields(line), "-c", pipedConfig(t, mine))...)
		if strings.Contains(out+errs, "erased") || strings.Contains(out, "console/main") || strings.Contains(out, "hello") {
			t.Errorf("%s printed the default database: %q, %q", line, out, errs)
		}
	}
	if _, out, _ := runLine(t, "", "history", "console/main"); !strings.Contains(out, "hello") {
		t.Errorf("the default database: %q", out)
	}
}

// TestUnknownDataDirectory checks that commands do not reach the daemon of the default data directory with a file
// that may name another one.
func TestUnknownDataDirectory(t *testing.T) {
	emptyMachine(t)
	d := startDaemon(t, "[interfaces.desk]\ntype = \"console\"\n")
	d.awaitNotice("READY=1")
	d.ask("hello")
	for _, text := range []string{"[bot\ndata_dir = \"mine\"\n", "[bot]\ndata_dir = 5\n", "bot = 5\n"} {
		write(t, "other.toml", text)
		for _, line := range []string{"memory forget --all", "history", "reload"} {
			status, out, errs := runLine(t, "", append(strings.Fields(line), "-c", "other.toml")...)
			if status != statusUsage || out != "" || !strings.Contains(errs, "other.toml") {
				t.Errorf("%s with %q: %d, %q, %q", line, text, status, out, errs)
			}
		}
	}
	d.write("[interfaces.desk]\ntype = \"console\"\n[prompt]\nhistory = 0\n")
	if status, out, errs := d.command("", "history", "desk/main"); status != 0 || !strings.Contains(out, "hello") {
		t.Errorf("with a file that names no data directory: %d, %q, %q", status, out, errs)
	}
	d.end()
}

// TestReloadFromPipe checks that a reload refuses a pipe, which is empty when it is read again.
func TestReloadFromPipe(t *testing.T) {
	d := startDaemon(t, atDesk)
	d.awaitNotice("READY=1")
	if err := os.Rename(d.file, d.file+".old"); err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(d.dir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(pipedConfig(t, ""), d.file); err != nil {
		t.Fatal(err)
	}
	status, out, errs := runLine(t, "", "reload", "-c", filepath.Join(dir, "config.toml.old"))
	if status != statusUsage || out != "" || !strings.Contains(errs, "cannot be read again") {
		t.Errorf("reload: %d, %q, %q", status, out, errs)
	}
	d.end()
}
