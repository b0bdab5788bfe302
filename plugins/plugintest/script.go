package plugintest

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"synthbot/core"
	"synthbot/core/coretest"
)

// begins is when scripts begin by default, a Monday.
var begins = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

// Script is a running script.
type Script struct {
	t       *testing.T
	plan    *plan
	file    string
	archive *txtar.Archive
	line    *line
	vars    map[string]string
	dir     string // of the database
	log     *slog.Logger

	clock    clock
	zone     *time.Location
	language string
	shares   []core.Path
	buttons  bool
	engine   bool

	world     *life // nil: the bot is stopped
	lived     bool  // the bot was started before
	model     *model
	messenger *messenger
	rooms     map[string]*coretest.Room
	admins    []core.Path
	stir      chan struct{} // something happened

	count   int // of events
	speaker *line
	here    core.Path         // the place of the last event
	last    map[string]string // the last message of a user, or of the bot, in a place
	heard   map[string]string // texts of the rooms that were read so far, by message
	said    []utterance       // output that was not expected yet
	asked   int               // questions at the last command asked
}

// utterance is a piece of the bot's output.
type utterance struct {
	kind  string
	place core.Path
	id    string
	text  string
}

func (u utterance) String() string {
	if u.place.IsZero() {
		return u.kind + "= " + u.text
	}
	return fmt.Sprintf("%s @ %s= %s", u.kind, u.place, u.text)
}

func newScript(t *testing.T, p *plan, file string, archive *txtar.Archive, lines []line) *Script {
	s := &Script{
		t: t, plan: p, file: file, archive: archive, vars: maps.Clone(p.vars), dir: t.TempDir(),
		log:  slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
		zone: time.UTC, language: "en", buttons: true, engine: true,
		rooms: make(map[string]*coretest.Room), stir: make(chan struct{}, 1), here: core.MustPath("room/1"),
		last: make(map[string]string), heard: make(map[string]string),
	}
	s.clock.set(begins)
	s.model, s.messenger = &model{stir: s.poke}, &messenger{script: s}
	s.room("room")
	for i := range lines {
		l := &lines[i]
		if l.kind != happens {
			continue
		}
		if place, err := core.ParsePath(l.place); err == nil {
			s.room(place.Interface())
		}
		if _, ok := l.is("admin"); ok {
			s.admins = append(s.admins, s.person(l))
		}
	}
	return s
}

func (s *Script) room(name string) *coretest.Room {
	if s.rooms[name] == nil {
		s.rooms[name] = coretest.NewRoom(name)
	}
	return s.rooms[name]
}

// Fatalf ends the script with a fault of the current line.
func (s *Script) Fatalf(format string, args ...any) {
	s.t.Helper()
	text := fmt.Sprintf("%s:%d: %s\n%s", s.file, s.line.number, s.line.text, fmt.Sprintf(format, args...))
	if s.plan.caught != nil {
		panic(fault(text))
	}
	s.t.Fatal(text)
}

// fault is the panic of a script whose failure is caught.
type fault string

// caught passes on the fault of a script in the package's own tests.
func (s *Script) caught() {
	if s.plan.caught == nil {
		return
	}
	switch r := recover().(type) {
	case nil:
	case fault:
		s.plan.caught(string(r))
	default:
		panic(r)
	}
}

// Var returns a variable's value, or "" if it is not set.
func (s *Script) Var(name string) string { return s.vars[name] }

// Set sets a variable.
func (s *Script) Set(name, value string) { s.vars[name] = value }

// Now is the bot's time.
func (s *Script) Now() time.Time { return s.clock.now().In(s.zone) }

// poke wakes a line that waits for something.
func (s *Script) poke() {
	select {
	case s.stir <- struct{}{}:
	default:
	}
}

// do executes the current line.
func (s *Script) do() {
	l := s.line
	l.arg, l.place = s.expand(l.arg), s.expand(l.place)
	if l.kind != does || !s.setting() {
		s.live()
	}
	switch l.kind {
	case happens:
		s.quiet()
		s.happen(l)
	case answers:
		s.answer()
	case expects:
		s.expect()
	case does:
		s.command()
	}
}

