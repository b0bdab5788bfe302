package memory

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/llm"
)

// row is one line of an export. One of its fields is set, or Entry and Answers.
type row struct {
	Entry    *core.Entry  `json:"entry,omitempty"`
	Answers  []string     `json:"answers,omitempty"`
	Reaction *reactionRow `json:"reaction,omitempty"`
	Memory   *core.Fact   `json:"memory,omitempty"`
	State    *stateRow    `json:"state,omitempty"`
	Item     *itemRow     `json:"item,omitempty"`
	Use      *Use         `json:"use,omitempty"`
	Record   *core.Record `json:"record,omitempty"`
}

// reactionRow is a person's reactions to the message ID.
type reactionRow struct {
	Path   core.Path `json:"path"`
	ID     string    `json:"id"`
	Person string    `json:"person"`
	Emoji  []string  `json:"emoji"`
}

type stateRow struct {
	Path  core.Path  `json:"path"`
	State core.State `json:"state"`
}

type itemRow struct {
	Plugin string          `json:"plugin"`
	Path   core.Path       `json:"path,omitzero"`
	Key    string          `json:"key"`
	Value  json.RawMessage `json:"value"`
}

func decodeState(k, v []byte) (s stateRow, err error) {
	s.Path, err = parsePlace(k)
	err = errors.Join(err, json.Unmarshal(v, &s.State))
	return s, err
}

func decodeItem(k, v []byte) (itemRow, error) {
	plugin, rest, _ := bytes.Cut(k, []byte{terminator})
	item, err := itemAt(rest, v)
	return itemRow{string(plugin), item.Path, item.Key, item.Value}, err
}

// Export writes what is stored about a person, a place and all below it, or, for the zero Path, everybody, as JSON
// Lines: entries in the order of places and numbers, each with the reactions to it; then memories with their former
// texts, states, what plugins store, and usage.
//
// For a person, it writes what they said and what the bot answered them, their reactions, their private places as a
// whole, memories by them or about them, what plugins store under their path, and, beyond other exports, the
// journal of the turns that answered them. It leaves out the private thoughts of the model, which no user is shown.
// Invalid UTF-8 is replaced.
func (db *DB) Export(ctx context.Context, w io.Writer, path core.Path) error {
	var err error
	switch w.(type) {
	case NonBlocking, *bytes.Buffer:
		err = exportTo(ctx, db, w, path)
	default:
		_, err = db.engine.spool(w, func(w io.Writer) error { return exportTo(ctx, db, w, path) })
	}
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

// NonBlocking marks a writer that does not block: Export writes to it directly, without a temporary file.
type NonBlocking interface{ NonBlocking() }

// exportTo is Export to a writer that does not block.
func exportTo(ctx context.Context, db *DB, w io.Writer, path core.Path) error {
	out := bufio.NewWriter(w)
	e := exporter{of: newSubject(ctx, db, path), out: json.NewEncoder(out)}
	if e.of.person != "" {
		e.out = json.NewEncoder(llm.ThoughtlessLines(out))
	}
	e.out.SetEscapeHTML(false)
	err := e.of.find()
	if err == nil {
		err = db.view(ctx, func(v *view) error {
			e.view = v
			e.writeEntries()
			writeAll(&e, bucketFacts, decodeFact, func(f *core.Fact) (row, bool) {
				return row{Memory: f}, e.exportsFact(f)
			})
			writeAll(&e, bucketStates, decodeState, func(s *stateRow) (row, bool) {
				return row{State: s}, e.of.covers(s.Path)
			})
			writeAll(&e, bucketPlugins, decodeItem, func(i *itemRow) (row, bool) {
				return row{Item: i}, e.of.coversItem(i.Path, i.Key)
			})
			writeAll(&e, bucketUsage, readUse, func(u *Use) (row, bool) { return row{Use: u}, e.of.covers(u.Person) })
			e.writeJournals()
			return e.err
		})
	}
	return errors.Join(err, out.Flush())
}

type exporter struct {
	*view
	of  *subject
	out *json.Encoder
	err error // the first one of writing
}

// writeAll writes the rows of what a bucket holds, of those that belong to the export.
func writeAll[T any](e *exporter, bucket string, decode func(k, v []byte) (T, error), rowOf func(*T) (row, bool)) {
	for one := range decoded(&e.tx, bucket, nil, nil, decode) {
		if r, ok := rowOf(&one); ok {
			e.write(r)
		}
	}
}

func (e *exporter) write(r row) {
	if e.err == nil {
		e.err = e.out.Encode(r)
	}
}

func (e *exporter) writeEntries() {
	for k, v := range e.bucket(bucketLog).pairs(nil, nil) {
		l, ok, err := e.of.readEntry(k, v)
		switch {
		case err != nil:
			e.db.logUnreadable(fmt.Errorf("%s: %w", bucketLog, err))
		case ok:
			e.writeEntry(&l)
		}
	}
}

func (e *exporter) writeEntry(l *storedEntry) {
	_, whole := e.of.Whole[l.Message.Path]
	h, _ := e.readHead(placeKey(l.Message.Path)) // of.heads may be older than the entries of this view
	if h.private {
		l.Message.Private = true // so that an import learns that the place is private
	}
	if e.of.concerns(l) {
		r := row{Entry: &l.Entry, Answers: l.answers}
		if !whole {
			others := func(id string) bool { return id != e.of.person }
			r.Answers = slices.DeleteFunc(slices.Clone(l.answers), others)
		}
		e.write(r)
	}
	for _, person := range slices.Sorted(maps.Keys(l.reactors)) {
		if whole || person == e.of.person {
			e.write(row{Reaction: &reactionRow{l.Message.Path, l.Message.ID, person, l.reactors[person]}})
		}
	}
}

func (e *exporter) exportsFact(f *core.Fact) bool {
	if e.of.person == "" {
		return f.Origin.Within(e.of.path)
	}
	return e.of.concernsFact(*f) || slices.ContainsFunc(f.Former, e.of.wroteFormer)
}

// writeJournals writes the journal of the turns that answered a person or were in a private conversation with them.
func (e *exporter) writeJournals() {
	if e.of.person == "" {
		return
	}
	for turn, records := range e.turns(subtree(e.of.within)) {
		_, whole := e.of.Whole[turn.Path]
		if !whole && !e.of.isAnswered(&e.tx, records) {
			continue
		}
		for _, r := range records {
			if w, ok := e.readRecord(r.key, r.value); ok {
				e.write(row{Record: &core.Record{Key: r.key, Progress: w.Progress, Time: w.Time, Data: w.Data}})
			}
		}
	}
}

// Limits of an import.
const (
	maxRow     = 32 << 20 // bytes of one line
	importStep = 500      // lines of one transaction
)

// CheckItem returns an error for an item that its plugin cannot read.
type CheckItem func(plugin string, item core.Item) error

// Import adds the content of an export. It returns how many lines it read, and how many of them added or changed
// something: none if the same export was imported before. Known entries stay as they are; the others do not wait for an
// answer. Memories replace those that they repeat; items and states replace what is there; of the usage of a place or
// person on a day, the larger counts; journals are left out. check, if not nil, refuses invalid items of plugins. An
// error names the line; what came before is stored.
func (db *DB) Import(ctx context.Context, r io.Reader, check CheckItem) (lines, added int, err error) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 0, 64<<10), maxRow)
	var rows []row
	known := make(twins)
	store := func() error {
		n, err := importRows(ctx, db, rows, known)
		rows, added = rows[:0], added+n
		return err
	}
	for scanner.Scan() {
		lines++
		if strings.TrimSpace(scanner.Text()) == "" {
			continue
		}
		parsed, err := parseRow(scanner.Bytes())
		if err == nil && parsed.Item != nil && check != nil {
			i := parsed.Item
			err = check(i.Plugin, core.Item{Path: i.Path, Key: i.Key, Value: i.Value})
		}
		if err != nil {
			err = fmt.Errorf("import: line %d: %w", lines, err)
			return lines, added, errors.Join(err, store())
		}
		rows = append(rows, parsed)
		if len(rows) == importStep {
			if err := store(); err != nil {
				return lines, added, fmt.Errorf("import: up to line %d: %w", lines, err)
			}
		}
	}
	if err := errors.Join(scanner.Err(), store()); err != nil {
		return lines, added, fmt.Errorf("import: line %d: %w", lines, err)
	}
	return lines, added, nil
}

