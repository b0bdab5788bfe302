package logs

import (
	"io"
	"log/slog"
	"strings"
	"testing"
)

// TestLines: what is kept of the log is the latest, without what is logged for debugging, which
// may hold what people said.
func TestLines(t *testing.T) {
	var l Levels
	l.Configure(slog.LevelDebug, nil, slog.LevelDebug)
	log := Room(l.New(io.Discard, Text, "cmd"), "memory")
	log.Info("before it is kept")
	l.Kept.Keep()
	log.Debug("said", "text", "a secret")
	log.With("path", "room/1").Error("failed", "err", strings.Repeat("x", 2*maxValue))
	log.Info("later")
	lines, errors := l.Kept.After(0)
	if len(lines) != 2 || errors != 1 {
		t.Fatalf("kept %+v, %d errors", lines, errors)
	}
	first := lines[0]
	if first.Room != "memory" || first.Text != "failed" || first.Level != slog.LevelError || len(first.Values) != 2 ||
		first.Values[0] != (Value{"path", "room/1"}) || len(first.Values[1].Text) != maxValue {
		t.Errorf("the first is %+v", first)
	}
	if after, _ := l.Kept.After(first.Number); len(after) != 1 || after[0].Text != "later" {
		t.Errorf("after it %+v", after)
	}
	l.Kept.Forget(func(a *Line) bool { return a.Names("room/1") })
	if lines, _ := l.Kept.After(0); len(lines) != 1 {
		t.Errorf("after somebody was forgotten there is %+v", lines)
	}
	for range 3 * maxLines {
		log.Info("more")
	}
	if lines, _ := l.Kept.After(0); len(lines) != maxLines || lines[maxLines-1].Number != 3*maxLines+2 {
		t.Errorf("%d lines", len(lines))
	}
}
