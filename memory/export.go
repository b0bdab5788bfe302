package memory

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/llm"
)

// row is one line of an export: just one of its fields is set, but for Answers,
// which says of an Entry whom it answers.
type row struct {
	Entry    *core.Entry  `json:"entry,omitempty"`
	Answers  []string     `json:"answers,omitempty"`
	Reaction *reactionRow `json:"reaction,omitempty"`
	Memory   *core.Fact   `json:"memory,omitempty"`
	State    *stateRow    `json:"state,omitempty"`
	Item     *itemRow     `json:"item,omitempty"`
	Use      *useRow      `json:"use,omitempty"`
	Record   *core.Record `json:"record,omitempty"`
}

// reactionRow is what a person put on the message ID.
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

type useRow struct {
	Day    string    `json:"day"`
	Person core.Path `json:"person,omitzero"`
	Engine string    `json:"engine"`
	Calls  int       `json:"calls"`
	llm.Usage
}

// Export writes what is kept of a person, of a place and all below it, or, for
// the zero Path, of everybody, as JSON Lines: entries in the order of places and
// numbers, each with the reactions to it; then memories with their former texts,
// states, what plugins keep, and use.
//
// Of a person it writes all that they may ask for: what they said and what the bot
// answered them, their reactions, their private places as a whole, what is known by
// them or about them, what plugins keep under their path, and, beyond what other
// exports hold, the journal of the turns that answered them. Bytes that are not valid
// UTF-8 are replaced.
func (db *DB) Export(ctx context.Context, w io.Writer, path core.Path) error {
	var err error
	if _, ok := w.(NonBlocking); ok {
		err = export(ctx, db, w, path)
	} else {
		_, err = db.file.spool(w, func(w io.Writer) error { return export(ctx, db, w, path) })
	}
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

// NonBlocking is the ability of a writer that lets nobody wait: what is exported to it is
// not put on the disk before.
type NonBlocking interface{ NonBlocking() }

// export is Export to what takes it without delay.
func export(ctx context.Context, db *DB, w io.Writer, path core.Path) error {
	out := bufio.NewWriter(w)
	e := exporter{out: json.NewEncoder(out), path: path, private: make(map[core.Path]bool)}
	e.out.SetEscapeHTML(false)
	if path.IsPerson() {
		e.person = path.Elements()[2]
	}
	err := db.view(ctx, func(v *view) error {
		e.view = v
		return db.file.guard(e.all)
	})
	return errors.Join(err, out.Flush())
}

type exporter struct {
	*view
	out     *json.Encoder
	err     error // the first one of out
	path    core.Path
	person  string
	private map[core.Path]bool // the person's places
}

func (e *exporter) all() error {
	if e.person != "" {
		e.each(bucketLog, e.findPrivate)
	}
	e.each(bucketLog, e.entry)
	e.each(bucketFacts, e.fact)
	e.each(bucketStates, e.state)
	e.each(bucketPlugins, e.item)
	e.each(bucketUsage, e.use)
	e.records()
	return e.err
}

// each calls use for all that a bucket holds. What cannot be read is left out.
func (e *exporter) each(bucket string, use func(k, v []byte) error) {
	c := e.bucket(bucket).Cursor()
	for k, v := c.First(); k != nil && e.err == nil; k, v = c.Next() {
		if err := use(k, v); err != nil {
			e.db.odd(fmt.Errorf("%s: %w", bucket, err))
		}
	}
}

func (e *exporter) write(r row) {
	if e.err == nil {
		e.err = e.out.Encode(r)
	}
}

// line reads an entry, if it may concern whom the export is about.
func (e *exporter) line(k, v []byte) (l line, ok bool, err error) {
	path, seq, err := entryOf(k)
	if err != nil {
		return line{}, false, err
	}
	wanted := path.Within(e.path)
	if e.person != "" {
		named := path.Interface() == e.path.Interface() && bytes.Contains(v, []byte(e.person))
		wanted = named || e.private[path]
	}
	if !wanted {
		return line{}, false, nil
	}
	l, err = decodeLine(v, path, seq)
	return l, err == nil, err
}

// findPrivate notes the places where the person speaks with the bot alone.
func (e *exporter) findPrivate(k, v []byte) error {
	l, _, err := e.line(k, v)
	if l.Message.Private && l.Message.Author.ID == e.person {
		e.private[l.Message.Path] = true
	}
	return err
}

func (e *exporter) entry(k, v []byte) error {
	l, ok, err := e.line(k, v)
	if !ok {
		return err
	}
	whole := e.person == "" || e.private[l.Message.Path]
	h, _ := e.readHead(placeKey(l.Message.Path))
	if h.private {
		l.Message.Private = true // so that what imports it knows the place for one
	}
	if whole || l.Message.Author.ID == e.person || slices.Contains(l.answers, e.person) {
		r := row{Entry: &l.Entry, Answers: l.answers}
		if !whole {
			r.Answers = slices.DeleteFunc(slices.Clone(l.answers), func(other string) bool { return other != e.person })
		}
		e.write(r)
	}
	for _, person := range slices.Sorted(maps.Keys(l.reactors)) {
		if whole || person == e.person {
			e.write(row{Reaction: &reactionRow{l.Message.Path, l.Message.ID, person, l.reactors[person]}})
		}
	}
	return nil
}

func (e *exporter) fact(k, v []byte) error {
	f, err := decodeFact(k, v)
	if err != nil {
		return err
	}
	former := slices.ContainsFunc(f.Former, func(old core.Former) bool { return old.By == e.path })
	his := f.By == e.path || former || slices.Contains(f.About, e.path) || e.private[f.Origin]
	if e.person != "" && his || e.person == "" && f.Origin.Within(e.path) {
		e.write(row{Memory: &f})
	}
	return nil
}

// holds reports whether what is kept under a path belongs to the export.
func (e *exporter) holds(path core.Path) bool {
	for above := path; !above.IsZero(); above = above.Parent() {
		if e.private[above] {
			return true
		}
	}
	return path.Within(e.path)
}

func (e *exporter) state(k, v []byte) error {
	path, err := placeOf(k)
	if err != nil || !e.holds(path) {
		return err
	}
	s := stateRow{Path: path}
	if err = json.Unmarshal(v, &s.State); err == nil {
		e.write(row{State: &s})
	}
	return err
}

func (e *exporter) item(k, v []byte) error {
	plugin, rest, _ := bytes.Cut(k, []byte{ending})
	item, err := itemAt(rest, v)
	if err != nil || !e.holds(item.Path) && (e.person == "" || item.Key != e.path.String()) {
		return err
	}
	e.write(row{Item: &itemRow{string(plugin), item.Path, item.Key, item.Value}})
	return nil
}

func (e *exporter) use(k, v []byte) error {
	u, err := readUse(k, v)
	if err != nil || !e.holds(u.Person) {
		return err
	}
	e.write(row{Use: &useRow{u.Day, u.Person, u.Engine, u.Calls, u.Usage}})
	return nil
}

// records writes the journal of the turns that answered a person, or that took
// place where they speak with the bot alone.
func (e *exporter) records() {
	if e.person == "" {
		return
	}
	f := forgetting{db: e.db, path: e.path, person: e.person, whole: map[core.Path]uint64{}}
	for path := range e.private {
		f.whole[path] = math.MaxUint64
	}
	within := interfaceOf(e.path)
	f.heads = e.headsBelow(within)
	from, to := subtree(within)
	f.turns(&e.tx, from, to, func(turn core.TurnID, keys []core.Key, answers bool) {
		if !answers {
			return
		}
		for _, key := range keys {
			w, ok := e.readRecord(key, e.bucket(bucketJournal).Get(journalKey(placeKey(turn.Path), key)))
			if ok {
				e.write(row{Record: &core.Record{Key: key, Progress: w.Progress, Time: w.Time, Data: w.Data}})
			}
		}
	})
}

// Limits of an import.
const (
	maxRow     = 32 << 20 // bytes of one line
	importStep = 500      // lines of one transaction
)

// Import adds what an export holds and returns how many lines it read. Entries
// that are known stay as they are; none of the others waits for an answer.
// Memories find those that they repeat; items and states replace what is there;
// use is added up; records of a journal, which no bot could go on with, are left
// out. An error names the line; what came before it is kept.
func (db *DB) Import(ctx context.Context, r io.Reader) (lines int, err error) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 0, 64<<10), maxRow)
	var rows []row
	for scanner.Scan() {
		lines++
		if strings.TrimSpace(scanner.Text()) == "" {
			continue
		}
		parsed, err := parseRow(scanner.Bytes())
		if err != nil {
			return lines, errors.Join(fmt.Errorf("import: line %d: %w", lines, err), importRows(ctx, db, rows))
		}
		rows = append(rows, parsed)
		if len(rows) == importStep {
			if err := importRows(ctx, db, rows); err != nil {
				return lines, fmt.Errorf("import: up to line %d: %w", lines, err)
			}
			rows = rows[:0]
		}
	}
	if err := errors.Join(scanner.Err(), importRows(ctx, db, rows)); err != nil {
		return lines, fmt.Errorf("import: line %d: %w", lines, err)
	}
	return lines, nil
}