func parseRow(text []byte) (r row, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		return row{}, fmt.Errorf("%w: %w", ErrBatch, err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return row{}, fmt.Errorf("%w: there is more after the JSON value", ErrBatch)
	}
	switch {
	case r.Entry != nil:
		r.Entry.Due = false
		return r, cmp.Or(checkEvent(&r.Entry.Event, false), checkRanks(&r.Entry.Message))
	case r.Reaction != nil:
		return r, checkReaction(r.Reaction)
	case r.Memory != nil:
		r.Memory.ID = ""
		return r, checkFact(r.Memory)
	case r.Item != nil:
		return r, checkItem(r.Item.Plugin, r.Item.Key)
	case r.Use != nil:
		return r, checkUse(r.Use)
	case r.State != nil && !r.State.Path.IsZero(), r.Record != nil:
		return r, nil
	}
	return row{}, fmt.Errorf("%w: it contains nothing that can be imported", ErrBatch)
}

func checkRanks(m *core.Message) error {
	authors := []core.Author{m.Author}
	if m.ReplyTo != nil {
		authors = append(authors, m.ReplyTo.From)
	}
	for _, f := range m.Foreign {
		authors = append(authors, f.From)
	}
	for _, a := range authors {
		if a.Rank > core.RankBot {
			return fmt.Errorf("%w: there is no rank %d", ErrBatch, a.Rank)
		}
	}
	return nil
}

func checkUse(u *Use) error {
	_, err := time.Parse(time.DateOnly, u.Day)
	badCost := u.Cost != nil && *u.Cost < 0
	if err != nil || badEngine(u.Engine) || min(u.Calls, u.In, u.Out, u.Cached) < 0 || badCost {
		return fmt.Errorf("%w: invalid usage", ErrBatch)
	}
	return nil
}

