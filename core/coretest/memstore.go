package coretest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"synthbot/core"
)

// MemStore is a core.Store in memory: slow, simple and correct. It shows what the
// contract means, without the keys and pages of a file.
type MemStore struct {
	name      string
	mu        sync.RWMutex
	closed    bool
	places    map[core.Path]*memPlace
	ids       map[core.Path]map[string]uint64 // by the path that a message came with
	aliases   map[core.Path]memAlias
	records   map[core.Key]core.Record
	states    map[core.Path]core.State
	knowledge memKnowledge
}

// memPlace is the log of a place. Entry number n is at index n-1.
type memPlace struct {
	entries  []core.Entry
	reactors []map[string][]string // for each entry: emoji by user
	answers  [][]string            // for each entry: the users whom it answers
	waits    []bool                // for each entry: it is due and not answered
	answered uint64
	private  bool
}

type memAlias struct {
	to    core.Path
	shift uint64
}

// NewMemStore returns an empty store.
func NewMemStore() *MemStore {
	return &MemStore{
		name:      rand.Text(),
		places:    make(map[core.Path]*memPlace),
		ids:       make(map[core.Path]map[string]uint64),
		aliases:   make(map[core.Path]memAlias),
		records:   make(map[core.Key]core.Record),
		states:    make(map[core.Path]core.State),
		knowledge: newMemKnow(),
	}
}

// Reopen returns a store with the content of a closed one, like a file that is
// opened again.
func (s *MemStore) Reopen() *MemStore {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &MemStore{
		name: s.name, places: s.places, ids: s.ids, aliases: s.aliases,
		records: s.records, states: s.states, knowledge: s.knowledge,
	}
}

// Close implements core.Store.
func (s *MemStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// View implements core.Store.
func (s *MemStore) View(ctx context.Context, f func(core.View) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return core.ErrClosed
	}
	return f(memView{s})
}

// Commit implements core.Store.
func (s *MemStore) Commit(ctx context.Context, b *core.Batch) error {
	if err := checkBatch(b); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return core.ErrClosed
	}
	muted, gone := s.mutedTurns(b), s.answersForgotten(ctx)
	people, erased := s.mute(b)
	b.Known, b.Begun = make([]bool, len(b.Append)), make([]bool, len(b.Append))
	for i := range b.Append {
		e := &b.Append[i]
		path, _ := s.resolve(e.Message.Path)
		idle := !slices.Contains(s.place(path).waits, true)
		b.Known[i] = s.appendFrom(e, people, erased)
		if b.Begin && idle && e.Due && !b.Known[i] {
			b.Begun[i] = true
			key := core.Key{Turn: core.TurnID{Path: e.Message.Path, Seq: e.Message.Seq}}
			first := core.JSON(core.TurnRecord{Last: e.Message.Seq, Attempts: 1})
			s.records[key] = core.Record{Key: key, Progress: core.ProgressStarted, Data: first}
		}
	}
	for i := range b.Change {
		s.change(b.Change[i])
	}
	for _, r := range b.Journal {
		if r.Key.Turn = s.turn(r.Key.Turn); gone || muted[r.Key.Turn] {
			continue
		}
		r.Data = slices.Clone(r.Data)
		s.records[r.Key] = r
	}
	for path, state := range b.States {
		at, _ := s.resolve(path)
		s.states[at] = state
	}
	for _, turn := range b.Answered {
		s.answer(turn)
	}
	for _, turn := range b.Closed {
		s.closeTurn(s.turn(turn))
	}
	for _, turn := range b.Settled {
		s.settle(turn)
	}
	return nil
}

// checkBatch returns an error for a batch that no store accepts.
func checkBatch(b *core.Batch) error {
	for i, e := range b.Append {
		if e.Message.Path.IsZero() || e.Kind == "" || isChange(e.Kind) {
			return fmt.Errorf("entry %d: kind %q at %q cannot be appended", i, e.Kind, e.Message.Path)
		}
	}
	for i, e := range b.Change {
		if e.Message.Path.IsZero() || !isChange(e.Kind) {
			return fmt.Errorf("change %d: kind %q at %q changes nothing", i, e.Kind, e.Message.Path)
		}
	}
	for i, r := range b.Journal {
		if r.Key.Turn.Path.IsZero() {
			return fmt.Errorf("record %d: no place", i)
		}
	}
	for i, turn := range slices.Concat(b.Answered, b.Settled) {
		if turn.Path.IsZero() {
			return fmt.Errorf("answered %d: no place", i)
		}
	}
	for path := range b.States {
		if path.IsZero() {
			return errors.New("state: no place")
		}
	}
	return nil
}

func isChange(k core.Kind) bool {
	return slices.Contains([]core.Kind{core.KindEdit, core.KindDeletion, core.KindReaction, core.KindMigration}, k)
}

// resolve follows migrations: it returns the current path, and what was added to the
// numbers of entries.
func (s *MemStore) resolve(p core.Path) (core.Path, uint64) {
	var shift uint64
	for above := p; !above.IsZero(); {
		a, ok := s.aliases[above]
		if !ok {
			above = above.Parent()
			continue
		}
		p, shift = rebase(p, above, a.to), shift+a.shift
		above = p
	}
	return p, shift
}

