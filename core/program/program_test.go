//go:build unix

package program

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/secret"
)

// script is a program that runs in sh.
func script(text string) Program { return Program{Argv: []string{"sh", "-c", text}} }

func TestRun(t *testing.T) {
	t.Setenv("SYNTHBOT_SECRET", "leaks")
	dir := t.TempDir()
	for name, tc := range map[string]struct {
		p    Program
		in   string
		want string
		kind core.ErrorKind
	}{
		"in and out":         {script("cat"), "hello", "hello", ""},
		"arguments":          {Program{Argv: []string{"printf", "%s|", "$HOME;", "`id`", "a b"}}, "", "$HOME;|`id`|a b|", ""},
		"input is not read":  {script("echo done"), strings.Repeat("x", 1<<20), "done\n", ""},
		"no environment":     {script("echo $SYNTHBOT_SECRET-$TOKEN"), "", "-\n", ""},
		"its own":            {Program{Argv: script("echo $TOKEN").Argv, Env: map[string]secret.Secret{"TOKEN": secret.New("s")}}, "", "s\n", ""},
		"its folder":         {Program{Argv: script("pwd -P").Argv, Dir: dir}, "", real(t, dir) + "\n", ""},
		"a status":           {script("echo out; echo err >&2; exit 3"), "", "out\n", core.Broken},
		"no such program":    {Program{Argv: []string{"/nowhere/at/all"}}, "", "", core.Broken},
		"too much":           {Program{Argv: script("yes").Argv, MaxOutput: 1000}, "", "", core.Broken},
		"as much as allowed": {Program{Argv: script("printf 12345").Argv, MaxOutput: 5}, "", "12345", ""},
		"one too many":       {Program{Argv: script("printf 123456").Argv, MaxOutput: 5}, "", "", core.Broken},
		"lowest priority":    {Program{Argv: script("until [ $(nice) = 19 ]; do :; done; nice").Argv, Nice: true, Timeout: time.Minute}, "", "19\n", ""},
		"too long":           {Program{Argv: script("sleep 60").Argv, Timeout: 50 * time.Millisecond}, "", "", core.Temporary},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.p.Run(t.Context(), []byte(tc.in))
			var e *core.Error
			if string(got) != tc.want || (err != nil) != (tc.kind != "") || err != nil && (!errors.As(err, &e) || e.Kind != tc.kind) {
				t.Errorf("unexpected output %q, %v", got, err)
			}
		})
	}
}

// real returns the path of a directory without symbolic links.
func real(t *testing.T, dir string) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestErrorOutputIsOnlyForTheLog(t *testing.T) {
	_, err := script("echo the key is 123 >&2; exit 1").Run(t.Context(), nil)
	var e *core.Error
	if !errors.As(err, &e) || strings.Contains(e.Text, "123") || !strings.Contains(err.Error(), "the key is 123") {
		t.Errorf("the error output must be in the error but not in its user text: %v", err)
	}
}

// TestChildrenAreKilled: the children of a program end with it, in whichever way it ends.
func TestChildrenAreKilled(t *testing.T) {
	for name, rest := range map[string]string{
		"it ends": "", "it is killed": "; sleep 60", "it talks": "; yes",
		"it leaves the pipe open": "; exit 0",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pid")
			p := script("sleep 600 & echo $! >" + file + rest)
			p.Timeout, p.MaxOutput = 300*time.Millisecond, 1000
			_, _ = p.Run(t.Context(), nil)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			if !gone(pid) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
				t.Errorf("the process %d is still running", pid)
			}
		})
	}
}

// gone waits until a killed process has vanished or is a zombie.
func gone(pid int) bool {
	for range 200 {
		state, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
		if err != nil || strings.HasPrefix(strings.TrimSpace(string(state)), "Z") {
			return true
		}
	}
	return false
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := script("sleep 60").Run(ctx, nil); err == nil {
		t.Error("the program ran although its context had ended")
	}
}

func TestCheckEnv(t *testing.T) {
	var wrong []any
	value := secret.New("x")
	CheckEnv(map[string]secret.Secret{"PATH": value, "_a1": value, "1A": value, "A-B": value, "": value}, func(_ string, at ...any) {
		wrong = append(wrong, at[1])
	})
	if len(wrong) != 3 || slices.Contains(wrong, any("PATH")) || slices.Contains(wrong, any("_a1")) {
		t.Errorf("unexpected faults %q", wrong)
	}
}
