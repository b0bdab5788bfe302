package commands

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestLostOutput checks that a command whose output cannot be written fails with one line, with and without a daemon.
func TestLostOutput(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	docs := t.TempDir()
	write(t, filepath.Join(docs, "fees.md"), "# Fees\n\nA refund takes two weeks.\n")
	d := startDaemon(t, atDesk+"[[plugins.knowledge.source]]\nname = \"handbook\"\npath = "+strconv.Quote(docs)+"\n")
	d.awaitNotice("READY=1")
	d.ask("remember that I like tea")
	d.ask("a second line") // the first turn has ended
	check := func(when string) {
		t.Helper()
		for _, line := range []string{
			"check", "check --format json", "check --path desk/main", "history", "history desk/main", "history --format json",
			"memory list", "memory search --path desk/main tea", "memory export", "knowledge sync", "knowledge search refund", "knowledge gaps",
			"usage", "actions", "prompt --path desk/main --text hi", "backup -", "help", "help history", "--help", "version", "manual",
		} {
			args := strings.Fields(line)
			if !strings.Contains("help --help version manual", args[0]) {
				args = append(args, "-c", d.file)
			}
			var errs bytes.Buffer
			status := run(t.Context(), args, nil, full, &errs)
			if want := "synthbot: the output cannot be written: no space left on device\n"; status != statusFailed || errs.String() != want {
				t.Errorf("%s, %s: status %d, %q", when, line, status, &errs)
			}
		}
	}
	check("with a daemon")
	r, pipe, err := os.Pipe()
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	var errs bytes.Buffer
	if status := run(t.Context(), []string{"history", "-c", d.file}, nil, pipe, &errs); status != statusFailed || errs.Len() > 0 {
		t.Errorf("history that nobody reads: status %d, %q", status, &errs)
	}
	d.end()
	check("without a daemon")
}