// parseRow reads and checks one line.
func parseRow(text []byte) (r row, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		return row{}, fmt.Errorf("%w: %w", ErrBatch, err)
	}
	switch {
	case r.Entry != nil:
		r.Entry.Due = false
		return r, checkEntry(r.Entry)
	case r.Reaction != nil:
		return r, checkReaction(r.Reaction)
	case r.Memory != nil:
		r.Memory.ID = ""
		return r, checkFact(r.Memory)
	case r.Item != nil:
		return r, checkItem(r.Item.Plugin, r.Item.Key)
	case r.State != nil && !r.State.Path.IsZero(), r.Record != nil, r.Use != nil && len(r.Use.Day) == 10:
		return r, nil
	}
	return row{}, fmt.Errorf("%w: nothing that can be imported", ErrBatch)
}

func checkReaction(r *reactionRow) error {
	tooLong := slices.ContainsFunc(r.Emoji, func(emoji string) bool { return len(emoji) > maxEmoji })
	tooLong = tooLong || len(r.ID) > maxIDBytes || len(r.Person) > maxIDBytes || len(r.Emoji) > maxReactors
	if r.Path.IsZero() || r.ID == "" || r.Person == "" || tooLong {
		return fmt.Errorf("%w: a reaction that cannot be one", ErrBatch)
	}
	return nil
}