// rebase replaces the root from of a path with another one.
func rebase(p, from, to core.Path) core.Path {
	return core.MustPath(to.String() + strings.TrimPrefix(p.String(), from.String()))
}

// Installation implements core.Store.
func (s *MemStore) Installation() string { return s.name }

func (s *MemStore) turn(t core.TurnID) core.TurnID {
	p, shift := s.resolve(t.Path)
	return core.TurnID{Path: p, Seq: t.Seq + shift}
}

// closeTurn deletes the records of a turn, unless one is pending.
func (s *MemStore) closeTurn(turn core.TurnID) {
	for key, r := range s.records {
		if key.Turn == turn && r.Progress == core.ProgressPending {
			return
		}
	}
	maps.DeleteFunc(s.records, func(key core.Key, _ core.Record) bool {
		return key.Turn == turn
	})
}

func (s *MemStore) place(p core.Path) *memPlace {
	if s.places[p] == nil {
		s.places[p] = new(memPlace)
	}
	return s.places[p]
}

func (s *MemStore) append(e *core.Entry) (known bool) {
	from := e.Message.Path
	path, shift := s.resolve(from)
	e.Message.Path = path
	if id := e.Message.ID; id != "" {
		if seq, ok := s.ids[from][id]; ok {
			e.Message.Seq = seq + shift
			return true
		}
	}
	if !s.dropOld(e) {
		return true
	}
	l := s.place(path)
	e.Data = core.Renumber(e.Data, shift)
	e.Message.Seq = uint64(len(l.entries)) + 1
	if e.Message.ID != "" {
		if s.ids[from] == nil {
			s.ids[from] = make(map[string]uint64)
		}
		s.ids[from][e.Message.ID] = e.Message.Seq - shift
	}
	l.entries = append(l.entries, cloneEntry(*e))
	l.private = l.private || e.Message.Private
	l.reactors = append(l.reactors, nil)
	l.waits = append(l.waits, e.Due)
	l.answers = append(l.answers, nil)
	return false
}

// appendFrom appends an entry. If it comes from a turn that ends in the same batch, it answers
// people or, if gone is set, is erased because it answers somebody who was forgotten.
func (s *MemStore) appendFrom(e *core.Entry, people []string, gone bool) (known bool) {
	comes := e.Self || e.Kind == core.KindContinue
	if known = s.append(e); known || !comes {
		return known
	}
	l := s.place(e.Message.Path)
	if i := len(l.entries) - 1; gone {
		eraseEntry(&l.entries[i])
		l.entries[i].Due, l.entries[i].Message.Author, l.waits[i] = false, core.Author{}, false
	} else {
		l.answers[i] = people
	}
	return false
}

// answer moves the answered mark. It stays before entries that still wait from before a migration.
func (s *MemStore) answer(turn core.TurnID) {
	path, shift := s.resolve(turn.Path)
	l := s.place(path)
	upTo := min(turn.Seq+shift, uint64(len(l.entries)))
	if upTo <= l.answered {
		return
	}
	if slices.Contains(l.waits[:min(shift, uint64(len(l.waits)))], true) {
		for i := shift; i < upTo; i++ {
			l.waits[i], l.entries[i].Due = false, false
		}
		return
	}
	clear(l.waits[:upTo])
	l.answered = upTo
}

// settle marks one entry as no longer waiting.
func (s *MemStore) settle(turn core.TurnID) {
	path, shift := s.resolve(turn.Path)
	l := s.place(path)
	seq := turn.Seq + shift
	if seq == 0 || seq > uint64(len(l.entries)) {
		return
	}
	l.waits[seq-1] = false
	if slices.Contains(l.waits[:seq], true) {
		l.entries[seq-1].Due = false
		return
	}
	l.answered = max(l.answered, seq)
}

func (s *MemStore) change(e core.Event) {
	if e.Kind == core.KindMigration {
		s.migrate(e.Message.Path, e.To)
		return
	}
	id := cmp.Or(e.Target, e.Message.ID)
	if e.Kind == core.KindEdit {
		id = e.Message.ID
	}
	path, shift := s.resolve(e.Message.Path)
	seq, ok := s.ids[e.Message.Path][id]
	if !ok {
		return
	}
	l := s.place(path)
	i := seq + shift - 1
	switch entry := &l.entries[i]; {
	case entry.Deleted:
	case e.Kind == core.KindEdit:
		s.dropOldForeign(&e.Message)
		editEntry(entry, &e)
	case e.Kind == core.KindDeletion:
		eraseEntry(entry)
		l.reactors[i] = nil
	case e.Kind == core.KindReaction:
		l.react(int(i), e.Message.Author.ID, e.Data)
	}
}

