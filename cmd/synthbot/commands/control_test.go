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

// atDesk leaves the name of console to those who come in by the socket.
const atDesk = "[bot]\ndata_dir = \"data\"\n[interfaces.desk]\ntype = \"console\"\n"

// command runs another synthbot beside the daemon.
func (d *daemonUnderTest) command(in string, args ...string) (status int, out, errs string) {
	d.t.Helper()
	var o, e bytes.Buffer
	status = run(d.t.Context(), append(args, "-c", d.file), strings.NewReader(in), &o, &e)
	return status, o.String(), e.String()
}

// TestCommandsAtTheDaemon: the same commands give the same answers, whether the
// daemon runs or not.
func TestCommandsAtTheDaemon(t *testing.T) {
	d := startDaemon(t, atDesk)
	d.tells("READY=1")
	d.answers("hello there")
	d.answers("a second line") // the first turn is over by now
	if status, out, errs := d.command("from elsewhere\n", "chat", "--user", "ann"); status != 0 || out == "" || errs != "" {
		t.Errorf("chat: %d, %q, %q", status, out, errs)
	}
	for end := time.Now().Add(coretest.Patience); ; time.Sleep(time.Millisecond) { // until its turn is over
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
			t.Errorf("%v: %d, %q", c, status, errs)
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
		t.Errorf("a wrong path: %d, %q", status, errs)
	}
	d.end()
	for i, c := range commands {
		status, out, errs := d.command("", c...)
		if status != 0 || !same1(c, out, alive[i]) {
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

// same1 compares answers; a prompt says what time it is.
func same1(command []string, a, b string) bool {
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
		d.t.Errorf("it ended with %d", status)
	}
}

func TestReloadByCommand(t *testing.T) {
	d := startDaemon(t, atDesk)
	d.tells("READY=1")
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

// TestReloadKeepsConnections: an interface goes on as it is when a plugin comes or goes. Its menu follows.
func TestReloadKeepsConnections(t *testing.T) {
	platform := telegramtest.New(t)
	with := onTelegram(newSlowEchoModel(t, time.Millisecond), platform.URL, "[plugins.reminders]\n")
	d := startDaemon(t, with)
	d.tells("READY=1")
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
		t.Errorf("it connected %d times", n)
	}
	d.end()
}

// TestClientThatDoesNotRead: a client that leaves its pipe full holds nobody up:
// others are answered, and when they are gone the daemon ends at once.
// TestReloadMovesTheClock: what plugins and questions go by is the time zone in force.
func TestReloadMovesTheClock(t *testing.T) {
	in := func(zone string) string {
		return strings.Replace(withTerminal, "[bot]\n", "[bot]\ntimezone = \""+zone+"\"\n", 1)
	}
	d := startDaemon(t, in("Europe/Rome"))
	d.tells("READY=1")
	if says := d.answers("/timezone"); !strings.Contains(says, "(Europe/Rome)") {
		t.Errorf("at first: %q", says)
	}
	d.write(in("Asia/Tokyo"))
	if status, _, errs := d.command("", "reload"); status != 0 {
		t.Fatalf("reload: %d, %q", status, errs)
	}
	if says := d.answers("/timezone"); !strings.Contains(says, "(Asia/Tokyo)") {
		t.Errorf("after the reload: %q", says)
	}
	d.answers("remind me in 10 minutes to eat")
	if says := d.answers("/undo"); !strings.Contains(says, "time: ") || !strings.Contains(says, " JST") {
		t.Errorf("what is undone: %q", says)
	}
	d.end()
}

func TestClientThatDoesNotRead(t *testing.T) {
	d := startDaemon(t, atDesk)
	d.tells("READY=1")
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
			break // it holds no more
		}
	}
	if err := syscall.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan int, 1)
	go func() { left <- run(ctx, []string{"actions", "-c", d.file}, strings.NewReader(""), w, io.Discard) }()
	if reply := d.answers("hello"); reply == "" {
		t.Error("nobody else is answered")
	}
	leave()
	if status := <-left; status == statusDone {
		t.Error("what nobody read was done")
	}
	d.end()
}

// TestForgetAtTheDaemon: what plugins keep about a person, and what was changed by
// command for them, goes too, in the daemon's memory as in the file.
func TestForgetAtTheDaemon(t *testing.T) {
	d := startDaemon(t, atDesk+"[access]\nprivate = \"pairing\"\n")
	d.tells("READY=1")
	code := regexp.MustCompile(`[A-Z2-7]{8}`).FindString(d.answers("let me in")) // who sits at a desk is a member
	if code == "" {
		t.Fatal("no code was told")
	}
	if _, out, _ := d.command("", "pair"); out != "you (desk/@user/you)\n" {
		t.Errorf("waiting: %q", out)
	}
	if status, _, errs := d.command("", "memory", "forget", "desk/@user/you"); status != 0 {
		t.Errorf("forget: %d, %q", status, errs)
	}
	if _, out, _ := d.command("", "pair"); out != "" {
		t.Errorf("after he was forgotten, there waits %q", out)
	}
	if status, _, _ := d.command("", "pair", code); status == 0 {
		t.Error("a code of somebody who was forgotten lets him in")
	}
	d.end()
}
