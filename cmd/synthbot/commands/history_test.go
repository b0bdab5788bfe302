package commands

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/memory"
)

// TestHistoryCountsMessages checks that `history -n` counts messages without the commands between them, and
// that JSON output counts all entries.
func TestHistoryCountsMessages(t *testing.T) {
	dir := t.TempDir()
	db, err := memory.Open(filepath.Join(dir, "data"), memory.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	batch := new(core.Batch)
	for i := range 30 {
		m := core.Message{ID: fmt.Sprint(i), Path: core.MustPath("desk/main"), Time: time.Now(), Author: core.Author{Name: "Ann"}}
		kind := core.KindCommand
		if i < 5 {
			kind, m.Text = core.KindMessage, fmt.Sprintf("word %d.", i)
		}
		batch.Append = append(batch.Append, core.Entry{Event: core.Event{Kind: kind, Message: m}})
	}
	if err := db.Commit(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "config.toml")
	write(t, file, atDesk)
	history := func(args ...string) string {
		var out strings.Builder
		args = append([]string{"history", "desk/main", "-n", "3", "-c", file}, args...)
		if status := run(t.Context(), args, strings.NewReader(""), &out, io.Discard); status != statusDone {
			t.Fatalf("%v: %d", args, status)
		}
		return out.String()
	}
	text := history()
	if strings.Count(text, "\n") != 3 || !strings.Contains(text, "Ann: word 2.") || !strings.Contains(text, "Ann: word 4.") {
		t.Errorf("history: got %q", text)
	}
	if list := history("--format", "json"); strings.Count(list, `"command"`) != 3 {
		t.Errorf("history --format json: got %s", list)
	}
}

// TestImportOfInvalidReminder checks that a reminder that the plugin cannot read is refused, with the line's number.
func TestImportOfInvalidReminder(t *testing.T) {
	d := &daemonUnderTest{t: t, file: filepath.Join(t.TempDir(), "config.toml")}
	d.write("[bot]\ndata_dir = \"data\"\n")
	const row = `{"item":{"plugin":"reminders","path":"desk/@user/ann","key":"reminder/x","value":{"start":%q}}}` + "\n"
	good, bad := fmt.Sprintf(row, "2026-11-20T23:30:00Z"), fmt.Sprintf(row, "garbage")
	if status, out, errs := d.command(good, "memory", "import", "-"); status != statusDone {
		t.Errorf("a valid one: got %d, %q, %q", status, out, errs)
	}
	status, _, errs := d.command(good+bad, "memory", "import", "-")
	if status == statusDone || !strings.Contains(errs, "line 2") || !strings.Contains(errs, "garbage") {
		t.Errorf("an invalid one: got %d, %q", status, errs)
	}
}

// TestTimesInTheZoneOfTheBot checks that texts show times in `bot.timezone`, as chat does, and that JSON has the zone.
func TestTimesInTheZoneOfTheBot(t *testing.T) {
	d := &daemonUnderTest{t: t, file: filepath.Join(t.TempDir(), "config.toml")}
	d.write("[bot]\ndata_dir = \"data\"\ntimezone = \"Asia/Tokyo\"\n")
	const export = `{"entry":{"kind":"message","message":{"path":"desk/main","id":"1","text":"hello","time":"2026-11-20T23:30:00Z","author":{"name":"Ann"}}}}
{"memory":{"text":"Ann likes tea","origin":"desk/main","time":"2026-11-20T23:30:00Z","former":[{"text":"tea","time":"2026-11-18T23:30:00Z"}]}}`
	if status, _, errs := d.command(export, "memory", "import", "-"); status != statusDone {
		t.Fatal(errs)
	}
	for command, want := range map[string]string{
		"history":                            "2026-11-21 08:30:00",
		"history desk":                       "2026-11-21 08:30:00  (desk/main)  Ann: hello",
		"history desk --format json":         `"time":"2026-11-20T23:30:00Z"`,
		"memory list":                        "1  2026-11-21  desk/main  Ann likes tea\n    before, 2026-11-19: tea",
		"memory search --path desk/main tea": "2026-11-21  desk/main  Ann likes tea",
	} {
		if status, out, errs := d.command("", strings.Fields(command)...); status != statusDone || !strings.Contains(out, want) {
			t.Errorf("%s: got %d, %q, %q; want %q", command, status, out, errs, want)
		}
	}
}
