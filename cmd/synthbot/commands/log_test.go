package commands

import (
	"bytes"
	"strings"
	"sync"
	"testing"
)

// journal is a buffer that can be read while others write to it.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

// String returns what was written and not taken.
func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

// take returns what was written since the last time.
func (j *journal) take() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	defer j.b.Reset()
	return j.b.String()
}

// TestLogAtRunTime changes the log level of an area by a command line, in a chat and in the file while the
// daemon runs. Message texts appear at debug level only, and each line names its area.
func TestLogAtRunTime(t *testing.T) {
	model := newEchoModel(t)
	with := func(log string) string {
		return strings.Replace(atDesk, "[bot]", "[bot]\nadmins = [\"desk/@user/you\"]", 1) + "[[engine]]\nprovider = \"vllm\"\nmodel = \"m\"\nbase_url = \"" + model + "\"\n" + log
	}
	d := startDaemon(t, with(""))
	d.awaitNotice("READY=1")
	logsText := func(word string) bool {
		t.Helper()
		d.ask(word)
		d.ask("and on") // the first turn has ended
		return strings.Contains(d.errs.take(), word)
	}
	set := func(want string, args ...string) {
		t.Helper()
		if status, out, errs := d.command("", append([]string{"log"}, args...)...); status != 0 || !strings.Contains(out, want) {
			t.Errorf("log %v: got status %d, %q, %q, want %q", args, status, out, errs, want)
		}
	}
	if logsText("m11") {
		t.Error("a message's text is in the log at info level")
	}
	set("core/turn logs at DEBUG, until I am restarted.", "turn", "debug")
	set("- core/turn: DEBUG (until I am restarted)\n- interfaces: INFO")
	d.ask("m12")
	d.ask("and on")
	if log := d.errs.take(); !strings.Contains(log, `"level":"DEBUG","msg":"answer","room":"core/turn"`) || !strings.Contains(log, "m12") {
		t.Errorf("the turn's log at debug level: %s", log)
	}
	if reply := d.ask("/log turn default"); !strings.Contains(reply, "core/turn logs at INFO.") {
		t.Errorf("/log in the chat: %q", reply)
	}
	if d.errs.take(); logsText("m13") {
		t.Error("a message's text is in the log after the level was reset")
	}
	for log, heard := range map[string]bool{"[log]\nlevel = \"DEBUG\"\nlevels = { turn = \"INFO\" }\n": false, "[log.levels]\n\"core\" = \"DEBUG\"\n": true} {
		d.write(with(log))
		d.awaitNotice("RELOADING=1")
		d.awaitNotice("READY=1")
		if d.errs.take(); logsText("m14") != heard {
			t.Errorf("with %q: a message's text is in the log = %t", log, !heard)
		}
	}
	if status, _, errs := d.command("", "log", "kitchen", "debug"); status != statusUsage || strings.Contains(errs, "invalid:") || !strings.Contains(errs, "core/turn, ") {
		t.Errorf("an unknown room: %d, %q", status, errs)
	}
	d.write("[bot")
	if status, _, errs := d.command("", "log"); status != statusUsage || !strings.Contains(errs, "cannot be read as TOML") {
		t.Errorf("with a file that does not say where the daemon is: %d, %q", status, errs)
	}
	d.write(with(""))
	d.end()
	if status, _, errs := d.command("", "log"); status != statusFailed || !strings.Contains(errs, "no daemon runs") {
		t.Errorf("without a daemon: %d, %q", status, errs)
	}
}
