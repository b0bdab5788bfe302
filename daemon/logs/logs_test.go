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

// TestJournal: each line begins with its priority, also of rooms and with attributes.
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
			t.Fatalf("the lines are %q", lines)
		}
	}
	if !strings.HasSuffix(lines[0], `"msg":"failed","room":"core/turn","turn":7,"err":"two\nlines"}`) {
		t.Errorf("the first line is %s", lines[0])
	}
}

// TestKeep: what is kept gets each line, with its room and all attributes.
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

// TestLevels: the longest name that contains a room wins; of equal names, the command.
func TestLevels(t *testing.T) {
	var l Levels
	holds := func(when string, wants ...slog.Level) {
		t.Helper()
		for i, room := range []string{"core/turn", "plugins/web", "memory"} {
			if level := l.of(room); level != wants[i] {
				t.Errorf("%s: %v logs at %v, want %v", when, room, level, wants[i])
			}
		}
	}
	debug, info, warn, fault := slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError
	holds("at first", info, info, info)
	l.Configure(warn, map[string]slog.Level{"core": debug, "plugins/web": info}, debug)
	holds("by file", debug, info, warn)
	l.Change("", &fault)
	holds("all, by command", debug, info, fault)
	l.Change("core", &fault)
	l.Change("plugins", &debug)
	holds("groups, by command", fault, info, fault)
	l.Change("core/turn", &debug)
	l.Configure(info, nil, debug)
	holds("after a reload", debug, debug, fault)
	for _, room := range []string{"", "core", "core/turn", "plugins"} {
		l.Change(room, nil)
	}
	holds("taken back", info, info, info)
	l.Configure(debug, nil, warn)
	holds("never below the least", warn, warn, warn)
}