func importRows(ctx context.Context, db *DB, rows []row) error {
	if len(rows) == 0 {
		return nil
	}
	return db.write(ctx, &job{run: func(t *tx) error {
		for _, r := range rows {
			if err := t.importRow(r); err != nil {
				return err
			}
		}
		return nil
	}})
}

func (t *tx) importRow(r row) error {
	switch {
	case r.Entry != nil:
		t.append(r.Entry, &entry{value: encodeLine(&line{Entry: *r.Entry, answers: r.Answers})})
	case r.Reaction != nil: // the entry counts it already
		t.touch(r.Reaction.Path, r.Reaction.ID, func(l *line) bool {
			if l.reactors == nil {
				l.reactors = make(map[string][]string)
			}
			l.reactors[r.Reaction.Person] = r.Reaction.Emoji
			return len(l.reactors) <= maxReactors
		})
	case r.Memory != nil:
		_, err := t.saveFact(*r.Memory)
		return err
	case r.Item != nil:
		i := r.Item
		_, err := t.putItem(i.Plugin, core.Item{Path: i.Path, Key: i.Key, Version: core.AnyVersion, Value: i.Value})
		return err
	case r.State != nil:
		value, err := json.Marshal(r.State.State)
		if err != nil {
			return fmt.Errorf("state: %w", err)
		}
		t.setState(r.State.Path, value)
	case r.Use != nil:
		u := r.Use
		t.addUse(Use{Day: u.Day, Person: u.Person, Engine: u.Engine, Calls: u.Calls, Usage: u.Usage})
	}
	return nil
}
