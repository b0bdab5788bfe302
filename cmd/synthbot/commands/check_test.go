package commands

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"synthbot/daemon"
	"synthbot/memory"
)

// TestCheckReportsChanges checks that `check` compares blueprints with those that the bot used last: before a
// database exists, while the daemon runs and afterwards. It changes nothing.
func TestCheckReportsChanges(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tea.json")
	blueprint := func(version, describes, rest string) {
		text := `{"name":"tea","version":"` + version + `","description":"Tea.","endpoint":"https://tea.example.org","capabilities":{"tools":[` +
			`{"name":"brew","description":"` + describes + `","inputSchema":{"type":"object","properties":{"cups":{"type":"integer"}}` + rest + `}}]}}`
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := atDesk + "[[plugins.blueprint.source]]\npath = \"" + file + "\"\n"
	fresh := daemonUnderTest{t: t, file: filepath.Join(t.TempDir(), "config.toml")}
	fresh.write(config)
	blueprint("one", "Brew tea.", "")
	status, out, errs := fresh.command("", "check")
	if status != 0 || errs != "" || strings.Count(out, "blueprint  ") != 1 || !strings.Contains(out, `!   blueprint      `+file+`: version: "one" is not a semantic version`) {
		t.Errorf("without a database: status  %d, %q, %q", status, out, errs)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(fresh.file), "data")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("check created a database: %v", err)
	}

	blueprint("1.0.0", "Brew tea.", "")
	d := startDaemon(t, config)
	d.awaitNotice("READY=1")
	until(t, func() bool { // the daemon has stored the blueprint that it uses
		blueprint("1.0.0", "Brew tea.", "")
		_, out, _ = d.command("", "check")
		unchanged := !strings.Contains(out, "blueprint  ")
		blueprint("2.0.0", "Make tea.", `,"required":["cups"]`)
		_, out, _ = d.command("", "check")
		return unchanged && strings.Contains(out, "blueprint  ")
	})
	reported := func(when string) {
		t.Helper()
		status, out, errs := d.command("", "check")
		if status != 0 || errs != "" || !strings.Contains(out, "!   blueprint      "+file+": brew: input.cups is required now (breaking") ||
			!strings.Contains(out, "ok  blueprint      "+file+": brew: its description has changed (harmless)") {
			t.Errorf("%s: status %d, %q, %q", when, status, out, errs)
		}
	}
	reported("with a running daemon")
	d.end()
	database := filepath.Join(filepath.Dir(d.file), "data", memory.FileName)
	before, err := os.ReadFile(database)
	if err != nil {
		t.Fatal(err)
	}
	reported("after it ended")
	reported("once more") // a check does not accept the changes
	if after, err := os.ReadFile(database); err != nil || !bytes.Equal(before, after) {
		t.Errorf("check changed the database: %v", err)
	}
}

// TestNarrowEngine checks that `check` reports an engine whose limits are too small for a prompt, with the
// sizes, and does not report one that is large enough.
func TestNarrowEngine(t *testing.T) {
	d := daemonUnderTest{t: t, file: filepath.Join(t.TempDir(), "config.toml")}
	d.write("[bot]\ndata_dir = \"data\"\n[interfaces.console]\nenabled = true\n" +
		"[[engine]]\nname = \"narrow\"\nprovider = \"ollama\"\nmodel = \"m\"\nmax_prompt_chars = 4000\n" +
		"[[engine]]\nname = \"short\"\nprovider = \"ollama\"\nmodel = \"m\"\ncontext_tokens = 2000\nmax_tokens = 1000\n" +
		"[[engine]]\nname = \"wide\"\nprovider = \"ollama\"\nmodel = \"m\"\nmax_prompt_chars = 12000\n")
	status, out, errs := d.command("", "check")
	for name, want := range map[string]bool{"narrow": true, "short": true, "wide": false} {
		if got := strings.Contains(out, "!   engine         "+name+" is passed over in console/1, where no prompt fits: prompt of "); got != want {
			t.Errorf("%s: reported = %t, want %t: status %d, %q, %q", name, got, want, status, out, errs)
		}
	}
}

