// Package logs gives each room of the program a log with a level of its own, which can
// change while the program runs. Rooms have names like paths: a level of "core" applies to
// "core/turn", unless that has one of its own.
package logs

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/lmittmann/tint"
)

// All is how users call the level of all rooms that have none of their own.
const All = "all"

// Format is how lines are written.
type Format int

// Formats.
const (
	Text Format = iota
	ColoredText
	JSON
)

// New returns a log that writes to w. Its lines belong to the room; Room makes logs of
// other rooms.
func (l *Levels) New(w io.Writer, format Format, room string) *slog.Logger {
	const all = slog.LevelDebug - 4 // the levels of rooms decide
	var h slog.Handler = tint.NewTextHandler(w, &tint.Options{
		Level: all, NoColor: format != ColoredText, TimeFormat: "15:04:05",
	})
	if format == JSON {
		h = slog.NewJSONHandler(w, &slog.HandlerOptions{Level: all})
	}
	return Room(slog.New(&handler{Handler: h, plain: h, levels: l}), room)
}

// Room returns a log that writes to the same place as another one, for a room. It returns
// a log that New did not make unchanged.
func Room(log *slog.Logger, room string) *slog.Logger {
	h, ok := log.Handler().(*handler)
	if !ok {
		return log
	}
	named := h.plain.WithAttrs([]slog.Attr{slog.String("room", room)})
	return slog.New(&handler{Handler: named, plain: h.plain, levels: h.levels, room: room})
}

// handler handles the log of one room.
type handler struct {
	slog.Handler
	plain  slog.Handler // without the room's name
	levels *Levels
	room   string
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.levels.of(h.room)
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	c.Handler = h.Handler.WithAttrs(attrs)
	return &c
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	c := *h
	c.Handler = h.Handler.WithGroup(name)
	return &c
}

// Levels are the levels of all rooms: those of the configuration, and those changed by
// command. The longest name that contains a room wins; of equal names, the command wins.
// Safe for concurrent use. The zero value logs at INFO.
type Levels struct {
	mu              sync.Mutex
	base, least     slog.Level
	file, byCommand map[string]slog.Level
}

// Configure sets the levels of the configuration. Nothing below least is logged.
func (l *Levels) Configure(base slog.Level, file map[string]slog.Level, least slog.Level) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.base, l.file, l.least = base, file, least
}

// Change sets the level of a room and all below it by command; nil takes it back.
func (l *Levels) Change(room string, level *slog.Level) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byCommand == nil {
		l.byCommand = make(map[string]slog.Level)
	}
	if level == nil {
		delete(l.byCommand, room)
	} else {
		l.byCommand[room] = *level
	}
}

// of returns the level that a room logs at now.
func (l *Levels) of(room string) slog.Level {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.resolve(room), l.least)
}

// resolve returns the level of the longest name that contains the room. l.mu is held.
func (l *Levels) resolve(room string) slog.Level {
	for name := room; ; name = name[:max(strings.LastIndexByte(name, '/'), 0)] {
		if level, ok := l.byCommand[name]; ok {
			return level
		}
		if level, ok := l.file[name]; ok {
			return level
		}
		if name == "" {
			return l.base
		}
	}
}

// Describe returns the level of a room, and whether a command changed it.
func (l *Levels) Describe(room string) (level slog.Level, changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, changed = l.byCommand[room]
	return l.resolve(room), changed
}

// List describes the levels of rooms, one a line.
func (l *Levels) List(rooms []string) string {
	var s strings.Builder
	for _, room := range append([]string{""}, rooms...) {
		level, changed := l.Describe(room)
		fmt.Fprintf(&s, "- %s: %s", cmp.Or(room, All), level)
		if changed {
			s.WriteString(" (until I am restarted)")
		}
		s.WriteByte('\n')
	}
	return strings.TrimSpace(s.String())
}
