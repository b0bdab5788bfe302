package commands

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"synthbot/core/coretest"
	"synthbot/interfaces/telegram/telegramtest"
	"synthbot/memory"
)

// atDesk names its console interface "desk", so that "console" is left for clients that come in by the socket.
const atDesk = "[bot]\ndata_dir = \"data\"\n[interfaces.desk]\ntype = \"console\"\n"

// command runs another synthbot command beside the daemon.
func (d *daemonUnderTest) command(in string, args ...string) (status int, out, errs string) {
	d.t.Helper()
	var o, e bytes.Buffer
	status = run(d.t.Context(), append(args, "-c", d.file), strings.NewReader(in), &o, &e)
	return status, o.String(), e.String()
}

// TestCommandsAtTheDaemon checks that commands print the same with and without a running daemon.
func TestCommandsAtTheDaemon(t *testing.T) {
	d := startDaemon(t, atDesk)
	d.awaitNotice("READY=1")
	d.ask("hello there")
	d.ask("a second line") // the first turn has ended
	if status, out, errs := d.command("from elsewhere\n", "chat", "--user", "ann"); status != 0 || out == "" || errs != "" {
		t.Errorf("chat: %d, %q, %q", status, out, errs)
	}
	for end := time.Now().Add(coretest.Patience); ; time.Sleep(time.Millisecond) { // until its turn has ended
		_, out, _ := d.command("", "history", "console/main")
		_, answer, _ := strings.Cut(out, "ann: from elsewhere\n")
		if answer != "" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("history: %q", out)
		}
	}
	commands := [][]string{
		{"history", "console/main"}, {"history"}, {"usage"}, {"actions"}, {"memory", "export", "console/main"},
		{"prompt", "--path", "console/main", "--text", "hi", "--author", "ann"}, {"memory", "search", "tea"},
	}
	backup := filepath.Join(t.TempDir(), "copy.db")
	alive := make([]string, len(commands))
	for i, c := range commands {
		status, out, errs := d.command("", c...)
		if status != 0 || errs != "" {
			t.Errorf("%v: got %d, %q", c, status, errs)
		}
		alive[i] = out
	}
	if !strings.Contains(alive[0], "ann: from elsewhere") {
		t.Errorf("history: %q", alive[0])
	}
	if status, _, errs := d.command("", "backup", backup); status != 0 || errs != "" {
		t.Errorf("backup: %d, %q", status, errs)
	}
	if status, _, errs := d.command(alive[4], "memory", "import", "-"); status != 0 {
		t.Errorf("import: %d, %q", status, errs)
	}
	if status, _, errs := d.command("", "history", "no//path"); status != statusUsage || !strings.HasPrefix(errs, "synthbot: ") {
		t.Errorf("a wrong path: status %d, %q", status, errs)
	}
	d.end()
	for i, c := range commands {
		status, out, errs := d.command("", c...)
		if status != 0 || !sameOutput(c, out, alive[i]) {
			t.Errorf("%v, without the daemon: %d, %q, %q; with it %q", c, status, out, errs, alive[i])
		}
	}
	if err := memory.Restore(t.TempDir(), backup); err != nil {
		t.Errorf("the backup: %v", err)
	}
	if info, err := os.Stat(backup); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup: %v, %v", info, err)
	}
}

// sameOutput compares two outputs of a command. It ignores the part of a prompt that depends on the time.
func sameOutput(command []string, a, b string) bool {
	if command[0] != "prompt" {
		return a == b
	}
	at := func(s string) string { s, _, _ = strings.Cut(s, `"timestamp"`); return s }
	return at(a) == at(b)
}

// end stops the daemon and waits for it.
func (d *daemonUnderTest) end() {
	d.t.Helper()
	d.stop()
	if status := <-d.status; status != statusDone {
		d.t.Errorf("exit status %d, want %d", status, statusDone)
	}
}

func TestReloadByCommand(t *testing.T) {
	d := startDaemon(t, atDesk)
	d.awaitNotice("READY=1")
	d.write(atDesk + "[prompt]\nhistory = 7\n")
	if status, _, errs := d.command("", "reload"); status != 0 {
		t.Errorf("reload: %d, %q", status, errs)
	}
	d.write(atDesk + "[prompt]\nhistory = 0\n")
	if status, _, errs := d.command("", "reload"); status != statusUsage || !strings.Contains(errs, "prompt.history") {
		t.Errorf("reload of a wrong file: %d, %q", status, errs)
	}
	d.write(atDesk + "[log]\nformat = \"text\"\n[metrics]\nlisten = \"127.0.0.1:1\"\n[prompt]\nhistory = 9\n")
	status, out, errs := d.command("", "reload")
	if status != 0 || !strings.Contains(out, "after a restart only: metrics.listen, log.format") {
		t.Errorf("reload of what only a restart changes: %d, %q, %q", status, out, errs)
	}
	if _, out, _ = d.command("", "check"); !strings.Contains(out, "!   daemon         log.format: changes after a restart only") {
		t.Errorf("a check says %q", out)
	}
	d.end()
	d.write(atDesk)
	if status, _, errs := d.command("", "reload"); status != statusFailed || !strings.Contains(errs, "no daemon runs") {
		t.Errorf("reload without a daemon: %d, %q", status, errs)
	}
}

