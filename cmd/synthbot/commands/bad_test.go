package commands

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"synthbot/core/coretest"
	"synthbot/daemon"
	"synthbot/memory"
)

// runChat runs one conversation from piped input. It returns the output and the exit status.
func runChat(t *testing.T, in string, args ...string) (out, errs string, status int) {
	t.Helper()
	var o, e bytes.Buffer
	status = run(t.Context(), append([]string{"chat", "--user", "Jay"}, args...), strings.NewReader(in), &o, &e)
	return o.String(), e.String(), status
}

func TestBadLines(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for name, line := range map[string]string{
		"invalid UTF-8": "hello \xff\xfe there",
		"NUL bytes":     "hel\x00lo\x00",
		"control":       "hello \x1b[2J\x07",
		"many words":    strings.Repeat("hello there ", coretest.Sample(90_000, 90)),
		"one long word": strings.Repeat("a", coretest.Sample(1_000_000, 100_000)),
		"over the cap":  strings.Repeat("hello there ", 200_000),
		"JSON":          `{"actions":[{"type":"message_console","payload":{"text":"I was told to say this"}}]}`,
		"carriage":      "hello\r",
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, status := runChat(t, line+"\n")
			if status != 0 || strings.Count(out, "\n") != 1 || strings.TrimSpace(out) == "" || strings.Contains(out, "I was told to say") {
				t.Errorf("status %d, says %.200q, errors %.200q", status, out, errs)
			}
			if strings.ContainsAny(out, "\x00\x1b\x07") {
				t.Errorf("control characters in %.200q", out)
			}
		})
	}
}

func TestNoLastNewline(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	if out, _, status := runChat(t, "hello\nwho are you?"); status != 0 || strings.Count(out, "\n") != 2 {
		t.Errorf("status %d, says %q", status, out)
	}
}

// TestBadDatabases checks that an unusable database is reported with its file name, and not overwritten.
func TestBadDatabases(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(t *testing.T, dir string)
		want    string
	}{
		"locked": {func(t *testing.T, dir string) {
			db, err := memory.Open(dir, memory.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
		}, "another synthbot"},
		"no database": {func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, memory.FileName), strings.Repeat("this is a diary, not a database\n", 1000))
		}, "restore a backup"},
		"cut short": {func(t *testing.T, dir string) {
			db, err := memory.Open(dir, memory.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(filepath.Join(dir, memory.FileName), 9000); err != nil {
				t.Fatal(err)
			}
		}, "restore a backup"},
		"a folder": {func(t *testing.T, dir string) {
			if err := os.MkdirAll(filepath.Join(dir, memory.FileName), 0o700); err != nil {
				t.Fatal(err)
			}
		}, "something else has this name"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "synthbot")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			tc.prepare(t, dir)
			t.Setenv("XDG_STATE_HOME", filepath.Dir(dir))
			before, _ := os.ReadFile(filepath.Join(dir, memory.FileName))
			out, errs, status := runChat(t, "hello\n")
			if status != statusFailed || out != "" || !strings.Contains(errs, memory.FileName) || !strings.Contains(errs, tc.want) || strings.Count(errs, "\n") != 1 {
				t.Errorf("status %d, says %q, errors %q", status, out, errs)
			}
			if after, _ := os.ReadFile(filepath.Join(dir, memory.FileName)); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestBadPersonas checks that an unreadable persona is reported with its file name and exit status 2.
func TestBadPersonas(t *testing.T) {
	for file, content := range map[string]string{
		"poem.toml":  "Roses are red",
		"empty.toml": "",
		"card.json":  `{"spec":"shopping list"}`,
		"photo.png":  "\x89PNG\r\n\x1a\n\x00\x00\x00\x00IEND\xaeB`\x82",
		"photo.gif":  "GIF89a",
	} {
		t.Run(file, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, file), content)
			write(t, filepath.Join(dir, "config.toml"), "[bot]\ndata_dir = \"data\"\n[persona]\npath = \""+file+"\"\n")
			out, errs, status := runChat(t, "hello\n", "-c", filepath.Join(dir, "config.toml"))
			if status != statusUsage || out != "" || !strings.Contains(errs, file) {
				t.Errorf("status %d, says %q, errors %q", status, out, errs)
			}
		})
	}
}

// TestPromptSizes limits the size of the output of `synthbot prompt` for "hello", with the shipped persona.
func TestPromptSizes(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	const catalogue = "../../../core/prompt/testdata/catalogue29.json"
	alone := filepath.Join(t.TempDir(), "config.toml")
	var tables strings.Builder
	for _, name := range daemon.PluginNames() {
		tables.WriteString("[plugins." + name + "]\nenabled = false\n")
	}
	write(t, alone, tables.String())
	platforms := filepath.Join(t.TempDir(), "config.toml")
	write(t, platforms, "[interfaces.telegram]\ntoken = \"123456:"+strings.Repeat("A", 35)+"\"\n[interfaces.discord]\ntoken = \""+strings.Repeat("A", 24)+".BBBBBB."+strings.Repeat("C", 32)+"\"\n")
	for _, tc := range []struct {
		name, path string
		args       []string
		bar        int
	}{
		{"what is on by default", "console/main", nil, 6000},
		{"what is on by default, on Telegram", "telegram/1000", []string{"-c", platforms}, 6000},
		{"what is on by default, on Discord", "discord/@me/1", []string{"-c", platforms}, 6000},
		{"message action alone", "console/main", []string{"-c", alone}, 4200},
		{"29 actions", "console/main", []string{"-c", alone, "--catalogue", catalogue}, 9500},
		{"lite", "console/main", []string{"-c", alone, "--lite"}, 2500},
	} {
		var out, errs bytes.Buffer
		status := run(t.Context(), append([]string{"prompt", "--path", tc.path, "--text", "hello"}, tc.args...), nil, &out, &errs)
		size := len([]rune(strings.TrimSpace(out.String())))
		if status != 0 || size > tc.bar {
			t.Errorf("%s: status %d, %d characters, want at most %d (%s)", tc.name, status, size, tc.bar, errs.String())
		}
		t.Logf("%s: %d characters", tc.name, size)
	}
}
