package page

import (
	"bufio"
	"log/slog"
	"strings"
	"testing"
)

// TestLog checks that lines are listed by room and level, newest first, without attributes that may quote a
// user.
func TestLog(t *testing.T) {
	w := newWorld(t)
	w.logged("memory", slog.LevelInfo, "opened", "err", "disk "+canary)
	w.logged("core/turn", slog.LevelWarn, "plan still wrong", "faults", private)
	w.logged("core/engine", slog.LevelError, "engine failed", "err", private, "status", "503")
	w.logged("corelike", slog.LevelInfo, "elsewhere", "id", "of the private_thought")
	c := w.in()
	for query, want := range map[string]string{
		"": "elsewhere, engine failed, plan still wrong, opened", "?level=warn": "engine failed, plan still wrong", "?level=error": "engine failed",
		"?room=core": "engine failed, plan still wrong", "?room=memory&level=info": "opened", "?room=memory&level=error": "",
	} {
		body := c.get("/log" + query).body
		var texts []string
		for _, part := range strings.Split(body, `<span class="words">`)[1:] {
			text, _, _ := strings.Cut(part, "<")
			texts = append(texts, text)
		}
		if got := strings.Join(texts, ", "); got != want {
			t.Errorf("%s: got %q", query, got)
		}
		if strings.Contains(body, private) || strings.Contains(body, "<script>alert") || strings.Contains(body, "thought") {
			t.Errorf("%s shows hidden content: %s", query, body)
		}
	}
	has(t, c.get("/log?level=warn").body, `<option selected>warn</option>`, "<b>status</b> 503", `<span class="mark bad">ERROR</span>`)
	if r := c.get("/log?level=debug"); r.status != 400 {
		t.Errorf("level debug: status %d", r.status)
	}
}

// TestLiveLog checks that an open page gets new lines.
func TestLiveLog(t *testing.T) {
	w := newWorld(t)
	c := w.in()
	w.logged("memory", slog.LevelError, "before")
	w.logged("memory", slog.LevelInfo, "unimportant")
	r, err := c.Do(c.request("GET", "/log/live?level=error", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	lines := bufio.NewScanner(r.Body)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "retry") {
	}
	for lines.Scan() && lines.Text() != "event: lines" {
	}
	if lines.Scan(); !strings.Contains(lines.Text(), "before") || strings.Contains(lines.Text(), "unimportant") {
		t.Errorf("first line: got %q, want the lines since the page was loaded", lines.Text())
	}
	w.logged("memory", slog.LevelInfo, "more")
	w.logged("memory", slog.LevelError, "after")
	for lines.Scan() && lines.Text() != "event: log" {
	}
	if lines.Scan(); !strings.Contains(lines.Text(), "after") {
		t.Errorf("next line: got %q, %v", lines.Text(), lines.Err())
	}
}
