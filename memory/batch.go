package memory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"synthbot/core"
)

// ErrBatch is wrapped by the errors of batches that can never be written.
var ErrBatch = fmt.Errorf("%w: bad batch", core.ErrBadEvent)

// Limits of what a batch may hold; drivers cut long before.
const (
	maxEntryBytes = 16 << 20
	maxIDBytes    = 4096
)

// batch is a core.Batch with its encoded form. The caller's Batch changes only in publish.
type batch struct {
	from    *core.Batch
	entries []newEntry
	records []record
	states  map[core.Path][]byte
	size    int

	epoch writeEpoch
	ended []core.TurnID // the turns that this batch ends; of those in Answered, only the muted ones
	muted []core.TurnID // those of them that wrote something and answer forgotten people
	// people are the authors of what the batch answers, and the askers. What a turn sent is deleted when one
	// of them is forgotten.
	people []string
}

type newEntry struct {
	path         core.Path
	seq          uint64
	known, begun bool
}

type record struct {
	key   core.Key
	value []byte
}

// Commit implements core.Store. If people were forgotten after the epoch of the context began, it stores their
// entries without content and author, and does not store quotes of them. Its errors wrap ErrBatch for an invalid
// batch, core.ErrFull, core.ErrClosed, core.ErrDamaged, or ctx's error if it ended before writing began.
func (db *DB) Commit(ctx context.Context, b *core.Batch) error {
	w, err := prepareBatch(b)
	if err != nil {
		return err
	}
	if w.size+len(b.Answered)+len(b.Settled)+len(b.States)+len(b.Closed) == 0 {
		return ctx.Err()
	}
	w.epoch = db.epochOf(ctx)
	return db.write(ctx, &job{
		name: w.jobName(), run: w.run, prefetch: w.reads, publish: w.publish, size: w.size + 1, finishing: b.Finishing,
	})
}

// prepareBatch checks the batch, and encodes what may be invalid JSON.
func prepareBatch(b *core.Batch) (*batch, error) {
	w := &batch{from: b, entries: make([]newEntry, len(b.Append)), records: make([]record, len(b.Journal)),
		states: make(map[core.Path][]byte, len(b.States))}
	for i := range b.Append {
		e := &b.Append[i]
		if err := checkEvent(&e.Event, false); err != nil {
			return nil, fmt.Errorf("entry %d: %w", i, err)
		}
		w.size += e.Message.TextSize() + 400
	}
	for i := range b.Change {
		if err := checkEvent(&b.Change[i], true); err != nil {
			return nil, fmt.Errorf("change %d: %w", i, err)
		}
		w.size += b.Change[i].Message.TextSize() + 200
	}
	for i, r := range b.Journal {
		value, err := json.Marshal(storedRecord{Progress: r.Progress, Time: r.Time, Data: r.Data})
		if err = cmp.Or(err, checkPlace(r.Key.Turn.Path)); err != nil {
			return nil, fmt.Errorf("record %d: %w: %w", i, ErrBatch, err)
		}
		w.records[i] = record{r.Key, value}
		w.size += len(value) + 100
	}
	for i, turn := range slices.Concat(b.Answered, b.Settled) {
		if err := checkPlace(turn.Path); err != nil {
			return nil, fmt.Errorf("answered %d: %w: %w", i, ErrBatch, err)
		}
	}
	for path, s := range b.States {
		value, err := encodeState(s)
		if err = cmp.Or(err, checkPlace(path)); err != nil {
			return nil, fmt.Errorf("state: %w: %w", ErrBatch, err)
		}
		w.states[path] = value
	}
	return w, nil
}

// checkEvent returns an error for an event that can never be stored: as an entry or, with changes, as a change of one.
func checkEvent(e *core.Event, changes bool) error {
	m, isChange := &e.Message, false
	switch e.Kind {
	case core.KindEdit, core.KindDeletion, core.KindReaction, core.KindMigration:
		isChange = true
	}
	switch {
	case e.Kind == "":
		return fmt.Errorf("%w: no kind", ErrBatch)
	case isChange && !changes:
		return fmt.Errorf("%w: %s changes an entry and is not one", ErrBatch, e.Kind)
	case changes && !isChange:
		return fmt.Errorf("%w: %q changes nothing; it is an entry", ErrBatch, e.Kind)
	case len(m.ID) > maxIDBytes:
		return fmt.Errorf("%w: an id of %d bytes", ErrBatch, len(m.ID))
	case m.TextSize() > maxEntryBytes:
		return fmt.Errorf("%w: a text of %d bytes", ErrBatch, m.TextSize())
	case m.Path.IsZero():
		return fmt.Errorf("%w: %w", ErrBatch, errNoPlace)
	}
	return nil
}

