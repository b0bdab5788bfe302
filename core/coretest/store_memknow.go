package coretest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"synthbot/core"
	"synthbot/core/epochs"
)

var (
	_ factStore = (*MemStore)(nil)
	_ itemStore = (*MemStore)(nil)
)

// memKnowledge is what a MemStore holds besides its logs.
type memKnowledge struct {
	facts     map[string]core.Fact
	given     uint64 // the number of the last fact
	items     map[memItem]core.Item
	epoch     uint64
	forgotten map[core.Path]uint64 // when somebody was
	requests  map[core.Path]time.Time
	unquoted  map[core.Path]map[string]bool // messages, by id
	muted     map[core.TurnID]bool          // turns that answer somebody who was
}

type memItem struct {
	plugin string
	path   core.Path
	key    string
}

func newMemKnow() memKnowledge {
	return memKnowledge{
		facts: make(map[string]core.Fact), items: make(map[memItem]core.Item),
		forgotten: make(map[core.Path]uint64), muted: make(map[core.TurnID]bool),
	}
}

// Forgotten implements core.Store.
func (s *MemStore) Forgotten(ctx context.Context, paths ...core.Path) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.forgotten(ctx, paths...)
}

// forgotten is Forgotten while s.mu is held.
func (s *MemStore) forgotten(ctx context.Context, paths ...core.Path) bool {
	epoch, _, dated := epochs.Of(ctx)
	return slices.ContainsFunc(paths, func(p core.Path) bool {
		for gone, when := range s.knowledge.forgotten {
			if dated && when > epoch && p.Within(gone) {
				return true
			}
		}
		return false
	})
}

// answersForgotten reports whether the context is that of a turn that answers somebody who was
// forgotten since.
func (s *MemStore) answersForgotten(ctx context.Context) bool {
	_, turn, _ := epochs.Of(ctx)
	return !turn.Path.IsZero() && s.knowledge.muted[s.turn(turn)]
}

// concerns reports whether an item is about somebody who was forgotten since, or comes
// from a turn that answers them.
func (s *MemStore) concerns(ctx context.Context, item *core.Item) bool {
	epoch, _, dated := epochs.Of(ctx)
	if !dated || s.answersForgotten(ctx) {
		return dated
	}
	for gone, when := range s.knowledge.forgotten {
		named := strings.Contains(string(item.Value), `"`+gone.String()) || strings.Contains(string(item.Value), `"`+gone.Elements()[2]+`"`)
		if when > epoch && (item.Path.Within(gone) || item.Key == gone.String() || named) {
			return true
		}
	}
	return false
}

// wordsOf returns the words of a text, in lower case.
func wordsOf(text string) []string {
	between := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	return strings.FieldsFunc(strings.ToLower(text), between)
}

// Epoch implements core.Facts.
func (s *MemStore) Epoch() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.knowledge.epoch
}

// SaveFact implements core.Facts.
func (s *MemStore) SaveFact(ctx context.Context, f core.Fact) (core.Fact, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Text == "" || len(f.Text) > 16<<10 {
		return core.Fact{}, fmt.Errorf("a text of %d bytes", len(f.Text))
	}
	if s.answersForgotten(ctx) || s.forgotten(ctx, append(slices.Clone(f.About), f.By, f.Origin)...) {
		return core.Fact{}, core.ErrForgotten
	}
	if f.Time.IsZero() {
		f.Time = time.Now()
	}
	f.Origin, _ = s.resolve(f.Origin)
	olds := s.replacedBy(f)
	if len(olds) == 0 && f.ID != "" {
		return core.Fact{}, core.ErrUnknown
	}
	if len(olds) == 0 {
		s.knowledge.given++
		f.ID = strconv.FormatUint(s.knowledge.given, 10)
	}
	for i, old := range olds {
		if i > 0 {
			delete(s.knowledge.facts, old.ID)
			f.Former = append(append(f.Former, core.Former{Text: old.Text, Time: old.Time, By: old.By}), old.Former...)
			continue
		}
		f.ID, f.Origin, f.Former = old.ID, old.Origin, old.Former
		f.Topic, f.Importance = cmp.Or(f.Topic, old.Topic), max(f.Importance, old.Importance)
		if f.About == nil {
			f.About = old.About
		}
		if f.Text != old.Text {
			f.Former = append([]core.Former{{Text: old.Text, Time: old.Time, By: old.By}}, old.Former...)
		}
	}
	s.knowledge.facts[f.ID] = f
	return f, nil
}

