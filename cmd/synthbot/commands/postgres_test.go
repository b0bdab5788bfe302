package commands

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"synthbot/core/coretest"
	"synthbot/interfaces/telegram/telegramtest"
)

// onServer runs a bot that stores everything on a PostgreSQL server and has a Telegram account.
type onServer struct{ *killTest }

const serverLease = 2 * time.Second

func newOnServer(t *testing.T, url string) *onServer {
	t.Helper()
	t.Setenv("DATABASE_URL", url)
	return &onServer{newKillTest(t, newEchoModel(t))}
}

// storeTable returns the [store] table for the server in $DATABASE_URL, or "" without one.
func storeTable() string {
	if os.Getenv("DATABASE_URL") == "" {
		return ""
	}
	return fmt.Sprintf("[store]\nurl = \"env:DATABASE_URL\"\nworker = \"first\"\nlease = %q\n", serverLease.String())
}

// TestKillOnPostgres repeats TestKill and TestKillRest with a PostgreSQL server. Each run waits for the lease
// of the run before.
func TestKillOnPostgres(t *testing.T) {
	defer func(n, messages int) { *kills, *killMessages = n, messages }(*kills, *killMessages)
	*kills, *killMessages = min(*kills, 6), min(*killMessages, 120)
	for name, test := range map[string]func(*testing.T){"kill": TestKill, "rest": TestKillRest} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("DATABASE_URL", coretest.StartPostgres(t).URL)
			test(t)
		})
	}
}

// command runs a command in a process of its own. It returns its output and its error.
func (s *onServer) command(args ...string) (out, errs string, err error) {
	s.Helper()
	c := synthbotCommand(s, append(args, "-c", s.file)...)
	var all, wrong strings.Builder
	c.Stdout, c.Stderr = &all, &wrong
	err = c.Run()
	return all.String(), wrong.String(), err
}

// prints runs a command that must succeed and print the text.
func (s *onServer) prints(want string, args ...string) {
	s.Helper()
	out, errs, err := s.command(args...)
	if err != nil || !strings.Contains(out, want) {
		s.Errorf("%q: no %q in %s%s, %v", args, want, out, errs, err)
	}
}

// fails runs a command that must fail with the text and without a secret in its output.
func (s *onServer) fails(want string, args ...string) {
	s.Helper()
	out, errs, err := s.command(args...)
	if err == nil || !strings.Contains(errs, want) || strings.Contains(out+errs, "SECRET") {
		s.Errorf("%q: no %q in %s%s, %v", args, want, out, errs, err)
	}
}

// run starts the bot.
func (s *onServer) run() *exec.Cmd {
	s.Helper()
	c := synthbotCommand(s, "run", "-c", s.file)
	c.Stdout, c.Stderr = s.log, s.log
	if err := c.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() }) // the test may have ended it
	return c
}

// stop ends the bot with SIGTERM.
func (s *onServer) stop(c *exec.Cmd) {
	s.Helper()
	if err := errors.Join(c.Process.Signal(syscall.SIGTERM), c.Wait()); err != nil {
		s.Errorf("the bot: %v\n%s", err, s.tail())
	}
}

// say sends the messages m<from> to m<n-1>, and waits for the answers.
func (s *onServer) say(from, n int) {
	s.Helper()
	for i := from; i < n; i++ {
		person := int64(1000 + i%killChats)
		s.platform.Say(person, person, telegramtest.Saying{Text: fmt.Sprintf("m%d", i)})
	}
	s.answered(n)
}

func (s *onServer) answered(n int) {
	s.Helper()
	s.waitForZero("messages are not answered", 20*time.Millisecond, func() int { return len(unanswered(s.platform, n)) })
}

// until waits until the bot's log contains a text.
func (s *onServer) until(want string) {
	s.Helper()
	until(s, func() bool {
		raw, err := os.ReadFile(s.log.Name())
		return err == nil && strings.Contains(string(raw), want)
	})
}