// TestCheckWithoutDatabase checks that a database that cannot be opened is one fault, and that the rest is
// checked nevertheless.
func TestCheckWithoutDatabase(t *testing.T) {
	emptyMachine(t)
	write(t, "config.toml", withTerminal)
	if err := os.Mkdir("data", 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join("data", memory.FileName), "this is no database")
	status, out, errs := runLine(t, "", "check")
	if status == statusDone || !strings.Contains(out, "FAIL database       in data, cannot be opened: ") || !strings.Contains(out, "restore --salvage") ||
		!strings.Contains(out, "ok  persona        Aria\n") || !strings.Contains(out, "ok  interface      console\n") {
		t.Errorf("check: status %d, %s%s", status, out, errs)
	}
}

// TestDamagedPage checks that `check` and `restore` find a page of the database that was lost, and name the way out.
func TestDamagedPage(t *testing.T) {
	emptyMachine(t)
	write(t, "config.toml", withTerminal)
	if status, _, errs := runLine(t, "hello\n"+strings.Repeat("and more\n", 20), "chat"); status != statusDone {
		t.Fatal(errs)
	}
	file := filepath.Join("data", memory.FileName)
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const size, header = 4096, 16
	for at := 2 * size; at < len(raw); at += size {
		if page := raw[at : at+size]; bytes.Contains(page, []byte("and more")) {
			copy(page[header:], bytes.Repeat([]byte{0xff}, size))
		}
	}
	write(t, file, string(raw))
	status, out, errs := runLine(t, "", "check")
	if status != statusFailed || !strings.Contains(out, "FAIL database       in data, cannot be read: ") || !strings.Contains(out, "restore --salvage") {
		t.Errorf("check: status %d, %s%s", status, out, errs)
	}
	_, _, errs = runLine(t, "", "history")
	if !strings.Contains(errs, "damaged") || strings.Contains(errs, "synthbot: "+file+": the store is damaged: runtime error") {
		t.Errorf("history: %s", errs)
	}
	if err := os.Rename(file, "damaged.db"); err != nil {
		t.Fatal(err)
	}
	status, _, errs = runLine(t, "", "restore", "damaged.db")
	if status != statusFailed || !strings.Contains(errs, "restore --salvage") || strings.Count(errs, "\n") > 3 {
		t.Errorf("restore: status %d, %s", status, errs)
	}
}

// TestCheckKeepsTheFormat checks that `check` reports an older database format and leaves the conversion to the
// bot. Commands that only read fail, and a backup keeps the old format.
func TestCheckKeepsTheFormat(t *testing.T) {
	emptyMachine(t)
	write(t, "config.toml", withTerminal+"[access]\nprivate = \"pairing\"\n[[plugins.knowledge.source]]\nname = \"handbook\"\npath = \"docs\"\n")
	for _, dir := range []string{"docs", "copy"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	makeOlder(t, "data")
	status, out, errs := runLine(t, "", "check")
	if status != statusDone || !strings.Contains(out, "has an older format; the bot converts it at its next start") {
		t.Errorf("check: status %d, %s%s", status, out, errs)
	}
	for _, reading := range []string{
		"history", "usage", "memory list", "memory export", "prompt --path console/main --text hi", "actions",
		"knowledge search refund", "knowledge gaps", "pair",
	} {
		status, out, errs := runLine(t, "", strings.Fields(reading)...)
		if status != statusFailed || !strings.Contains(errs, "has an older format; the bot converts it at its next start") {
			t.Errorf("%s: status %d, %s%s", reading, status, out, errs)
		}
	}
	if status, out, errs := runLine(t, "", "backup", filepath.Join("copy", memory.FileName)); status != statusDone {
		t.Errorf("backup: %d, %s%s", status, out, errs)
	}
	for _, dir := range []string{"data", "copy"} {
		if copies, _ := filepath.Glob(dir + "/*version*"); len(copies) > 0 {
			t.Errorf("%s: files %q were created", dir, copies)
		}
		_, err := memory.Open(dir, memory.Options{BesideBot: true, KeepFormat: true})
		if !errors.Is(err, memory.ErrOlder) {
			t.Errorf("%s: got %v, want ErrOlder", dir, err)
		}
	}
	if err := memory.Restore("restored", filepath.Join("copy", memory.FileName)); err != nil {
		t.Error(err)
	}
}

// TestFixSparesOthers checks that `check --fix` restricts a data directory only if it is the bot's own, keeps other bits
// of its mode, and follows a symbolic link to the configuration. Of shared folders, `check` says what to do.
func TestFixSparesOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		mode, want fs.FileMode
		holds      string
	}{
		"own":     {0o755 | fs.ModeSetgid, 0o700 | fs.ModeSetgid, memory.FileName + ".stuck"},
		"empty":   {0o755, 0o700, ""},
		"sticky":  {0o777 | fs.ModeSticky, 0o777 | fs.ModeSticky, ""},
		"foreign": {0o755, 0o755, "index.html"},
	} {
		t.Run(name, func(t *testing.T) {
			emptyMachine(t)
			write(t, "real.toml", withTerminal)
			if err := errors.Join(os.Symlink("real.toml", "config.toml"), os.Chmod("real.toml", 0o644), os.Mkdir("data", 0o700), os.Chmod("data", tc.mode)); err != nil {
				t.Fatal(err)
			}
			if tc.holds != "" {
				write(t, filepath.Join("data", tc.holds), "")
			}
			status, out, errs := runLine(t, "", "check", "--fix")
			info, err := os.Stat("data")
			if err != nil || status != statusDone || info.Mode() != tc.want|fs.ModeDir {
				t.Fatalf("got %v, want %v: status %d, %s%s, %v", info.Mode(), tc.want, status, out, errs, err)
			}
			if warned := strings.Contains(out, "set data_dir in [bot] to a folder of the bot's own"); warned != (tc.mode == tc.want) {
				t.Errorf("warned: %t, by %s", warned, out)
			}
			if link, err := os.Lstat("config.toml"); err != nil || link.Mode()&fs.ModeSymlink == 0 {
				t.Errorf("the link: %v, %v", link, err)
			}
		})
	}
}

