// Package logs gives each room (part of the program) a log with a level of its own, which can change while the program
// runs. Rooms have names like paths: a level of "core" applies to "core/turn", unless that has its own.
package logs

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/lmittmann/tint"
)

// All is the name, for users, of all rooms that have no level of their own.
const All = "all"

// Format is how lines are written.
type Format int

// Formats.
const (
	Text Format = iota
	ColoredText
	JSON
	Journal // JSON, each line after its priority
)

// New returns the log of a room, which writes to w. Room makes logs of other rooms from it.
func (l *Levels) New(w io.Writer, format Format, room string) *slog.Logger {
	const all = slog.LevelDebug - 4 // handler.Enabled checks the levels of rooms
	h := &handler{levels: l}
	switch format {
	case JSON:
		h.plain = slog.NewJSONHandler(w, &slog.HandlerOptions{Level: all})
	case Journal:
		h.journal = &journal{Writer: w}
		h.plain = slog.NewJSONHandler(h.journal, &slog.HandlerOptions{Level: all})
	default:
		o := tint.Options{Level: all, NoColor: format != ColoredText, TimeFormat: "15:04:05"}
		h.plain = tint.NewTextHandler(w, &o)
	}
	return Room(slog.New(h), room)
}

// Room returns the log of a room, which writes to the same place as log; log itself if New did not make it.
func Room(log *slog.Logger, room string) *slog.Logger {
	h, ok := log.Handler().(*handler)
	if !ok {
		return log
	}
	named := *h
	named.Handler, named.room, named.attrs = h.plain.WithAttrs([]slog.Attr{slog.String("room", room)}), room, nil
	return slog.New(&named)
}

type handler struct {
	slog.Handler
	plain   slog.Handler // without the room's name
	journal *journal     // nil: the format is another one
	levels  *Levels
	room    string
	attrs   []slog.Attr // attributes of With, for Levels.Keep
}

func (h *handler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.levels.of(h.room)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	c.Handler, c.attrs = h.Handler.WithAttrs(attrs), append(slices.Clip(h.attrs), attrs...)
	return &c
}

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	if h.levels.Keep != nil {
		h.levels.Keep(h.room, h.attrs, &r)
	}
	if h.journal != nil {
		h.journal.mu.Lock()
		defer h.journal.mu.Unlock()
		h.journal.level = r.Level
	}
	return h.Handler.Handle(ctx, r)
}

func (h *handler) WithGroup(name string) slog.Handler {
	c := *h
	c.Handler = h.Handler.WithGroup(name)
	return &c
}

// Levels are the levels of all rooms, from the configuration and from commands. The longest name that contains a room
// wins; for one name, the command wins. Safe for concurrent use. The zero value logs at INFO.
type Levels struct {
	// Keep is called with each logged line and the attributes of With. Set it before New; it may be nil.
	Keep func(room string, attrs []slog.Attr, r *slog.Record)

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

// Change sets the level of a room and all below it by command; nil undoes that.
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

// journal writes each line after its priority, as sd-daemon(3) describes it. mu is held while a line is written.
type journal struct {
	io.Writer
	mu    sync.Mutex
	level slog.Level // of the line
}

func (j *journal) Write(line []byte) (int, error) {
	priority := "<7>"
	switch {
	case j.level >= slog.LevelError:
		priority = "<3>"
	case j.level >= slog.LevelWarn:
		priority = "<4>"
	case j.level >= slog.LevelInfo:
		priority = "<6>"
	}
	if _, err := j.Writer.Write(append([]byte(priority), line...)); err != nil {
		return 0, err
	}
	return len(line), nil
}
