package admin

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"synthbot/core"
)

// TestLines checks that the latest log lines are kept, without debug lines, which may contain messages' texts.
func TestLines(t *testing.T) {
	var l Lines
	add := func(level slog.Level, text string, attrs ...slog.Attr) {
		r := slog.NewRecord(time.Now(), level, text, 0)
		r.AddAttrs(attrs...)
		l.Add("memory", []slog.Attr{slog.String("path", "room/"+text)}, &r)
	}
	add(slog.LevelDebug, "said", slog.String("text", "a secret"))
	add(slog.LevelError, "failed", slog.String("err", strings.Repeat("x", 2*maxValue)))
	add(slog.LevelInfo, "later")
	lines, errors := l.After(0)
	if len(lines) != 2 || errors != 1 {
		t.Fatalf("kept %+v, %d errors", lines, errors)
	}
	first := lines[0]
	if first.Room != "memory" || first.Text != "failed" || first.Level != slog.LevelError || len(first.Values) != 2 ||
		first.Values[0] != (Value{"path", "room/failed"}) || len(first.Values[1].Text) != maxValue {
		t.Errorf("first line: got %+v", first)
	}
	if after, _ := l.After(first.Number); len(after) != 1 || after[0].Text != "later" {
		t.Errorf("lines after the first: got %+v", after)
	}
	l.Forget(core.MustPath("room/failed"))
	if lines, _ := l.After(0); len(lines) != 1 {
		t.Errorf("after a user was forgotten: got %+v", lines)
	}
	alert := slog.NewRecord(time.Now(), slog.LevelWarn, "Jay (telegram/@user/7) is an admin now", 0)
	l.Add("daemon", nil, &alert)
	l.Forget(core.MustPath("telegram/@user/7"))
	if lines, _ := l.After(0); len(lines) != 1 {
		t.Errorf("a line that names a forgotten user remains: %+v", lines)
	}
	for path, left := range map[string]int{"telegram/1": 2, "gram/10": 2, "telegram/10": 0} {
		for _, text := range []string{"telegram/10", "Ann (telegram/10/2) was here"} {
			add(slog.LevelInfo, text)
		}
		lines, _ := l.After(0)
		had := len(lines)
		l.Forget(core.MustPath(path))
		if lines, _ = l.After(0); len(lines) != had-2+left {
			t.Errorf("after %s was forgotten, %d of %d lines are left", path, len(lines), had)
		}
		l.Forget(core.MustPath("telegram/10"))
	}
	l.last = 3
	for range 3 * maxLines {
		add(slog.LevelInfo, "more")
	}
	if lines, _ := l.After(0); len(lines) != maxLines || lines[maxLines-1].Number != 3*maxLines+3 {
		t.Errorf("got %d lines", len(lines))
	}
}