// TestReloadKeepsConnections checks that an interface stays connected, and updates its menu, when plugins are
// enabled and disabled.
func TestReloadKeepsConnections(t *testing.T) {
	platform := telegramtest.New(t)
	with := onTelegram(newSlowEchoModel(t, time.Millisecond), platform.URL, "[plugins.reminders]\n")
	d := startDaemon(t, with)
	d.awaitNotice("READY=1")
	offers := func(want bool) {
		t.Helper()
		platform.Await(t, func() bool {
			menu := platform.Commands()[`{"type":"default"} `]
			return menu != "" && strings.Contains(menu, `"timezone"`) == want
		})
	}
	offers(true)
	for range 2 {
		with = strings.Replace(with, "[plugins.reminders]\n", "[plugins.reminders]\nenabled = false\n", 1)
		d.write(with)
		if status, _, errs := d.command("", "reload"); status != 0 {
			t.Fatalf("reload: %d, %q", status, errs)
		}
		offers(false)
		with = strings.Replace(with, "enabled = false\n", "", 1)
		d.write(with)
		if status, _, errs := d.command("", "reload"); status != 0 {
			t.Fatalf("reload: %d, %q", status, errs)
		}
		offers(true)
	}
	if n := len(platform.Calls("getMe")); n != 1 {
		t.Errorf("connected %d times, want once", n)
	}
	d.end()
}

// TestReloadChangesTimeZone checks that plugins and commands use a new time zone after a reload.
func TestReloadChangesTimeZone(t *testing.T) {
	in := func(zone string) string {
		return strings.Replace(withTerminal, "[bot]\n", "[bot]\ntimezone = \""+zone+"\"\n", 1)
	}
	d := startDaemon(t, in("Europe/Rome"))
	d.awaitNotice("READY=1")
	if says := d.ask("/timezone"); !strings.Contains(says, "(Europe/Rome)") {
		t.Errorf("/timezone before the reload: %q", says)
	}
	d.write(in("Asia/Tokyo"))
	if status, _, errs := d.command("", "reload"); status != 0 {
		t.Fatalf("reload: %d, %q", status, errs)
	}
	if says := d.ask("/timezone"); !strings.Contains(says, "(Asia/Tokyo)") {
		t.Errorf("/timezone after the reload: %q", says)
	}
	d.ask("remind me in 10 minutes to eat")
	if says := d.ask("/undo"); !strings.Contains(says, "time: ") || !strings.Contains(says, " JST") {
		t.Errorf("/undo: %q", says)
	}
	d.end()
}

// TestClientThatDoesNotRead checks that a client that does not read its output does not delay others or the end
// of the daemon.
func TestClientThatDoesNotRead(t *testing.T) {
	d := startDaemon(t, atDesk)
	d.awaitNotice("READY=1")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	full, fd := make([]byte, 4096), int(w.Fd())
	if err := syscall.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := syscall.Write(fd, full); err != nil {
			break // the pipe is full
		}
	}
	if err := syscall.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan int, 1)
	go func() { left <- run(ctx, []string{"actions", "-c", d.file}, strings.NewReader(""), w, io.Discard) }()
	if reply := d.ask("hello"); reply == "" {
		t.Error("other users are not answered")
	}
	leave()
	if status := <-left; status == statusDone {
		t.Error("a command succeeded although nobody read its output")
	}
	d.end()
}

// TestForgetAtTheDaemon checks that `memory forget` also removes what the running daemon holds in memory about
// a user, such as a pairing code.
func TestForgetAtTheDaemon(t *testing.T) {
	d := startDaemon(t, atDesk+"[access]\nprivate = \"pairing\"\n")
	d.awaitNotice("READY=1")
	code := regexp.MustCompile(`[A-Z2-7]{8}`).FindString(d.ask("let me in"))
	if code == "" {
		t.Fatal("no pairing code in the reply")
	}
	if _, out, _ := d.command("", "pair"); out != "you (desk/@user/you)\n" {
		t.Errorf("pair: got %q", out)
	}
	if status, _, errs := d.command("", "memory", "forget", "desk/@user/you"); status != 0 {
		t.Errorf("forget: %d, %q", status, errs)
	}
	if _, out, _ := d.command("", "pair"); out != "" {
		t.Errorf("pair after forget: got %q, want nothing", out)
	}
	if status, _, _ := d.command("", "pair", code); status == 0 {
		t.Error("the code of a forgotten user still works")
	}
	d.end()
}
