package daemon

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/lmittmann/tint"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/daemon/settings"
	"synthbot/interfaces/console"
)

// rooms are the packages whose log has a level of its own, besides one for each
// interface and each plugin: "interfaces/telegram", "plugins/web". A level of
// "core" is one for all below it.
var rooms = []string{"admin", "cmd", "core", "core/action", "core/document", "core/engine", "core/turn", "interfaces", "memory", "plugins"}

// everyRoom is how people call the level of all rooms that have none.
const everyRoom = "all"

// Logger writes to standard error: coloured on a terminal, JSON under systemd.
// Nothing below least is logged, whatever the file says. Levels can change while
// the program runs. What it says is the room cmd's; inRoom makes another's.
func (p *Env) Logger(c *Config, least slog.Level) *slog.Logger {
	p.logs.set(c.Log.Level, c.roomLevels(), least)
	typed := console.IsTerminal(p.Err)
	all := slog.LevelDebug - 4 // the rooms' levels decide
	var h slog.Handler = tint.NewTextHandler(p.Err, &tint.Options{Level: all, NoColor: !typed, TimeFormat: "15:04:05"})
	if c.Log.Format == "json" || c.Log.Format == "auto" && !typed {
		h = slog.NewJSONHandler(p.Err, &slog.HandlerOptions{Level: all})
	}
	return inRoom(slog.New(&roomed{Handler: h, plain: h, logs: &p.logs}), "cmd")
}

// inRoom is a log that goes where the other one does, as that room's.
func inRoom(log *slog.Logger, room string) *slog.Logger {
	h, ok := log.Handler().(*roomed)
	if !ok {
		return log // somebody else's, who has no rooms
	}
	return slog.New(&roomed{
		Handler: h.plain.WithAttrs([]slog.Attr{slog.String("room", room)}), plain: h.plain, logs: h.logs, level: h.logs.of(room),
	})
}

// roomed is the log of one room.
type roomed struct {
	slog.Handler
	plain slog.Handler // without the room's name
	logs  *logs
	level *slog.LevelVar
}

// Enabled implements slog.Handler.
func (r *roomed) Enabled(_ context.Context, level slog.Level) bool { return level >= r.level.Level() }

// WithAttrs implements slog.Handler.
func (r *roomed) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *r
	c.Handler = r.Handler.WithAttrs(attrs)
	return &c
}

// WithGroup implements slog.Handler.
func (r *roomed) WithGroup(name string) slog.Handler {
	c := *r
	c.Handler = r.Handler.WithGroup(name)
	return &c
}

// logs are the levels of all rooms: those of the file, and those that were set by
// command since the program began, which count where the file's are not nearer to
// the room. Safe for concurrent use; the zero value logs at INFO.
type logs struct {
	mu          sync.Mutex
	base, least slog.Level
	file, said  map[string]slog.Level
	levels      map[string]*slog.LevelVar // by room; as many as there are interfaces and plugins
}

// set puts the file's levels into force.
func (l *logs) set(base slog.Level, file map[string]slog.Level, least slog.Level) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.base, l.file, l.least = base, file, least
	l.settle()
}

// say sets the level of a room and all below it by command; nil takes it back.
func (l *logs) say(room string, level *slog.Level) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if level == nil {
		delete(l.said, room)
	} else {
		if l.said == nil {
			l.said = make(map[string]slog.Level)
		}
		l.said[room] = *level
	}
	l.settle()
}

// of is the level of a room, which follows what is set.
func (l *logs) of(room string) *slog.LevelVar {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.levels[room]
	if v == nil {
		if l.levels == nil {
			l.levels = make(map[string]*slog.LevelVar)
		}
		v = new(slog.LevelVar)
		l.levels[room] = v
		l.settle()
	}
	return v
}

// at is the level that holds in a room.
func (l *logs) at(room string) slog.Level {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.nearest(room)
}

// settle lets all rooms follow what is set. mu is held.
func (l *logs) settle() {
	for room, v := range l.levels {
		v.Set(max(l.nearest(room), l.least))
	}
}

// nearest is what the longest name that holds the room says. mu is held.
func (l *logs) nearest(room string) slog.Level {
	for name := room; ; name = name[:max(strings.LastIndexByte(name, '/'), 0)] {
		if level, ok := l.said[name]; ok {
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

// rooms are those that may be named, in order.
func (c *Config) rooms() []string {
	all := slices.Clone(rooms)
	for name := range c.Interfaces {
		all = append(all, "interfaces/"+name)
	}
	for _, a := range abilities {
		all = append(all, "plugins/"+a.name)
	}
	slices.Sort(all)
	return all
}

// room finds the room that is meant by its name, or by the last part of it.
func (c *Config) room(name string) (room string, ok bool) {
	all := c.rooms()
	if slices.Contains(all, name) {
		return name, true
	}
	i := slices.IndexFunc(all, func(r string) bool { return path.Base(r) == name })
	if i < 0 {
		return "", false
	}
	return all[i], true
}

// roomLevels are the levels of the file, by the rooms that are meant.
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
	c, l := b.InForce().Config, &b.env.logs
	if name == "" {
		return l.list(c.rooms()), nil
	}
	room, ok := c.room(name)
	if !ok && name != everyRoom {
		return "", core.Errorf(core.Invalid, "There is no room %q. There is %s, and %s.", name, strings.Join(c.rooms(), ", "), everyRoom)
	}
	switch level {
	case "":
	case settings.Default:
		l.say(room, nil)
	default:
		var least slog.Level
		if err := least.UnmarshalText([]byte(level)); err != nil || least < slog.LevelDebug {
			return "", core.Errorf(core.Invalid, "%q is no level. Write debug, info, warn, error or %s.", level, settings.Default)
		}
		l.say(room, &least)
		b.log.Info("log level changed", "of", room, "level", least)
	}
	text := fmt.Sprintf("%s logs at %s", cmp.Or(room, everyRoom), l.at(room))
	if l.changed(room) {
		text += ", until I am restarted"
	}
	return text + ".", nil
}

// changed reports whether the level of a room was set by command.
func (l *logs) changed(room string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.said[room]
	return ok
}

// list tells the levels of rooms, a line each.
func (l *logs) list(rooms []string) string {
	var s strings.Builder
	for _, room := range append([]string{""}, rooms...) {
		fmt.Fprintf(&s, "- %s: %s", cmp.Or(room, everyRoom), l.at(room))
		if l.changed(room) {
			s.WriteString(" (until I am restarted)")
		}
		s.WriteByte('\n')
	}
	return strings.TrimSpace(s.String())
}

// log is SetLog as a chat command.
func (a *adminCommands) log(_ context.Context, c command.Call) (string, error) {
	return a.bot.SetLog(c.Args["room"], c.Args["level"])
}