// TestOnlyRegularFiles checks that `init` and `check --fix` neither replace a configuration that is not a regular file
// nor change its mode: a pipe stands for a device.
func TestOnlyRegularFiles(t *testing.T) {
	emptyMachine(t)
	if err := errors.Join(syscall.Mkfifo("pipe", 0o666), os.Chmod("pipe", 0o666), os.Symlink("pipe", "link")); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"init -y -c pipe", "init -y -c link", "check --fix -c link", "service install --dry-run -c link"} {
		status, out, errs := runLine(t, "", strings.Fields(line)...)
		if info, err := os.Stat("pipe"); status != statusUsage || !strings.Contains(errs, "pipe is not a regular file") && !strings.Contains(errs, "link is not a regular file") || err != nil || info.Mode() != fs.ModeNamedPipe|0o666 {
			t.Errorf("%s: status %d, %s%s, %v, %v", line, status, out, errs, info, err)
		}
	}
	if err := daemon.WriteFile("link", nil, 0o600); err == nil {
		t.Error("a pipe was replaced")
	}
}

// TestCheckPrograms checks that `check` reports programs of plugins that are not installed.
func TestCheckPrograms(t *testing.T) {
	emptyMachine(t)
	server := func(name, program string) string {
		return "[[plugins.mcp.server]]\nname = \"" + name + "\"\ncommand = [\"" + program + "\"]\n"
	}
	write(t, "config.toml", withTerminal+server("a", "sh")+server("b", "./beside")+"dir = \"tools\"\n"+server("c", "no-such-program"))
	status, out, errs := runLine(t, "", "check")
	const want = "FAIL program        no-such-program was not found: install it, or set its path in plugins.mcp.server[2].command\n"
	if status != statusFailed || !strings.Contains(out, want) || strings.Count(out, " program ") != 1 {
		t.Errorf("status %d, %s%s", status, out, errs)
	}
	for topic, want := range map[string]int{"nope": statusUsage, "check": statusDone} {
		if status, out, errs := runLine(t, "", "help", topic); status != want {
			t.Errorf("help %s: status %d, %s%s", topic, status, out, errs)
		}
	}
	if status, out, errs := runLine(t, "", "help"); status != statusDone || !strings.Contains(out, "Available Commands") {
		t.Errorf("help: status %d, %s%s", status, out, errs)
	}
}