// replacedBy returns the facts that f replaces, newest first.
func (s *MemStore) replacedBy(f core.Fact) (olds []core.Fact) {
	if f.ID != "" {
		old, ok := s.knowledge.facts[f.ID]
		if ok && (f.Origin.IsZero() || f.Origin.Within(old.Origin)) {
			olds = append(olds, old)
		}
		return olds
	}
	for _, old := range s.knowledge.facts {
		now, before := slices.Values(wordsOf(f.Text)), slices.Values(wordsOf(old.Text))
		same := slices.Equal(slices.Sorted(now), slices.Sorted(before))
		topic := f.Topic != "" && strings.EqualFold(f.Topic, old.Topic)
		if old.Origin == f.Origin && slices.Equal(old.About, f.About) && (same || topic) && f.MayReplace(&old) {
			olds = append(olds, old)
		}
	}
	slices.SortFunc(olds, func(a, b core.Fact) int { return b.Time.Compare(a.Time) })
	return olds
}

// sees reports whether a fact can be seen from one of the places.
func (s *MemStore) sees(f core.Fact, see []core.Path) bool {
	return slices.ContainsFunc(see, func(p core.Path) bool {
		p, _ = s.resolve(p)
		return p.Within(f.Origin)
	})
}

// DropFact implements core.Facts.
func (s *MemStore) DropFact(_ context.Context, id string, see ...core.Path) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok := s.knowledge.facts[id]; !ok || !s.sees(f, see) {
		return core.ErrUnknown
	}
	delete(s.knowledge.facts, id)
	return nil
}

// Recall implements core.Facts. The facts with the most words of the query come first.
func (s *MemStore) Recall(_ context.Context, q core.FactQuery) (found []core.Fact, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	asked, scores := wordsOf(q.Text), make(map[string]float64)
	for _, f := range s.knowledge.facts {
		tagged := func(tag string) bool {
			same := func(own string) bool { return strings.EqualFold(own, tag) }
			return slices.ContainsFunc(f.Tags, same) || same(f.Topic)
		}
		must := len(q.Tags)+len(q.About) > 0
		fits := !slices.ContainsFunc(q.Tags, func(tag string) bool { return !tagged(tag) }) &&
			!slices.ContainsFunc(q.About, func(p core.Path) bool { return !slices.Contains(f.About, p) })
		score := 0.0
		for _, word := range asked {
			if slices.Contains(wordsOf(f.Text), word) || tagged(word) {
				score++
			}
		}
		if s.sees(f, q.See) && fits && (score > 0 || must || len(asked) == 0) {
			found, scores[f.ID] = append(found, f), score
		}
	}
	slices.SortFunc(found, func(a, b core.Fact) int {
		return cmp.Or(cmp.Compare(scores[b.ID], scores[a.ID]), b.Time.Compare(a.Time), cmp.Compare(b.ID, a.ID))
	})
	return found[:min(len(found), max(q.N, 0))], nil
}

// Items returns the items of a plugin.
func (s *MemStore) Items(plugin string) core.Items { return memItems{s, plugin} }

type memItems struct {
	s      *MemStore
	plugin string
}

// Get implements core.Items.
func (m memItems) Get(_ context.Context, path core.Path, key string) (core.Item, bool, error) {
	m.s.mu.RLock()
	defer m.s.mu.RUnlock()
	path, _ = m.s.resolve(path)
	item, ok := m.s.knowledge.items[memItem{m.plugin, path, key}]
	if !ok {
		return core.Item{Path: path, Key: key}, false, nil
	}
	return item, true, nil
}

// Put implements core.Items.
func (m memItems) Put(ctx context.Context, item core.Item) (uint64, error) {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	return m.put(ctx, item)
}

// PutAll implements core.Items.
func (m memItems) PutAll(ctx context.Context, list ...core.Item) error {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	before := maps.Clone(m.s.knowledge.items)
	for _, item := range list {
		if _, err := m.put(ctx, item); err != nil {
			m.s.knowledge.items = before
			return err
		}
	}
	return nil
}

func (m memItems) put(ctx context.Context, item core.Item) (uint64, error) {
	if item.Value != nil && !json.Valid(item.Value) {
		return 0, errors.New("no JSON")
	}
	item.Path, _ = m.s.resolve(item.Path)
	at := memItem{m.plugin, item.Path, item.Key}
	if item.Value != nil && m.s.concerns(ctx, &item) {
		return 0, core.ErrForgotten
	}
	old := m.s.knowledge.items[at].Version
	if item.Version != core.AnyVersion && item.Version != old {
		return 0, core.ErrVersion
	}
	if item.Value == nil {
		delete(m.s.knowledge.items, at)
		return 0, nil
	}
	item.Version, item.Value = old+1, slices.Clone(item.Value)
	m.s.knowledge.items[at] = item
	return item.Version, nil
}

