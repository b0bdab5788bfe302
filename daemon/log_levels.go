package daemon

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"synthbot/core"
	"synthbot/daemon/logs"
	"synthbot/daemon/settings"
	"synthbot/interfaces/console"
)

// rooms are the parts of the program whose logs have levels, besides interfaces and plugins ("plugins/web").
var rooms = []string{
	"admin", "cmd", "core", "core/action", "core/document", "core/engine", "core/turn",
	"interfaces", "memory", "plugins",
}

// Logger returns a log to standard error, by default as text on a terminal and as JSON elsewhere, with priorities if
// systemd's journal reads it. Nothing below least is logged, whatever the configuration says.
func (e *Env) Logger(c *Config, least slog.Level) *slog.Logger { return e.LoggerTo(e.Err, c, least) }

// LoggerTo is Logger with another writer that leads to standard error.
func (e *Env) LoggerTo(out io.Writer, c *Config, least slog.Level) *slog.Logger {
	e.levels.Configure(c.Log.Level, c.roomLevels(), least)
	if c.Admin.Listen != "" {
		e.levels.Keep = e.lines.Add
	}
	terminal := console.IsTerminal(e.Err)
	format := logs.Text
	switch {
	case c.Log.Format != "text" && isJournal(e.Err, e.Getenv("JOURNAL_STREAM")):
		format = logs.Journal
	case c.Log.Format == "json" || c.Log.Format == "auto" && !terminal:
		format = logs.JSON
	case terminal:
		format = logs.ColoredText
	}
	return e.levels.New(out, format, "cmd")
}

// ErrorPrefix returns the prefix of an error line on standard error: its priority if systemd's journal reads it.
func (e *Env) ErrorPrefix() string {
	if isJournal(e.Err, e.Getenv("JOURNAL_STREAM")) {
		return "<3>"
	}
	return ""
}

// isJournal reports whether out is systemd's stream with the device and the inode in $JOURNAL_STREAM.
func isJournal(out io.Writer, stream string) bool {
	f, ok := out.(*os.File)
	if !ok || stream == "" {
		return false
	}
	info, err := f.Stat()
	if err != nil {
		return false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && stream == fmt.Sprintf("%d:%d", s.Dev, s.Ino)
}

// Rooms returns the names of all rooms, sorted.
func (c *Config) Rooms() []string {
	all := slices.Clone(rooms)
	for name := range c.Interfaces {
		all = append(all, "interfaces/"+name)
	}
	for _, a := range availablePlugins {
		all = append(all, "plugins/"+a.name)
	}
	slices.Sort(all)
	return all
}

// room finds a room by its name, or by the last element of its name.
func (c *Config) room(name string) (room string, ok bool) {
	all := c.Rooms()
	if slices.Contains(all, name) {
		return name, true
	}
	i := slices.IndexFunc(all, func(r string) bool { return path.Base(r) == name })
	if i < 0 {
		return "", false
	}
	return all[i], true
}

func (c *Config) roomLevels() map[string]slog.Level {
	levels := make(map[string]slog.Level)
	for name, level := range c.Log.Levels {
		if room, ok := c.room(name); ok {
			levels[room] = level
		}
	}
	return levels
}

// SetLog shows the levels of the log, or changes one until the program ends.
func (b *Bot) SetLog(name, level string) (string, error) {
	c, levels := b.InForce().Config, &b.env.levels
	if name == "" {
		return levels.List(c.Rooms()), nil
	}
	room, ok := c.room(name)
	if !ok && name != logs.All {
		all := strings.Join(c.Rooms(), ", ")
		return "", core.Errorf(core.Invalid, "There is no room %q. There is %s, and %s.", name, all, logs.All)
	}
	switch level {
	case "":
	case settings.Default:
		levels.Change(room, nil)
	default:
		var least slog.Level
		if err := least.UnmarshalText([]byte(level)); err != nil || least < slog.LevelDebug {
			return "", core.Errorf(core.Invalid,
				"%q is not a level. Write debug, info, warn, error or %s.", level, settings.Default)
		}
		levels.Change(room, &least)
		b.log.Info("log level changed", "name", cmp.Or(room, logs.All), "level", least)
	}
	now, changed := levels.Describe(room)
	text := fmt.Sprintf("%s logs at %s", cmp.Or(room, logs.All), now)
	if changed {
		text += ", until I am restarted"
	}
	return text + ".", nil
}