// TestOnPostgres runs the program with a server: the first answer, SIGKILL, a restart, commands with and
// without the running bot, a backup that is restored to a file, and users who are forgotten.
func TestOnPostgres(t *testing.T) {
	s := newOnServer(t, coretest.StartPostgres(t).URL)
	s.fails("no database yet on the server", "memory", "export")
	s.prints("will be created", "check")
	bot := s.run()
	s.say(0, 1)
	if err := bot.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = bot.Wait()
	killed := time.Now()
	s.prints("m0", "history", "telegram/1000")
	bot = s.run()
	s.say(1, 2)
	t.Logf("the first answer came %v after SIGKILL; the lease is %v", time.Since(killed), serverLease)

	s.prints("first runs", "check")
	s.prints("m0", "history", "telegram/1000")
	dir := filepath.Dir(s.file)
	socket := filepath.Join(dir, "data", "synthbot.sock")
	if err := os.Rename(socket, socket+".away"); err != nil { // like a command on another machine
		t.Fatal(err)
	}
	s.prints("m0", "history", "telegram/1000")
	s.prints("m1", "memory", "export")
	s.fails(`worker "first" runs with it; run this command on a machine where a bot runs`, "memory", "forget", "telegram/1001")
	if err := os.Rename(socket+".away", socket); err != nil {
		t.Fatal(err)
	}

	backup := filepath.Join(dir, "backup.db")
	s.prints("", "backup", backup)
	s.platform.Say(1000, 1000, telegramtest.Saying{Text: "/forgetme yes"})
	until(t, func() bool {
		out, _, err := s.command("history", "telegram/1000")
		return err == nil && !strings.Contains(out, "m0")
	})
	s.stop(bot)
	if out, _, err := s.command("memory", "export"); err != nil || strings.Contains(out, `"m0"`) || !strings.Contains(out, "m1") {
		t.Errorf("after /forgetme: %s, %v", out, err)
	}
	s.prints("erased: ", "memory", "forget", "telegram/1001") // the bot does not run
	s.fails("restore writes a file", "restore", backup)

	home := filepath.Join(dir, "home")
	file := filepath.Join(dir, "file.toml")
	write(t, file, fmt.Sprintf("[bot]\ndata_dir = %q\n", home))
	s.file = file
	s.prints("", "restore", backup)
	s.prints("m0", "history", "telegram/1000")
	s.prints("m0", "memory", "export")
}

// TestDatabaseGoes stops the server for longer than the lease while users write. No message is lost, the bot
// continues by itself, and its log has an alert.
func TestDatabaseGoes(t *testing.T) {
	server := coretest.StartPostgres(t)
	s := newOnServer(t, server.URL)
	bot := s.run()
	s.say(0, 3)
	server.Crash()
	for i := 3; i < 6; i++ {
		s.platform.Say(int64(1000+i), int64(1000+i), telegramtest.Saying{Text: fmt.Sprintf("m%d", i)})
	}
	s.until("I accept no messages until it can")
	if n := len(unanswered(s.platform, 6)); n != 3 {
		t.Errorf("%d messages are unanswered without a database, want 3", n)
	}
	server.Start()
	back := time.Now()
	s.answered(6)
	t.Logf("all messages were answered %v after the server's restart", time.Since(back))
	s.until("can be reached again, and I go on")
	s.stop(bot)
}

// TestTakenOver checks that a bot that was frozen for longer than its lease ends with an error, after another
// one has taken its place and answers.
func TestTakenOver(t *testing.T) {
	s := newOnServer(t, coretest.StartPostgres(t).URL)
	former := s.run()
	s.say(0, 1)
	if err := former.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	next := s.run()
	s.say(1, 2)
	if err := former.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	err := former.Wait()
	if status, ok := errors.AsType[*exec.ExitError](err); !ok || status.ExitCode() != statusFailed {
		t.Errorf("the first bot ended with %v, want status 1", err)
	}
	s.until("another process has taken the store over")
	s.say(2, 3)
	s.stop(next)
}

