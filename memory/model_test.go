package memory

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"synthbot/core"
	"synthbot/core/coretest"
)

// modelEntry is an entry of the model. Each text is a unique word, which must be in the file
// exactly as long as the entry exists.
type modelEntry struct {
	id, author, text, quoted, quotes string // quoted: the text of user quotes
	from                             core.Path
	private, due, hashed             bool // hashed: only a hash of the id is kept
	said                             time.Time
}

// model is a simple in-memory model of the database.
type model struct {
	db     *DB
	dir    string
	now    time.Time
	next   int
	places map[core.Path][]modelEntry
	moved  map[core.Path]core.Path
	gone   []modelEntry // deleted entries, which a platform may deliver again
}

func modelPlaces() []core.Path {
	return []core.Path{group, topic, kitchen, alone, core.MustPath("chat/super"), core.MustPath("chat/super2")}
}

// TestAgainstAModel: after random operations the database equals a simple model, no operation hangs, and
// the compacted file holds no text that is not in the database.
func TestAgainstAModel(t *testing.T) {
	checks := flag.Lookup("rapid.checks").Value
	defer checks.Set(checks.String())
	checks.Set(strconv.Itoa(coretest.Sample(100, 5)))
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "model")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		m := &model{dir: dir, now: day, places: make(map[core.Path][]modelEntry), moved: make(map[core.Path]core.Path)}
		m.open(t)
		defer func() { m.db.Close() }()
		t.Repeat(map[string]func(*rapid.T){
			"append":    m.timed(m.append),
			"again":     m.timed(m.again),
			"edit":      m.timed(m.edit),
			"delete":    m.timed(m.delete),
			"answer":    m.timed(m.answer),
			"forget":    m.timed(m.forgetPerson),
			"erase":     m.timed(m.forgetPlace),
			"retention": m.timed(m.prune),
			"move":      m.timed(m.move),
			"compact":   m.timed(m.compact),
			"reopen":    m.timed(m.reopen),
			"":          m.check,
		})
		m.compact(t)
		m.file(t)
		if err := errors.Join(m.db.Check(context.Background()), boltCheck(m.db)); err != nil {
			t.Fatal(err)
		}
	})
}

// timed panics, which prints all stacks, if an operation hangs.
func (m *model) timed(op func(*rapid.T)) func(*rapid.T) {
	return func(t *rapid.T) {
		stuck := time.AfterFunc(coretest.Patience, func() { panic("an operation is stuck") })
		defer stuck.Stop()
		m.now = m.now.Add(time.Second)
		op(t)
	}
}

func (m *model) open(t *rapid.T) {
	var err error
	if m.db, err = Open(m.dir, Options{Clock: func() time.Time { return m.now }, NoSync: true}); err != nil {
		t.Fatal(err)
	}
}

func (m *model) reopen(t *rapid.T) {
	if err := m.db.Close(); err != nil {
		t.Fatal(err)
	}
	m.open(t)
}

// at returns the place that a path leads to.
func (m *model) at(path core.Path) core.Path { return follow(m.moved, path) }

// follow follows the migrations of a path or of its nearest ancestor.
func follow(moved map[core.Path]core.Path, path core.Path) core.Path {
	for above := path; !above.IsZero(); {
		to, ok := moved[above]
		if !ok {
			above = above.Parent()
			continue
		}
		path, _ = rebase(path, above, to)
		above = path
	}
	return path
}

func (m *model) commit(t *rapid.T, b *core.Batch) {
	if err := m.db.Commit(context.Background(), b); err != nil {
		t.Fatal(err)
	}
}

func (e *modelEntry) entry() core.Entry {
	entry := message(e.from, e.id, e.text)
	m := &entry.Message
	m.Author, m.Private, m.Time, entry.Due = core.Author{ID: e.author}, e.private, e.said, e.due
	if e.quotes != "" {
		m.ReplyTo = &core.Quote{ID: "q", From: core.Author{ID: e.quotes}, Text: e.quoted, Time: e.said}
	}
	return entry
}

func (m *model) word() string {
	m.next++
	return fmt.Sprintf("word%06dx", m.next)
}

func (m *model) append(t *rapid.T) {
	from := rapid.SampledFrom(modelPlaces()).Draw(t, "place")
	n := rapid.OneOf(rapid.IntRange(1, 60), rapid.IntRange(0, coretest.Sample(2000, 600))).Draw(t, "n")
	several := rapid.Bool().Draw(t, "several authors")
	author, waits := rapid.SampledFrom([]string{"1000", "2000"}).Draw(t, "author"), rapid.IntRange(0, 5).Draw(t, "waits") == 0
	b := &core.Batch{}
	for i := range n {
		e := modelEntry{id: m.word(), author: author, text: m.word(), from: from, private: from == alone,
			due: waits && i == n/2, said: m.now}
		if e.private {
			e.author = "1000"
		} else if several && i%3 == 0 {
			e.author = "3000"
			e.quotes, e.quoted = author, m.word()
		}
		at := m.at(from)
		m.places[at] = append(m.places[at], e)
		b.Append = append(b.Append, e.entry())
	}
	m.commit(t, b)
}