// List implements core.Items.
func (m memItems) List(_ context.Context, root core.Path) (items []core.Item, err error) {
	m.s.mu.RLock()
	defer m.s.mu.RUnlock()
	root, _ = m.s.resolve(root)
	for at, item := range m.s.knowledge.items {
		if at.plugin == m.plugin && at.path.Within(root) {
			items = append(items, item)
		}
	}
	slices.SortFunc(items, func(a, b core.Item) int {
		return cmp.Or(comparePaths(a.Path, b.Path), cmp.Compare(a.Key, b.Key))
	})
	return items, nil
}

// moveKnowledge moves the facts and items of a place to its new path.
func (s *MemStore) moveKnowledge(from, to core.Path) {
	for id, f := range s.knowledge.facts {
		if f.Origin.Within(from) {
			f.Origin = rebase(f.Origin, from, to)
			s.knowledge.facts[id] = f
		}
	}
	for at, item := range s.knowledge.items {
		if !at.path.IsZero() && at.path.Within(from) {
			delete(s.knowledge.items, at)
			at.path = rebase(at.path, from, to)
			item.Path = at.path
			s.knowledge.items[at] = item
		}
	}
}

// recordRequest records when a user asked to be forgotten: the time of their latest message if
// that is recent, otherwise now.
func (s *MemStore) recordRequest(person core.Path, id string) {
	var newest core.Message
	for path, l := range s.places {
		for _, e := range l.entries {
			m := e.Message
			if path.Interface() == person.Interface() && m.Author.ID == id && m.Time.After(newest.Time) {
				newest = m
			}
		}
	}
	at := time.Now().Add(-newest.Ahead)
	if time.Since(newest.SentAt()).Abs() < 10*time.Minute {
		at = newest.Time
	}
	if s.knowledge.requests == nil {
		s.knowledge.requests = make(map[core.Path]time.Time)
	}
	at = at.Truncate(time.Second)
	s.knowledge.requests[person] = at
	anybody := core.MustPath(person.Interface())
	if at.After(s.knowledge.requests[anybody]) {
		s.knowledge.requests[anybody] = at
	}
}

// unquote records that quotes of a message are not stored any more.
func (s *MemStore) unquote(place core.Path, id string) {
	if s.knowledge.unquoted == nil {
		s.knowledge.unquoted = make(map[core.Path]map[string]bool)
	}
	if s.knowledge.unquoted[place] == nil {
		s.knowledge.unquoted[place] = make(map[string]bool)
	}
	s.knowledge.unquoted[place][id] = true
}

// tooOld reports whether a text is older than its author's request to be forgotten.
func (s *MemStore) tooOld(place core.Path, author string, said time.Time) bool {
	person, err := place.Person(author)
	return author != "" && err == nil && said.Before(s.knowledge.requests[person])
}

// dropOld removes texts that are too old from an entry. It returns false if the entry itself is.
func (s *MemStore) dropOld(e *core.Entry) bool {
	m := &e.Message
	if q := m.ReplyTo; q != nil && (s.tooOld(m.Path, q.From.ID, q.Time) || s.knowledge.unquoted[m.Path][q.ID]) {
		m.ReplyTo = &core.Quote{ID: q.ID}
	}
	if s.dropOldForeign(m) && e.Command != nil && e.Target != "" { // it is about them
		return false
	}
	return m.Time.IsZero() || !s.tooOld(m.Path, m.Author.ID, m.Time)
}

// dropOldForeign removes texts that are too old from the foreign texts of a message.
func (s *MemStore) dropOldForeign(m *core.Message) (changed bool) {
	before := len(m.Foreign)
	tooOld := func(o core.Foreign) bool { return s.tooOld(m.Path, o.From.ID, o.Time) }
	m.Foreign = slices.DeleteFunc(slices.Clone(m.Foreign), tooOld)
	changed = len(m.Foreign) < before
	last := s.knowledge.requests[core.MustPath(m.Path.Interface())]
	for i, o := range m.Foreign {
		unknown := o.Kind == core.ForeignForward && o.From.ID == "" && o.Text != ""
		if unknown && o.Time.Before(last.Add(time.Second)) && !s.isStored(&o) {
			m.Foreign[i] = core.Foreign{Kind: o.Kind, Time: o.Time}
			changed = true
		}
	}
	return changed
}

// isStored reports whether the message that a forward copies is stored.
func (s *MemStore) isStored(o *core.Foreign) bool {
	l := s.places[o.Path]
	kept := func(e core.Entry) bool { return e.Message.ID == o.ID && !e.Deleted }
	return l != nil && slices.ContainsFunc(l.entries, kept)
}