func checkReaction(r *reactionRow) error {
	invalid := slices.ContainsFunc(r.Emoji, func(emoji string) bool {
		return emoji == "" || len(emoji) > maxEmoji || strings.HasPrefix(emoji, core.TakenAway)
	})
	tooLong := len(r.ID) > maxIDBytes || len(r.Person) > maxIDBytes || len(r.Emoji) > maxReactors
	if r.Path.IsZero() || r.ID == "" || r.Person == "" || invalid || tooLong {
		return fmt.Errorf("%w: invalid reaction", ErrBatch)
	}
	return nil
}

func importRows(ctx context.Context, db *DB, rows []row, known twins) (added int, err error) {
	var left twins
	err = db.write(ctx, &job{run: func(t *tx) error { // it may run several times
		added, left = 0, known.clone()
		for _, r := range rows {
			if r.Entry != nil && left.take(t, r.Entry) {
				continue
			}
			changed, err := importRow(t, r)
			if err != nil {
				return err
			}
			if changed {
				added++
			}
		}
		return nil
	}})
	if err != nil {
		return 0, err
	}
	maps.Copy(known, left)
	return added, nil
}

// twins counts the entries without an id that a place had before an import, by what they say. Nothing else shows
// whether such an entry is known.
type twins map[core.Path]map[[sha256.Size]byte]int

func (w twins) clone() twins {
	all := maps.Clone(w)
	for place, counts := range all {
		all[place] = maps.Clone(counts)
	}
	return all
}

// take reports whether an entry has no id and is known. Each known one counts for one entry.
func (w twins) take(t *tx, e *core.Entry) bool {
	if e.Message.ID != "" {
		return false
	}
	said := func(e *core.Entry) [sha256.Size]byte {
		m := &e.Message
		return sha256.Sum256(core.JSON([]any{e.Kind, m.Author.ID, m.Time.UnixNano(), m.Text, e.Target}))
	}
	p := t.resolve(e.Message.Path)
	if w[p.path] == nil {
		w[p.path] = make(map[[sha256.Size]byte]int)
		for seq, value := range t.numbers(bucketLog, p.key, 0) {
			l, ok := t.readEntry(p.path, seq, value)
			if ok && l.Message.ID == "" {
				w[p.path][said(&l.Entry)]++
			}
		}
	}
	key := said(e)
	n := w[p.path][key]
	w[p.path][key] = max(n-1, 0)
	return n > 0
}

func importRow(t *tx, r row) (changed bool, err error) {
	switch {
	case r.Entry != nil:
		return !t.append(&storedEntry{Entry: *r.Entry, answers: r.Answers}).known, nil
	case r.Reaction != nil:
		t.changeEntry(r.Reaction.Path, r.Reaction.ID, func(l *storedEntry) bool {
			changed = importReactions(l, r.Reaction.Person, r.Reaction.Emoji)
			return changed
		})
	case r.Memory != nil:
		return importFact(t, *r.Memory)
	case r.Item != nil:
		return importItem(t, r.Item)
	case r.State != nil:
		value, _ := encodeState(r.State.State) // it came as JSON
		states, key := t.bucket(bucketStates), t.resolve(r.State.Path).key
		changed = !bytes.Equal(states.Get(key), value)
		states.set(key, value)
	case r.Use != nil:
		return importUse(t, *r.Use), nil
	}
	return changed, nil
}

// importFact saves a memory, without the former texts that the one that it replaces has, too.
func importFact(t *tx, f core.Fact) (changed bool, err error) {
	f.Origin = t.resolve(f.Origin).path
	olds, err := t.facts().replacedBy(f)
	if err != nil {
		return false, err
	}
	if len(olds) > 0 {
		f.Former = slices.DeleteFunc(f.Former, func(former core.Former) bool {
			return slices.ContainsFunc(olds[0].Former, func(known core.Former) bool {
				return known.Text == former.Text && known.Time.Equal(former.Time)
			})
		})
	}
	saved, err := t.facts().saveFact(f)
	return !saved.Known, err
}

func importItem(t *tx, i *itemRow) (changed bool, err error) {
	store := items{t.db, i.Plugin}
	old, known, err := store.read(t, i.Path, i.Key)
	if err != nil || known && bytes.Equal(core.JSON(old.Value), core.JSON(i.Value)) {
		return false, err
	}
	_, err = store.write(t, core.Item{Path: i.Path, Key: i.Key, Version: core.AnyVersion, Value: i.Value})
	return err == nil, err
}

// importReactions adds the reactions of a person, unless some of theirs are known. The entry counts them already if it
// was imported, too, but not if it was stored without them.
func importReactions(l *storedEntry, person string, emoji []string) (changed bool) {
	if l.reactors[person] != nil {
		return false
	}
	for _, e := range emoji {
		before, known := l.Reactions[e], 1
		for _, theirs := range l.reactors {
			if slices.Contains(theirs, e) {
				known++
			}
		}
		if react(l, person, e) {
			l.Reactions[e] = max(before, known)
			changed = true
		}
	}
	return changed
}
