package plugintest

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/memory"
)

// Harness is a host for a plugin, for tests that need no conversation. It has a real database, and a messenger, an
// inbox and a clock that the test controls. The fields of Host may be replaced before the plugin is made.
type Harness struct {
	core.Host
	DB *memory.DB

	clock clock
	mu    sync.Mutex
	inbox []core.Event
	sent  []string
	files []core.Upload
	lists int

	// People lists the admins.
	People []core.Path
	// Deaf is the error of Receive and Tell; nil: they succeed.
	Deaf error
}

// NewHarness makes a Harness for the plugin of that name. Its clock begins at Monday, 2 March 2026, 10:00 UTC, and goes
// on with the process's (or the bubble's) own. The model answers with the script, as a coretest.Asker; without one
// there is no engine.
func NewHarness(t testing.TB, name string, script ...any) *Harness {
	t.Helper()
	s := new(Harness)
	s.clock.set(begins)
	db, err := memory.Open(t.TempDir(), memory.Options{Clock: s.clock.now, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	s.DB = db
	own := &database{DB: db}
	s.Host = core.Host{
		Name: name, Language: "en", Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Clock: func() time.Time { return s.clock.now().UTC() },
		Items: items{own, name}, Zones: items{own, "zones"}, Facts: own, Passages: memory.Passages(db),
		Inbox: s, Reader: db, Asker: none{}, Messenger: s, Speak: speak, Changed: s.changed,
	}
	if len(script) > 0 {
		s.Asker = coretest.NewAsker(script...)
	}
	return s
}

// Advance moves the clock; timers do not fire.
func (s *Harness) Advance(d time.Duration) {
	s.clock.mu.Lock()
	defer s.clock.mu.Unlock()
	s.clock.moved += d
}

// Set sets the clock.
func (s *Harness) Set(to time.Time) { s.clock.set(to) }

// Receive implements core.Inbox.
func (s *Harness) Receive(ctx context.Context, events ...core.Event) error {
	if s.Deaf != nil {
		return s.Deaf
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		same := func(o core.Event) bool { return o.Message.Path == e.Message.Path && o.Message.ID == e.Message.ID }
		known := slices.ContainsFunc(s.inbox, same)
		if !known {
			s.inbox = append(s.inbox, e)
		}
	}
	return ctx.Err()
}

// Received returns the events so far, each once.
func (s *Harness) Received() []core.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.inbox)
}

// Tell implements core.Messenger.
func (s *Harness) Tell(_ context.Context, to core.Path, text string) error {
	if s.Deaf != nil {
		return s.Deaf
	}
	s.note(to.String() + ": " + text)
	return nil
}

// NotifyAdmins implements core.Messenger.
func (s *Harness) NotifyAdmins(text string) { s.note("admins: " + text) }

func (s *Harness) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, text)
}

// Sent returns the texts that the plugin sent to places, users and admins, as "PATH: text" or "admins: text".
func (s *Harness) Sent() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

// SendFile implements core.Messenger.
func (s *Harness) SendFile(ctx context.Context, parts core.Deliveries, n int, what core.Sent, f core.Upload) error {
	return parts.Send(ctx, n, what, func(context.Context, string) (string, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.files = append(s.files, f)
		return "file", nil
	})
}

// Carried returns the files that the plugin sent.
func (s *Harness) Carried() []core.Upload {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.files)
}

// Link implements core.Messenger.
func (s *Harness) Link(place core.Path, id string) string { return link(place, id) }

// IsAdmin implements core.Messenger.
func (s *Harness) IsAdmin(person core.Path) bool { return slices.Contains(s.People, person) }

func (s *Harness) changed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
}

// Changes returns how often the plugin called Host.Changed.
func (s *Harness) Changes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists
}