var errNoPlace = errors.New("no place")

func checkPlace(path core.Path) error {
	if path.IsZero() {
		return errNoPlace
	}
	return nil
}

func askersIn(records []core.Record) (askers []string) {
	for _, r := range records {
		if r.Key == (core.Key{Turn: r.Key.Turn}) && bytes.Contains(r.Data, []byte(`"askers"`)) { // few have some
			var o core.TurnRecord
			_ = json.Unmarshal(r.Data, &o) // see isAnswered
			askers = append(askers, o.Askers...)
		}
	}
	return askers
}

// run writes the batch. Entries come before changes and records, which may refer to them.
func (w *batch) run(t *tx) error {
	w.muted, w.ended, w.people = nil, nil, askersIn(w.from.Journal)
	for _, mark := range w.from.Answered {
		w.ended = append(w.ended, w.epoch.mutedUpTo(mark)...)
	}
	w.ended = append(w.ended, w.from.Settled...)
	for _, turn := range w.ended {
		wrote := slices.ContainsFunc(w.records, func(r record) bool { return r.key.Turn == turn })
		if wrote && w.epoch.isMuted(turn) {
			w.muted = append(w.muted, turn)
		}
	}
	for i, turn := range slices.Concat(w.from.Answered, w.from.Settled) {
		for _, person := range t.answer(turn, i >= len(w.from.Answered)) {
			if person != "" && !slices.Contains(w.people, person) {
				w.people = append(w.people, person)
			}
		}
	}
	for i := range w.entries {
		w.entries[i] = w.append(t, &w.from.Append[i])
	}
	for i := range w.from.Change {
		t.change(&w.from.Change[i])
	}
	for _, r := range w.records { // also of the turn whose question a turn decides
		if !w.epoch.isMuted(r.key.Turn) && !w.epoch.isMuted(w.epoch.turn) {
			t.putRecord(r)
		}
	}
	for path, value := range w.states {
		if !slices.ContainsFunc(w.muted, func(t core.TurnID) bool { return t.Path == path }) {
			t.bucket(bucketStates).set(t.resolve(path).key, value)
		}
	}
	for _, turn := range w.from.Closed {
		closeTurn(t, turn)
	}
	return nil
}

// answer marks entries of a place as answered: all up to the turn's number or, with only, just that one. It
// returns the people whom the turn answers. The place's answered mark stays if an older entry still waits: one
// that only skips or, after the turn's place moved, one that the new place had before.
func (t *tx) answer(turn core.TurnID, only bool) (people []string) {
	p := t.resolve(turn.Path)
	h := t.head(p.key)
	last := turn.Seq + p.shift
	if only && last > h.last {
		return nil
	}
	last = min(last, h.last)
	left := false
	for _, seq := range t.waiting(p.key, last) {
		if seq <= p.shift || only && seq != last {
			left = true
			continue
		}
		t.bucket(bucketDue).Delete(seqKey(p.key, seq))
		l, ok := t.entry(p, seq)
		if ok && !l.Self {
			people = append(append(people, l.answers...), l.Message.Author.ID)
		}
		if ok && left { // the mark stays below this entry
			l.Due = false
			t.rewrite(&l)
		}
	}
	if !left {
		h.answered = max(h.answered, last)
	}
	return people
}

func (t *tx) rewrite(l *storedEntry) {
	t.bucket(bucketLog).Put(seqKey(placeKey(l.Message.Path), l.Message.Seq), encodeEntry(l))
}

// waiting lists the numbers, up to upTo, of the entries that wait in a place.
func (t *tx) waiting(place []byte, upTo uint64) []uint64 {
	var seqs []uint64
	for seq := range t.numbers(bucketDue, place, 0) {
		if seq > upTo {
			break
		}
		seqs = append(seqs, seq)
	}
	return seqs
}

// firstWaiting is the number of the oldest entry that waits in a place; 0: none does.
func firstWaiting(t *tx, place []byte) uint64 {
	for seq := range t.numbers(bucketDue, place, 0) {
		return seq
	}
	return 0
}