// again delivers a stored or deleted entry again.
func (m *model) again(t *rapid.T) {
	e, ok := m.any(t, true)
	if !ok {
		return
	}
	b := &core.Batch{Append: []core.Entry{e.entry()}}
	if m.commit(t, b); !b.Known[0] {
		t.Fatalf("%+v was stored twice", *e)
	}
}

// any draws an entry that exists or, with former, existed.
func (m *model) any(t *rapid.T, former bool) (*modelEntry, bool) {
	if former && len(m.gone) > 0 && rapid.Bool().Draw(t, "gone") {
		return &m.gone[rapid.IntRange(0, len(m.gone)-1).Draw(t, "which")], true
	}
	at := m.anyPlace(t)
	if len(m.places[at]) == 0 {
		return nil, false
	}
	return &m.places[at][rapid.IntRange(0, len(m.places[at])-1).Draw(t, "which")], true
}

func (m *model) anyPlace(t *rapid.T) core.Path {
	return m.at(rapid.SampledFrom(modelPlaces()).Draw(t, "place"))
}

func (m *model) edit(t *rapid.T) {
	e, ok := m.any(t, false)
	if !ok || e.text == "" {
		return
	}
	e.text = m.word()
	m.commit(t, &core.Batch{Change: []core.Event{{Kind: core.KindEdit, Message: core.Message{Path: e.from,
		ID: e.id, Text: e.text}}}})
}

func (m *model) delete(t *rapid.T) {
	if e, ok := m.any(t, false); ok {
		e.text, e.quotes, e.quoted = "", "", ""
		m.commit(t, &core.Batch{Change: []core.Event{{Kind: core.KindDeletion,
			Message: core.Message{Path: e.from}, Target: e.id}}})
	}
}

// answer ends the waiting entries of a place.
func (m *model) answer(t *rapid.T) {
	at := m.anyPlace(t)
	m.commit(t, &core.Batch{Answered: []core.TurnID{{Path: at, Seq: 1 << 40}}})
	for i := range m.places[at] {
		m.places[at][i].due = false
	}
}

func (m *model) forgetPerson(t *rapid.T) {
	id := rapid.SampledFrom([]string{"1000", "2000", "3000"}).Draw(t, "person")
	person, err := group.Person(id)
	if err == nil {
		err = m.db.Forget(context.Background(), person)
	}
	if err != nil {
		t.Fatal(err)
	}
	var private []core.Path
	for at, entries := range m.places {
		if at.Interface() == person.Interface() && slices.ContainsFunc(entries,
			func(e modelEntry) bool { return e.private && e.author == id }) {
			private = append(private, at)
		}
	}
	for at := range m.places {
		if at.Interface() != person.Interface() {
			continue
		}
		whole := slices.ContainsFunc(private, at.Within)
		gone := len(m.gone)
		m.keep(at, func(_ int, e *modelEntry) bool { return !whole && e.author != id })
		for i := range m.gone[gone:] {
			m.gone[gone+i].hashed = true
		}
		for i := range m.places[at] {
			if e := &m.places[at][i]; e.quotes == id {
				e.quotes, e.quoted = "", ""
			}
		}
	}
	for _, at := range private {
		m.unlink(at)
	}
}

func (m *model) forgetPlace(t *rapid.T) {
	path := core.Path{}
	if rapid.IntRange(0, 3).Draw(t, "everything") > 0 {
		path = m.anyPlace(t)
	}
	if err := m.db.Forget(context.Background(), path); err != nil {
		t.Fatal(err)
	}
	for at := range m.places {
		if at.Within(path) {
			m.keep(at, func(int, *modelEntry) bool { return false })
		}
	}
	m.unlink(path)
}

// unlink drops the paths that led to a forgotten place.
func (m *model) unlink(path core.Path) {
	before := maps.Clone(m.moved)
	for i := range m.gone {
		e := &m.gone[i]
		e.hashed = e.hashed || m.at(e.from).Within(path)
	}
	maps.DeleteFunc(m.moved, func(from, _ core.Path) bool {
		return follow(before, from).Within(path)
	})
	for from := range m.sources() { // paths through one of them to a remaining place
		if to := follow(before, from); !to.Within(path) && m.at(from) != to {
			m.moved[from] = to
		}
	}
}

