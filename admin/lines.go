package admin

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"synthbot/core"
)

// Limits of the kept lines.
const (
	maxLines = 1000
	maxValue = 400 // bytes of a value
)

// Line is a kept line of the log.
type Line struct {
	Number     uint64 // counts from 1
	Time       time.Time
	Level      slog.Level
	Room, Text string
	Values     []Value
}

// Value is a value of a line, as text.
type Value struct{ Key, Text string }

// Lines keeps the latest lines of a log in memory, from INFO up: lower levels may contain messages.
// Safe for concurrent use.
type Lines struct {
	mu     sync.Mutex
	last   uint64
	errors int
	lines  []Line // the newest last
}

// After returns the kept lines after a number, the oldest first, and the total number of errors.
func (l *Lines) After(number uint64) (lines []Line, errors int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i, _ := slices.BinarySearchFunc(l.lines, number+1, func(a Line, n uint64) int { return int(a.Number) - int(n) })
	return slices.Clone(l.lines[i:]), l.errors
}

// Forget drops the lines that name a user, a place, or a place below it.
func (l *Lines) Forget(path core.Path) {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := func(v Value) bool { return path.NamedIn(v.Text) }
	l.lines = slices.DeleteFunc(l.lines, func(a Line) bool {
		return path.NamedIn(a.Text) || slices.ContainsFunc(a.Values, names)
	})
}

// Add keeps a line of a room, with attributes besides those of the record.
func (l *Lines) Add(room string, attrs []slog.Attr, r *slog.Record) {
	if r.Level < slog.LevelInfo {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	line := Line{Number: l.last, Time: r.Time, Level: r.Level, Room: room, Text: r.Message}
	add := func(a slog.Attr) bool {
		text := a.Value.String()
		line.Values = append(line.Values, Value{a.Key, strings.ToValidUTF8(text[:min(len(text), maxValue)], "")})
		return true
	}
	for _, a := range attrs {
		add(a)
	}
	r.Attrs(add)
	if r.Level >= slog.LevelError {
		l.errors++
	}
	l.lines = append(l.lines[max(0, len(l.lines)+1-maxLines):], line)
}