// live begins the bot's first life.
func (s *Script) live() {
	if !s.lived {
		s.start()
	}
}

var variable = regexp.MustCompile(`\$\{(\w+)\}`)

// expand replaces variables. Unknown ones are not replaced.
func (s *Script) expand(text string) string {
	return variable.ReplaceAllStringFunc(text, func(v string) string {
		if value, ok := s.vars[v[2:len(v)-1]]; ok {
			return value
		}
		return v
	})
}

// settle waits until nothing can run, and no turn waits for anything but the model's answer.
func (s *Script) settle() {
	s.t.Helper()
	if !s.until(s.idle) {
		s.Fatalf("turns do not come to an end:\n%s", s.state())
	}
	s.listen()
}

// idle reports whether no turn is going on, or the model is asked.
func (s *Script) idle() bool {
	if s.world == nil || s.model.pending() > 0 {
		return true
	}
	waiting, err := core.Read(context.Background(), s.world.db, core.View.Waiting)
	return err == nil && len(waiting) == 0
}

// patience is how long a line waits for output, in real time.
const patience = coretest.Patience

// until waits until the condition holds.
func (s *Script) until(holds func() bool) bool {
	if !s.plan.live {
		return rest(holds)
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for !holds() {
		select {
		case <-s.stir:
		case <-timer.C:
			return holds()
		}
	}
	return true
}

// listen collects new output.
func (s *Script) listen() {
	for _, name := range slices.Sorted(maps.Keys(s.rooms)) {
		r := s.rooms[name]
		for _, m := range r.Sent() {
			before, known := s.heard[m.ID]
			if s.heard[m.ID] = m.Text; known && before == m.Text {
				continue
			}
			u := utterance{"bot", m.Path, m.ID, m.Text}
			if known {
				u.kind = "edit"
			}
			s.said = append(s.said, u)
			s.last["bot"+m.Path.String()] = m.ID
		}
		for i, text := range r.Whispers() {
			if id := fmt.Sprintf("whisper %s %d", name, i); s.heard[id] == "" {
				s.heard[id] = text
				s.said = append(s.said, utterance{"whisper", core.Path{}, id, text})
			}
		}
	}
	s.said = append(s.said, s.messenger.take()...)
}

// quiet fails if there is output that was not expected.
func (s *Script) quiet() {
	s.t.Helper()
	if len(s.said) == 0 {
		return
	}
	if *update {
		for _, u := range s.said {
			s.line.before = append(s.line.before, s.written(u))
		}
		s.said = nil
		return
	}
	s.Fatalf("before this, it was not expected:\n%s", s.state())
}

// answered fails if a question to the model was not answered.
func (s *Script) answered() {
	s.t.Helper()
	if s.model.pending() > 0 {
		s.Fatalf("the model is asked, and the script has no answer:\n%s", s.state())
	}
}

// written returns the line that expects an utterance.
func (s *Script) written(u utterance) string {
	if u.place == s.here {
		u.place = core.Path{}
	}
	return u.String()
}

// state describes the output and the model's question, for faults.
func (s *Script) state() string {
	var b strings.Builder
	for _, u := range s.said {
		fmt.Fprintf(&b, "  said: %s\n", s.written(u))
	}
	if len(s.said) == 0 {
		b.WriteString("  nothing more was said\n")
	}
	if s.model.pending() > 0 {
		fmt.Fprintf(&b, "  the model is asked, and waits for an answer: %s\n", s.model.current().text())
	}
	return b.String()
}

// person returns the path of a line's speaker.
func (s *Script) person(l *line) core.Path {
	place := core.MustPath("room/1")
	if p, err := core.ParsePath(l.place); err == nil {
		place = p
	}
	p, err := place.Person(strings.ToLower(l.name))
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}
