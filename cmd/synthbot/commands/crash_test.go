package commands

import (
	"bufio"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// startProcess runs the daemon as a process of its own until it is ready. stderr is the rest of its log.
func startProcess(t *testing.T, file string) (c *exec.Cmd, stderr io.Closer) {
	t.Helper()
	write(t, file, atDesk)
	c = synthbotCommand(t, "run", "-c", file)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill() // it may have ended
		in.Close()
	})
	var log strings.Builder
	for lines := bufio.NewScanner(errs); lines.Scan(); {
		log.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "running") {
			return c, errs
		}
	}
	t.Fatalf("the daemon did not start: %s", &log)
	return nil, nil
}

// TestCrashIsNoWrongConfiguration checks that a crash ends the daemon by a signal, after which systemd restarts it.
// Go's own exit status for it is 2. SIGABRT is the signal of systemd's watchdog.
func TestCrashIsNoWrongConfiguration(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGABRT, syscall.SIGQUIT} {
		c, _ := startProcess(t, filepath.Join(t.TempDir(), "config.toml"))
		if err := c.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait() // it fails
		status := c.ProcessState.Sys().(syscall.WaitStatus)
		if !status.Signaled() || status.Signal() != syscall.SIGABRT || status.CoreDump() {
			t.Errorf("%v: %v, want a death by SIGABRT without a core dump", s, c.ProcessState)
		}
	}
}

// TestNobodyReadsTheLog checks that the daemon goes on when the reader of its standard error closes it.
func TestNobodyReadsTheLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.toml")
	c, log := startProcess(t, file)
	log.Close()
	if status := run(t.Context(), []string{"reload", "-c", file}, nil, io.Discard, io.Discard); status != statusDone {
		t.Errorf("reload: status %d", status)
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}
