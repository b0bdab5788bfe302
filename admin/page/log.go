package page

import (
	"cmp"
	"log/slog"
	"slices"
	"strings"
	"time"

	"synthbot/admin"
)

const (
	maxLines = 200
	logEvery = time.Second // how often an open stream looks for new lines
)

type logPage struct{ *Page }

// logFilter selects the lines of a room and of rooms below it, from a level up.
type logFilter struct{ Room, Level string }

// levels are the levels of the log that are shown, the lowest first.
func levels() []string { return []string{"info", "warn", "error"} }

func (f logFilter) shows(l *admin.Line) bool {
	var least slog.Level
	_ = least.UnmarshalText([]byte(f.Level)) // it is one of levels()
	inRoom := f.Room == "" || l.Room == f.Room || strings.HasPrefix(l.Room, f.Room+"/")
	return inRoom && l.Level >= least
}

// filtered calls h with the filter of a visit.
func filtered(h func(v *visit, f logFilter) error) handler {
	return func(v *visit) error {
		f := logFilter{v.FormValue("room"), cmp.Or(v.FormValue("level"), levels()[0])}
		if !slices.Contains(levels(), f.Level) {
			return badRequest("That is not a level of the log.")
		}
		return h(v, f)
	}
}

type shownLine struct {
	admin.Line
	Mark string
}

// linesAfter returns the latest lines after a number that a filter selects, newest first, and the number of the newest.
func (p logPage) linesAfter(number uint64, f logFilter) (list []shownLine, last uint64) {
	last = number
	lines, _ := p.Lines.After(number)
	for _, l := range lines {
		last = l.Number
		if f.shows(&l) {
			l.Values = shownValues(&l)
			list = append(list, shownLine{l, map[slog.Level]string{slog.LevelError: "bad"}[l.Level]})
		}
	}
	list = list[max(0, len(list)-maxLines):]
	slices.Reverse(list)
	return list, last
}

// shownValues returns the values of a line without errors of rooms in core and faults of answers, because these may
// quote private messages.
func shownValues(l *admin.Line) (list []admin.Value) {
	inCore := l.Room == "core" || strings.HasPrefix(l.Room, "core/")
	for _, v := range l.Values {
		if v.Key == "faults" || v.Key == "err" && inCore {
			v.Text = "(in the log of the machine)"
		}
		v.Text = hideThought(v.Text)
		list = append(list, v)
	}
	return list
}

func (p logPage) log(v *visit, f logFilter) error {
	lines, _ := p.linesAfter(0, f)
	return p.show(v, "log", "Log", "/log", map[string]any{
		"Lines": lines, "Rooms": options(p.Bot.Rooms(), f.Room), "Levels": options(levels(), f.Level),
	})
}

type option struct {
	Value  string
	Chosen bool
}

func options(values []string, chosen string) (list []option) {
	for _, value := range values {
		list = append(list, option{value, value == chosen})
	}
	return list
}

// live sends the lines of the page by a server-sent event, because some may be newer than the page, and then each
// new line, until the browser disconnects or its session ends.
func (p logPage) live(v *visit, f logFilter) error {
	first, last := true, uint64(0)
	return p.follow(v, logEvery, func() (events string) {
		var lines []shownLine
		lines, last = p.linesAfter(last, f)
		if first {
			first = false
			return p.event(v.Context(), "log", "lines", "lines", lines)
		}
		for _, l := range slices.Backward(lines) {
			events += p.event(v.Context(), "log", "log", "line", l)
		}
		return events
	})
}
