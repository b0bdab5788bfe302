package commands

import (
	"bytes"
	"strings"
	"sync"
	"testing"
)

// journal is a standard error that can be read while it is written.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

// take returns what was written since the last time.
func (j *journal) take() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	defer j.b.Reset()
	return j.b.String()
}

// TestLogAtRunTime: the level of a room is changed by a command line, in chat and
// by the file, while the daemon runs; texts are in the log at debug only, and each
// line names its room.
func TestLogAtRunTime(t *testing.T) {
	model := newEchoModel(t)
	with := func(log string) string {
		return strings.Replace(atDesk, "[bot]", "[bot]\nadmins = [\"desk/@user/you\"]", 1) + "[[engine]]\nprovider = \"vllm\"\nmodel = \"m\"\nbase_url = \"" + model + "\"\n" + log
	}
	d := startDaemon(t, with(""))
	d.tells("READY=1")
	says := func(word string) bool {
		t.Helper()
		d.answers(word)
		d.answers("and on") // the turn before is over
		return strings.Contains(d.errs.take(), word)
	}
	set := func(want string, args ...string) {
		t.Helper()
		if status, out, errs := d.command("", append([]string{"log"}, args...)...); status != 0 || !strings.Contains(out, want) {
			t.Errorf("log %v: %d, %q, %q", args, status, out, errs)
		}
	}
	if says("m11") {
		t.Error("a text is in the log at info")
	}
	set("core/turn logs at DEBUG, until I am restarted.", "turn", "debug")
	set("- core/turn: DEBUG (until I am restarted)\n- interfaces: INFO")
	d.answers("m12")
	d.answers("and on")
	if log := d.errs.take(); !strings.Contains(log, `"level":"DEBUG","msg":"answer","room":"core/turn"`) || !strings.Contains(log, "m12") {
		t.Errorf("the turn's log at debug: %s", log)
	}
	if reply := d.answers("/log turn default"); !strings.Contains(reply, "core/turn logs at INFO.") {
		t.Errorf("in chat: %q", reply)
	}
	if d.errs.take(); says("m13") {
		t.Error("a text is in the log after the level was taken back")
	}
	for log, heard := range map[string]bool{"[log]\nlevel = \"DEBUG\"\nlevels = { turn = \"INFO\" }\n": false, "[log.levels]\n\"core\" = \"DEBUG\"\n": true} {
		d.write(with(log))
		d.tells("RELOADING=1")
		d.tells("READY=1")
		if d.errs.take(); says("m14") != heard {
			t.Errorf("with %q: a text is in the log: %v", log, !heard)
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
