package daemon

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLogRooms: of what is set, the longest name that holds the room counts, and
// of equals what was said by command.
func TestLogRooms(t *testing.T) {
	var l logs
	turn, web, memory := l.of("core/turn"), l.of("plugins/web"), l.of("memory")
	holds := func(when string, wants ...slog.Level) {
		t.Helper()
		for i, v := range []*slog.LevelVar{turn, web, memory} {
			if v.Level() != wants[i] {
				t.Errorf("%s: %v logs at %v, want %v", when, []string{"turn", "web", "memory"}[i], v.Level(), wants[i])
			}
		}
	}
	debug, info, warn, fault := slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError
	holds("at first", info, info, info)
	l.set(warn, map[string]slog.Level{"core": debug, "plugins/web": info}, debug)
	holds("by file", debug, info, warn)
	l.say("", &fault)
	holds("all, by command", debug, info, fault)
	l.say("core", &fault)
	l.say("plugins", &debug)
	holds("groups, by command", fault, info, fault)
	l.say("core/turn", &debug)
	l.set(info, nil, debug)
	holds("after a reload", debug, debug, fault)
	for _, room := range []string{"", "core", "core/turn", "plugins"} {
		l.say(room, nil)
	}
	holds("taken back", info, info, info)
	l.set(debug, nil, warn)
	holds("never below the least", warn, warn, warn)
}

// TestLogFaults: a room that there is not is a fault of its line.
func TestLogFaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.toml")
	write(t, file, "[log.levels]\nturn = \"DEBUG\"\n\"interfaces/desk\" = \"WARN\"\nkitchen = \"INFO\"\n[interfaces.desk]\ntype = \"console\"\n")
	p := &Env{File: file, Getenv: func(string) string { return "" }, Clock: time.Now}
	if _, err := p.Load(); err == nil || !strings.Contains(err.Error(), ":4: log.levels.kitchen: is no room") || strings.Contains(err.Error(), ":3:") {
		t.Errorf("%v", err)
	}
}