// sources are the paths that may still be used.
func (m *model) sources() map[core.Path]bool {
	from := make(map[core.Path]bool)
	for _, entries := range m.places {
		for i := range entries {
			from[entries[i].from] = true
		}
	}
	for i := range m.gone {
		from[m.gone[i].from] = from[m.gone[i].from] || !m.gone[i].hashed
	}
	for path := range m.moved {
		from[path] = true
	}
	maps.DeleteFunc(from, func(_ core.Path, known bool) bool { return !known })
	return from
}

func (m *model) prune(t *rapid.T) {
	r := Retention{Messages: rapid.IntRange(0, 100).Draw(t, "messages"), Age: time.Duration(rapid.IntRange(0, 5).Draw(t, "age")) * time.Second}
	if err := m.db.Prune(context.Background(), Config{Keep: []Retention{r}}); err != nil {
		t.Fatal(err)
	}
	for at, entries := range m.places {
		spare, stays := len(entries)-r.Messages, false
		m.keep(at, func(i int, e *modelEntry) bool {
			old := r.Messages > 0 && i < spare || r.Age > 0 && e.said.Before(m.now.Add(-r.Age))
			stays = stays || e.due || !old
			return stays
		})
	}
}

// keep removes the entries of a place for which stays is false.
func (m *model) keep(at core.Path, stays func(int, *modelEntry) bool) {
	var kept []modelEntry
	for i, e := range m.places[at] {
		if stays(i, &e) {
			kept = append(kept, e)
		} else {
			m.gone = append(m.gone, e)
		}
	}
	m.places[at] = kept
}

func (m *model) move(t *rapid.T) {
	from, to := m.anyPlace(t), m.anyPlace(t)
	m.commit(t, &core.Batch{Change: []core.Event{{Kind: core.KindMigration, Message: core.Message{Path: from},
		To: to}}})
	if from.Within(to) || to.Within(from) {
		return
	}
	for path, entries := range maps.Clone(m.places) {
		if path.Within(from) {
			target, _ := rebase(path, from, to)
			delete(m.places, path)
			m.places[target] = append(m.places[target], entries...)
		}
	}
	m.moved[from] = to
}

func (m *model) compact(t *rapid.T) {
	if _, _, err := m.db.Compact(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// check compares the database with the model.
func (m *model) check(t *rapid.T) {
	got := make(map[core.Path][]string)
	err := m.db.view(context.Background(), func(v *view) error {
		heads, err := v.Places(core.Path{})
		for _, h := range heads {
			entries, err := v.Last(h.Path, 1e6)
			if err != nil {
				return err
			}
			if h.Count != uint64(len(entries)) {
				t.Fatalf("%s: the head counts %d entries, want %d", h.Path, h.Count, len(entries))
			}
			for _, e := range entries {
				text := fmt.Sprint(e.Message.Author.ID, " ", e.Message.ID, " ", e.Message.Text)
				if e.Message.ReplyTo != nil && e.Message.ReplyTo.Text != "" {
					text += " " + e.Message.ReplyTo.Text
				}
				got[h.Path] = append(got[h.Path], text)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[core.Path][]string)
	for at, entries := range m.places {
		for _, e := range entries {
			text := fmt.Sprint(e.author, " ", e.id, " ", e.text)
			if e.quoted != "" {
				text += " " + e.quoted
			}
			want[at] = append(want[at], text)
		}
	}
	for _, at := range slices.Collect(maps.Keys(want)) {
		slices.Sort(want[at]) // migrations may order entries differently
		slices.Sort(got[at])
	}
	if diff := equal(want, got); diff != "" {
		t.Fatal(diff)
	}
}

// file compares the words in the compacted file with the model.
func (m *model) file(t *rapid.T) {
	content, err := os.ReadFile(m.db.engine.name)
	if err != nil {
		t.Fatal(err)
	}
	live := make(map[string]bool)
	for _, entries := range m.places {
		for _, e := range entries {
			live[e.text], live[e.quoted] = true, true
		}
	}
	ids := make(map[string]bool) // ids stay known as long as their places
	for _, e := range m.gone {
		ids[e.id] = !e.hashed
	}
	for _, entries := range m.places {
		for _, e := range entries {
			ids[e.id] = true
		}
	}
	for _, word := range regexp.MustCompile(`word[0-9]{6}x`).FindAll(content, -1) {
		if !live[string(word)] && !ids[string(word)] {
			t.Fatalf("the file holds %s, which is not in the model", word)
		}
	}
}
