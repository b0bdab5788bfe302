package plugintest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"synthbot/core"
	"synthbot/memory"
)

// database is the script's database. It allows one write at a time: the writer of package memory waits some time for
// further writes to share its commit, and in a synctest bubble that time does not pass while others wait for it.
type database struct {
	*memory.DB
	one  sync.Mutex
	stir func() // is called after each write; may be nil
}

func (d *database) alone() (leave func()) {
	d.one.Lock()
	return func() {
		d.one.Unlock()
		if d.stir != nil {
			d.stir()
		}
	}
}

// Commit implements core.Store.
func (d *database) Commit(ctx context.Context, b *core.Batch) error {
	defer d.alone()()
	return d.DB.Commit(ctx, b)
}

// SaveFact implements core.Facts.
func (d *database) SaveFact(ctx context.Context, f core.Fact) (core.Fact, error) {
	defer d.alone()()
	return d.DB.SaveFact(ctx, f)
}

// DropFact implements core.Facts.
func (d *database) DropFact(ctx context.Context, id string, see ...core.Path) error {
	defer d.alone()()
	return d.DB.DropFact(ctx, id, see...)
}

// items contains the items of one plugin.
type items struct {
	db     *database
	plugin string
}

// Get implements core.Items.
func (i items) Get(ctx context.Context, path core.Path, key string) (core.Item, bool, error) {
	return i.db.Items(i.plugin).Get(ctx, path, key)
}

// Put implements core.Items.
func (i items) Put(ctx context.Context, item core.Item) (uint64, error) {
	defer i.db.alone()()
	return i.db.Items(i.plugin).Put(ctx, item)
}

// PutAll implements core.Items.
func (i items) PutAll(ctx context.Context, list ...core.Item) error {
	defer i.db.alone()()
	return i.db.Items(i.plugin).PutAll(ctx, list...)
}

// List implements core.Items.
func (i items) List(ctx context.Context, root core.Path) ([]core.Item, error) {
	return i.db.Items(i.plugin).List(ctx, root)
}

// messenger is a core.Messenger that records what is sent.
type messenger struct {
	script   *Script
	mu       sync.Mutex
	recorded []utterance
	files    int
}

func (m *messenger) note(u utterance) {
	m.mu.Lock()
	m.recorded = append(m.recorded, u)
	m.mu.Unlock()
	m.script.poke()
}

// take returns what was recorded since the last call.
func (m *messenger) take() []utterance {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.recorded
	m.recorded = nil
	return all
}

// Tell implements core.Messenger.
func (m *messenger) Tell(_ context.Context, to core.Path, text string) error {
	m.note(utterance{kind: "tell", place: to, text: text})
	return nil
}

// NotifyAdmins implements core.Messenger.
func (m *messenger) NotifyAdmins(text string) { m.note(utterance{kind: "admins", text: text}) }

// SendFile implements core.Messenger.
func (m *messenger) SendFile(ctx context.Context, parts core.Deliveries, n int, what core.Sent, f core.Upload) error {
	return parts.Send(ctx, n, what, func(context.Context, string) (string, error) {
		text := f.Name
		if what.Text != "" {
			text += " | " + what.Text
		}
		m.note(utterance{kind: "file", place: what.Path, text: text})
		m.mu.Lock()
		defer m.mu.Unlock()
		m.files++
		return fmt.Sprintf("file-%d", m.files), nil
	})
}

// Link implements core.Messenger.
func (m *messenger) Link(place core.Path, id string) string { return link(place, id) }

// link is the address of a message in a room.
func link(place core.Path, id string) string {
	return "https://chat.example/" + place.String() + "#" + id
}

// IsAdmin implements core.Messenger.
func (m *messenger) IsAdmin(person core.Path) bool { return slices.Contains(m.script.admins, person) }

// content returns a file of the script.
func (s *Script) content(name string) ([]byte, bool) {
	for _, f := range s.archive.Files {
		if f.Name == name {
			return []byte(strings.TrimSuffix(string(f.Data), "\n")), true
		}
	}
	return nil, false
}