// Forget erases what is stored about a user. Numbers and ids of entries stay.
func (s *MemStore) Forget(_ context.Context, person core.Path) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := person.Elements()[2]
	s.recordRequest(person, id)
	s.knowledge.epoch++
	s.knowledge.forgotten[person] = s.knowledge.epoch
	told := make(map[string]bool) // ids of what they were answered
	for path, l := range s.places {
		if path.Interface() != person.Interface() {
			continue
		}
		s.forgetTurns(path, l, id)
		for i := range l.entries {
			if e := &l.entries[i]; e.Message.Author.ID == id || slices.Contains(l.answers[i], id) {
				told[e.Message.ID] = true
				s.unquote(path, e.Message.ID)
				eraseEntry(e)
				e.Message.Author, e.Due = core.Author{}, false
				l.waits[i], l.answers[i], l.reactors[i] = false, nil, nil
			}
		}
		for i := range l.entries {
			if quote := l.entries[i].Message.ReplyTo; quote != nil && (quote.From.ID == id || told[quote.ID]) {
				l.entries[i].Message.ReplyTo = &core.Quote{ID: quote.ID}
			}
			m := &l.entries[i].Message
			m.Foreign = slices.DeleteFunc(m.Foreign, func(o core.Foreign) bool { return o.From.ID == id })
			l.react(i, id, "")
		}
	}
	for key, f := range s.knowledge.facts {
		if f.By == person || slices.Contains(f.About, person) {
			delete(s.knowledge.facts, key)
			continue
		}
		f.Former = slices.DeleteFunc(slices.Clone(f.Former), func(old core.Former) bool { return old.By == person })
		s.knowledge.facts[key] = f
	}
	for at := range s.knowledge.items {
		if !at.path.IsZero() && at.path.Within(person) {
			delete(s.knowledge.items, at)
		}
	}
	return nil
}

// forgetTurns deletes the journals of the turns that answer a user, and mutes those that
// are running.
func (s *MemStore) forgetTurns(path core.Path, l *memPlace, id string) {
	for key, r := range s.records {
		var o core.TurnRecord
		if key.Turn.Path != path || key != (core.Key{Turn: key.Turn}) || json.Unmarshal(r.Data, &o) != nil {
			continue
		}
		concerns := slices.Contains(o.Askers, id)
		for i := key.Turn.Seq; i > 0 && i <= min(o.Last, uint64(len(l.entries))); i++ {
			e := &l.entries[i-1]
			concerns = concerns || e.Message.Author.ID == id && (e.Due || i == key.Turn.Seq)
		}
		if concerns {
			s.knowledge.muted[key.Turn] = l.waits[key.Turn.Seq-1]
			s.dropRecords(key.Turn)
		}
	}
}

func (s *MemStore) dropRecords(turn core.TurnID) {
	for key := range s.records {
		if key.Turn == turn {
			delete(s.records, key)
		}
	}
}

// mutedTurns returns the turns of a batch whose records are not written any more.
func (s *MemStore) mutedTurns(b *core.Batch) map[core.TurnID]bool {
	muted := make(map[core.TurnID]bool)
	for _, r := range b.Journal {
		turn := s.turn(r.Key.Turn)
		muted[turn] = s.knowledge.muted[turn]
	}
	return muted
}

// mute returns the users whom the ending turns of a batch answer, and whether one of the turns was muted, because it
// answers somebody who was forgotten.
func (s *MemStore) mute(b *core.Batch) (people []string, muted bool) {
	for _, r := range b.Journal {
		var o core.TurnRecord
		if r.Key == (core.Key{Turn: r.Key.Turn}) && json.Unmarshal(r.Data, &o) == nil {
			people = append(people, o.Askers...)
		}
	}
	for _, mark := range b.Answered {
		turn := s.turn(mark)
		l := s.place(turn.Path)
		for i := range min(turn.Seq, uint64(len(l.entries))) {
			if e := &l.entries[i]; l.waits[i] && !e.Self {
				people = append(append(people, e.Message.Author.ID), l.answers[i]...)
			}
		}
		for other := range s.knowledge.muted {
			if other.Path == turn.Path && other.Seq <= turn.Seq && s.knowledge.muted[other] {
				muted = true
				delete(s.knowledge.muted, other)
			}
		}
	}
	for _, mark := range b.Settled {
		turn := s.turn(mark)
		l := s.place(turn.Path)
		if i := turn.Seq - 1; i < uint64(len(l.entries)) && l.waits[i] && !l.entries[i].Self {
			people = append(append(people, l.entries[i].Message.Author.ID), l.answers[i]...)
		}
		muted = muted || s.knowledge.muted[turn]
		delete(s.knowledge.muted, turn)
	}
	return people, muted
}
