package logs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
)

// TestJournal checks that each line begins with its priority.
func TestJournal(t *testing.T) {
	var l Levels
	l.Configure(slog.LevelDebug, nil, slog.LevelDebug)
	var out bytes.Buffer
	log := l.New(&out, Journal, "cmd")
	Room(log, "core/turn").With("turn", 7).Error("failed", "err", errors.New("two\nlines"))
	log.Warn("careful")
	log.Info("running")
	log.Debug("details")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []string{`<3>{"time":`, `<4>{"time":`, `<6>{"time":`, `<7>{"time":`} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Fatalf("got lines %q, want %q at the start of line %d", lines, want, i)
		}
	}
	if !strings.HasSuffix(lines[0], `"msg":"failed","room":"core/turn","turn":7,"err":"two\nlines"}`) {
		t.Errorf("first line: got %s", lines[0])
	}
}

// TestKeep checks that Keep gets each line with its room and attributes.
func TestKeep(t *testing.T) {
	var kept []string
	l := Levels{Keep: func(room string, attrs []slog.Attr, r *slog.Record) {
		kept = append(kept, fmt.Sprint(room, attrs, r.Message, r.NumAttrs()))
	}}
	log := Room(l.New(io.Discard, Text, "cmd"), "memory")
	log.With("path", "room/1").Error("failed", "err", "x")
	log.Debug("below the level")
	log.Info("later")
	if want := []string{"memory[path=room/1]failed1", "memory[]later0"}; !slices.Equal(kept, want) {
		t.Errorf("kept %q, want %q", kept, want)
	}
}

// TestLevels checks that the longest name that contains a room applies, and that a command wins over the file.
func TestLevels(t *testing.T) {
	var l Levels
	checkLevels := func(when string, wants ...slog.Level) {
		t.Helper()
		for i, room := range []string{"core/turn", "plugins/web", "memory"} {
			if level := l.of(room); level != wants[i] {
				t.Errorf("%s: %v logs at %v, want %v", when, room, level, wants[i])
			}
		}
	}
	debug, info, warn, fault := slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError
	checkLevels("at first", info, info, info)
	l.Configure(warn, map[string]slog.Level{"core": debug, "plugins/web": info}, debug)
	checkLevels("by file", debug, info, warn)
	l.Change("", &fault)
	checkLevels("all, by command", debug, info, fault)
	l.Change("core", &fault)
	l.Change("plugins", &debug)
	checkLevels("groups, by command", fault, info, fault)
	l.Change("core/turn", &debug)
	l.Configure(info, nil, debug)
	checkLevels("after a reload", debug, debug, fault)
	for _, room := range []string{"", "core", "core/turn", "plugins"} {
		l.Change(room, nil)
	}
	checkLevels("taken back", info, info, info)
	l.Configure(debug, nil, warn)
	checkLevels("never below the least", warn, warn, warn)
}
