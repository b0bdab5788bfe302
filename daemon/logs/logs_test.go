package logs

import (
	"log/slog"
	"testing"
)

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