// closeTurn drops the records of a turn, unless a step waits for a confirmation.
func closeTurn(t *tx, turn core.TurnID) {
	p := t.resolve(turn.Path)
	records := seqKey(p.key, turn.Seq+p.shift)
	for _, value := range t.bucket(bucketJournal).prefixed(records) {
		if bytes.Contains(value, []byte(core.ProgressPending)) { // else it need not be decoded
			if w, err := decodeRecord(value); err == nil && w.Progress == core.ProgressPending {
				return
			}
		}
	}
	t.deleteBelow(bucketJournal, records)
}

func (w *batch) publish() {
	w.epoch.unmute(w.ended)
	w.from.Known, w.from.Begun = make([]bool, len(w.entries)), make([]bool, len(w.entries))
	for i, e := range w.entries {
		m := &w.from.Append[i].Message
		m.Path, m.Seq = e.path, e.seq
		w.from.Known[i], w.from.Begun[i] = e.known, e.begun
	}
}

// append adds one entry, without what belongs to people who were forgotten.
func (w *batch) append(t *tx, from *core.Entry) newEntry {
	l := storedEntry{Entry: *from}
	if from.Self || from.Kind == core.KindContinue { // the outcome of a turn that this batch ends
		l.answers = w.people
		if len(w.muted) > 0 {
			l.forget()
		}
	} else if !t.forgotten().dropOld(&l.Entry) {
		return newEntry{path: from.Message.Path, known: true}
	}
	w.epoch.dropForgotten(&l)
	e := t.append(&l)
	if w.from.Begin && l.Due && !e.known && firstWaiting(t, placeKey(e.path)) == e.seq {
		e.begun = true
		t.putRecord(record{core.Key{Turn: core.TurnID{Path: e.path, Seq: e.seq}}, core.JSON(storedRecord{
			Progress: core.ProgressStarted, Time: t.now, Data: core.JSON(core.TurnRecord{Last: e.seq, Attempts: 1}),
		})})
	}
	return e
}

// append adds one entry to the end of its place's log, unless its id is known.
func (t *tx) append(l *storedEntry) newEntry {
	m := &l.Message
	p := t.resolve(m.Path)
	if m.ID != "" {
		seq, known := t.findID(p, m.ID)
		if known || t.forgotten().isGone(p.ids, shortID(m.ID)) {
			return newEntry{path: p.path, seq: seq, known: true}
		}
	}
	l.Data = core.Renumber(l.Data, p.shift)
	h := t.head(p.key)
	if h.last == 0 {
		h.last = t.db.epochs.floor.Load()
	}
	h.last++
	h.count++
	h.time = m.Time
	h.private = h.private || m.Private
	key := seqKey(p.key, h.last)
	t.bucket(bucketLog).Put(key, encodeEntry(l))
	if m.ID != "" {
		t.putID(p, m.ID, h.last)
	}
	if l.Due {
		t.bucket(bucketDue).Put(key, nil)
	}
	return newEntry{path: p.path, seq: h.last}
}

type storedRecord struct {
	Progress core.Progress   `json:"p"`
	Time     time.Time       `json:"t,omitzero"`
	Data     json.RawMessage `json:"d,omitempty"`
	Shift    uint64          `json:"s,omitempty"` // how much the numbers in Data have risen since: the place moved
}

// shiftRecord adds to the Shift of a turn's first record, if it can be read.
func shiftRecord(value []byte, shift uint64) []byte {
	w, err := decodeRecord(value)
	if err != nil {
		return value
	}
	w.Shift += shift
	return core.JSON(w)
}

func decodeRecord(value []byte) (storedRecord, error) {
	var w storedRecord
	if err := json.Unmarshal(value, &w); err != nil {
		return storedRecord{}, fmt.Errorf("record: %w", err)
	}
	return w, nil
}

// putRecord stores a record of a journal, under the path to which its place moved.
func (t *tx) putRecord(r record) {
	p := t.resolve(r.key.Turn.Path)
	r.key.Turn.Seq += p.shift
	if p.shift > 0 && r.key == (core.Key{Turn: r.key.Turn}) {
		r.value = shiftRecord(r.value, p.shift)
	}
	t.bucket(bucketJournal).Put(journalKey(p.key, r.key), r.value)
}