// TestServerErrors checks that a wrong server is reported in one clear line without the password.
func TestServerErrors(t *testing.T) {
	server := coretest.StartPostgres(t)
	_, host, _ := strings.Cut(server.URL, "?")
	for url, want := range map[string]string{
		"postgres://guarded:SECRET@/postgres?" + host: "user or password",
		"postgres://bot:SECRET@/none?" + host:         "create the database",
		"postgres://bot:SECRET@127.0.0.1:1/postgres":  "start it, or correct the URL",
		"mysql://bot:SECRET@localhost/x":              "is invalid",
	} {
		s := newOnServer(t, url)
		for _, command := range []string{"run", "check", "history"} {
			s.fails(want, command)
			if _, errs, _ := s.command(command); strings.Count(errs, "\n") != 1 {
				t.Errorf("%s: got %q, want one line", command, errs)
			}
		}
	}
}

// TestStoreAfterRestart checks that a reload says that another server is used only after a restart.
func TestStoreAfterRestart(t *testing.T) {
	d := startDaemon(t, withTerminal)
	d.awaitNotice("READY=1")
	d.write(withTerminal + "[store]\nurl = \"postgres://bot:SECRET@/x\"\n")
	status, out, errs := d.command("", "reload")
	if status != statusDone || !strings.Contains(out, "after a restart only: store") || strings.Contains(out+errs, "SECRET") {
		t.Errorf("reload: status %d, %q, %q", status, out, errs)
	}
	d.end()
}

// TestStoreCopy copies everything to a server and back without a difference, and the bot continues with the
// copies. Copies that would be wrong are refused without printing a password.
func TestStoreCopy(t *testing.T) {
	server := coretest.StartPostgres(t)
	s := newOnServer(t, server.URL)
	config, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	onFile, _, _ := strings.Cut(string(config), "[store]")
	write(t, s.file, onFile)
	dir := filepath.Dir(s.file)
	data, back := filepath.Join(dir, "data"), filepath.Join(dir, "back")
	bot := s.run()
	s.say(0, 3)
	copies := func(from, to string) (string, error) {
		t.Helper()
		c := synthbotCommand(t, "store", "copy", "--from", from, "--to", to)
		var out strings.Builder
		c.Stdout, c.Stderr = &out, &out
		err := c.Run()
		if strings.Contains(out.String(), "SECRET") {
			t.Errorf("store copy prints a secret: %s", &out)
		}
		return out.String(), err
	}
	refused := func(want, from, to string) {
		t.Helper()
		if out, err := copies(from, to); err == nil || !strings.Contains(out, want) {
			t.Errorf("from %s to %s: no %q in %s, %v", from, to, want, out, err)
		}
	}
	copied := func(from, to string) string {
		t.Helper()
		out, err := copies(from, to)
		if err != nil || !strings.Contains(out, "\nlog ") {
			t.Fatalf("from %s to %s: %s, %v", from, to, out, err)
		}
		return out
	}
	refused("the store is in use", data, "env:DATABASE_URL")
	s.stop(bot)
	refused("name a data directory", data, "")
	refused("$NONE is not set", data, "env:NONE")
	refused("no such file", filepath.Join(dir, "none"), "env:DATABASE_URL")
	refused("start it, or correct the URL", data, "postgres://bot:SECRET@127.0.0.1:1/postgres")
	copiedOver := copied(data, "env:DATABASE_URL")
	refused("there is a database already", data, "env:DATABASE_URL")
	refused("there is a database already", "env:DATABASE_URL", data)
	if copiedBack := copied("env:DATABASE_URL", back); copiedBack != copiedOver {
		t.Errorf("the copy back has\n%s\nwant\n%s", copiedOver, copiedBack)
	}

	write(t, s.file, string(config))
	bot = s.run()
	s.say(3, 5)
	refused(`worker "first" runs with it`, "env:DATABASE_URL", filepath.Join(dir, "other"))
	s.prints("m0", "history", "telegram/1000")
	s.stop(bot)
	moved := filepath.Join(dir, "moved")
	copied("env:DATABASE_URL", moved)
	write(t, s.file, strings.Replace(onFile, `"data"`, fmt.Sprintf("%q", moved), 1))
	s.prints("m4", "history", "telegram/1004")
	bot = s.run()
	s.say(5, 6)
	s.stop(bot)
}