func editEntry(e *core.Entry, by *core.Event) {
	m, heard := by.Message, e.Message
	if m.Heard != 0 {
		m, heard = heard, m
		m.Heard, m.Attachments = heard.Heard, nil
	}
	if heard.Heard != 0 {
		m.Caption(heard.Text[heard.Written:])
		m.Foreign = slices.Clone(m.Foreign)
		for i := range m.Foreign {
			if m.Foreign[i].Voice && i < len(heard.Foreign) {
				m.Foreign[i].Text = heard.Foreign[i].Text
			}
		}
	}
	same := m.Attachments == nil || slices.Equal(e.Message.Attachments, m.Attachments)
	if same && e.Message.Text == m.Text && slices.Equal(e.Message.Foreign, m.Foreign) {
		return
	}
	e.Message.Text, e.Message.Written, e.Message.Foreign = m.Text, m.Written, slices.Clone(m.Foreign)
	if m.Attachments != nil {
		e.Message.Attachments = slices.Clone(m.Attachments)
	}
	if m.Heard != 0 {
		e.Message.Heard = m.Heard
		return
	}
	if e.Kind == core.KindCommand {
		e.Command = by.Command
		if e.Command == nil {
			e.Kind = core.KindMessage
		}
	}
	e.Rev++
}

func eraseEntry(e *core.Entry) {
	m := &e.Message
	m.Text, m.Foreign, m.Attachments, m.ReplyTo, m.Voice, m.Heard, m.Written, m.Locale = "", nil, nil, nil, false, 0, 0, ""
	e.Data, e.Command, e.Reactions, e.Reply, e.Deleted = "", nil, nil, "", true
}

func (l *memPlace) react(i int, person, emoji string) {
	e, by := &l.entries[i], l.reactors[i]
	taken, away := strings.CutPrefix(emoji, core.TakenAway)
	switch {
	case (away || emoji == "") && person == "":
		for who := range by {
			l.react(i, who, emoji)
		}
		if delete(e.Reactions, taken); taken == "" {
			clear(e.Reactions)
		}
	case away || emoji == "":
		kept := slices.DeleteFunc(by[person], func(his string) bool {
			if taken != "" && his != taken {
				return false
			}
			if e.Reactions[his]--; e.Reactions[his] == 0 {
				delete(e.Reactions, his)
			}
			return true
		})
		if len(kept) > 0 {
			by[person] = kept
		} else {
			delete(by, person)
		}
	case !slices.Contains(by[person], emoji):
		if e.Reactions == nil {
			e.Reactions = make(map[string]int)
		}
		e.Reactions[emoji]++
		if person != "" {
			if by == nil {
				by = make(map[string][]string)
				l.reactors[i] = by
			}
			by[person] = append(by[person], emoji)
		}
	}
	if len(e.Reactions) == 0 {
		e.Reactions = nil
	}
}

func (s *MemStore) migrate(from, to core.Path) {
	if to.IsZero() {
		return
	}
	from, _ = s.resolve(from)
	to, _ = s.resolve(to)
	if from.Within(to) || to.Within(from) {
		return
	}
	s.aliases[from] = memAlias{to: to}
	for _, old := range slices.Collect(maps.Keys(s.places)) {
		if old.Within(from) {
			s.move(old, rebase(old, from, to))
		}
	}
	s.moveKnowledge(from, to)
}

// move appends one log to another one.
func (s *MemStore) move(from, to core.Path) {
	old, l := s.places[from], s.place(to)
	shift := uint64(len(l.entries))
	held := slices.Contains(l.waits, true)
	for i, e := range old.entries {
		e.Message.Path, e.Message.Seq, e.Data = to, e.Message.Seq+shift, core.Renumber(e.Data, shift)
		if held && uint64(i) < old.answered {
			e.Due = false
		}
		l.entries = append(l.entries, e)
	}
	l.waits = append(l.waits, old.waits...)
	l.reactors = append(l.reactors, old.reactors...)
	l.answers = append(l.answers, old.answers...)
	l.private = l.private || old.private
	if !held {
		l.answered = shift + old.answered
	}
	for key, r := range s.records {
		if key.Turn.Path == from {
			delete(s.records, key)
			r.Key.Turn = core.TurnID{Path: to, Seq: key.Turn.Seq + shift}
			s.records[r.Key] = r
		}
	}
	if state, ok := s.states[from]; ok {
		s.states[to] = state
		delete(s.states, from)
	}
	delete(s.places, from)
	s.aliases[from] = memAlias{to: to, shift: shift}
}

// cloneEntry copies what an entry points to, and converts its times to UTC.
func cloneEntry(e core.Entry) core.Entry {
	m := &e.Message
	m.Time = m.Time.UTC()
	m.Attachments, m.Scopes = slices.Clone(m.Attachments), slices.Clone(m.Scopes)
	m.Foreign = slices.Clone(m.Foreign)
	for i := range m.Foreign {
		m.Foreign[i].Time = m.Foreign[i].Time.UTC()
	}
	if m.ReplyTo != nil {
		quote := *m.ReplyTo
		quote.Time = quote.Time.UTC()
		m.ReplyTo = &quote
	}
	if e.Command != nil {
		e.Command = &core.Command{Name: e.Command.Name, Args: slices.Clone(e.Command.Args)}
	}
	e.Reactions = maps.Clone(e.Reactions)
	return e
}
