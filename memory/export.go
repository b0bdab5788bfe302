package memory

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"synthbot/core"
)

// row is one line of an export: just one of its fields is set.
type row struct {
	Entry  *core.Entry `json:"entry,omitempty"`
	Memory *Fact       `json:"memory,omitempty"`
	State  *stateRow   `json:"state,omitempty"`
	Item   *itemRow    `json:"item,omitempty"`
	Use    *useRow     `json:"use,omitempty"`
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
	core.Usage
}

// Export writes what is kept of a person, of a place and all below it, or, for
// the zero Path, of everybody, as JSON Lines: entries in the order of places and
// numbers, then memories, states, what plugins keep, and use. Journals stay out.
// Bytes that are no UTF-8 are replaced.
func (db *DB) Export(ctx context.Context, w io.Writer, path core.Path) error {
	out := bufio.NewWriter(w)
	e := exporter{out: json.NewEncoder(out), path: path}
	e.out.SetEscapeHTML(false)
	if path.IsPerson() {
		e.person = path.Elements()[2]
	}
	err := db.view(ctx, func(v *view) error {
		e.view = v
		return db.guard(e.all)
	})
	if err = errors.Join(err, out.Flush()); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

type exporter struct {
	*view
	out    *json.Encoder
	path   core.Path
	person string
}

func (e *exporter) all() error {
	for _, part := range []struct {
		bucket string
		row    func(k, v []byte) (row, error)
	}{
		{bucketLog, e.entry}, {bucketFacts, e.fact}, {bucketStates, e.state}, {bucketPlugins, e.item}, {bucketUsage, e.use},
	} {
		c := e.bucket(part.bucket).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			r, err := part.row(k, v)
			if err == nil && r != (row{}) {
				err = e.out.Encode(r)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", part.bucket, err)
			}
		}
	}
	return nil
}

func (e *exporter) entry(k, v []byte) (row, error) {
	place, seq, err := cutSeq(k)
	if err != nil {
		return row{}, err
	}
	path, err := placeOf(place)
	if err != nil {
		return row{}, err
	}
	if e.person == "" && !path.Within(e.path) || e.person != "" && !bytes.Contains(v, []byte(e.person)) {
		return row{}, nil
	}
	l, err := decodeLine(v, path, seq)
	if err != nil || e.person != "" && (l.Message.Author.ID != e.person || path.Interface() != e.path.Interface()) {
		return row{}, err
	}
	return row{Entry: &l.Entry}, nil
}

func (e *exporter) fact(_, v []byte) (row, error) {
	f, err := decodeFact(v)
	if err != nil {
		return row{}, err
	}
	his := f.By == e.path || slices.Contains(f.About, e.path)
	if e.person != "" && !his || e.person == "" && !f.Origin.Within(e.path) {
		return row{}, nil
	}
	return row{Memory: &f}, nil
}

func (e *exporter) state(k, v []byte) (row, error) {
	path, err := placeOf(k)
	if err != nil || !path.Within(e.path) {
		return row{}, err
	}
	s := stateRow{Path: path}
	return row{State: &s}, json.Unmarshal(v, &s.State)
}

func (e *exporter) item(k, v []byte) (row, error) {
	plugin, rest, _ := bytes.Cut(k, []byte{ending})
	item, err := itemAt(rest, v)
	if err != nil || !item.Path.Within(e.path) {
		return row{}, err
	}
	return row{Item: &itemRow{string(plugin), item.Path, item.Key, item.Value}}, nil
}

func (e *exporter) use(k, v []byte) (row, error) {
	u, err := readUse(k, v)
	if err != nil || !u.Person.Within(e.path) {
		return row{}, err
	}
	return row{Use: &useRow{u.Day, u.Person, u.Engine, u.Calls, u.Usage}}, nil
}

// Limits of an import.
const (
	maxRow     = 32 << 20 // bytes of one line
	importStep = 500      // lines of one transaction
)

// Import adds what an export holds and returns how many lines it read. Entries
// that are known stay as they are; none of the others waits for an answer.
// Memories find those that they repeat; items and states replace what is there;
// use is added up. An error names the line; what came before it is kept.
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
			return lines, errors.Join(fmt.Errorf("import: line %d: %w", lines, err), db.importRows(ctx, rows))
		}
		if rows = append(rows, parsed); len(rows) == importStep {
			if err := db.importRows(ctx, rows); err != nil {
				return lines, fmt.Errorf("import: up to line %d: %w", lines, err)
			}
			rows = rows[:0]
		}
	}
	if err := errors.Join(scanner.Err(), db.importRows(ctx, rows)); err != nil {
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
	case r.Memory != nil:
		r.Memory.ID = ""
		return r, checkFact(r.Memory)
	case r.Item != nil:
		return r, checkItem(r.Item.Plugin, r.Item.Key)
	case r.State != nil && !r.State.Path.IsZero(), r.Use != nil && len(r.Use.Day) == 10:
		return r, nil
	}
	return row{}, fmt.Errorf("%w: nothing that can be imported", ErrBatch)
}

func (db *DB) importRows(ctx context.Context, rows []row) error {
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
		return t.append(r.Entry, &entry{value: encodeLine(&line{Entry: *r.Entry})})
	case r.Memory != nil:
		_, err := t.saveFact(*r.Memory)
		return err
	case r.Item != nil:
		_, err := t.putItem(r.Item.Plugin, Item{Path: r.Item.Path, Key: r.Item.Key, Version: AnyVersion, Value: r.Item.Value})
		return err
	case r.State != nil:
		value, err := json.Marshal(r.State.State)
		if err != nil {
			return fmt.Errorf("state: %w", err)
		}
		p, err := t.resolve(r.State.Path)
		if err != nil {
			return err
		}
		return t.bucket(bucketStates).Put(p.key, value)
	}
	return t.addUse(Use{Day: r.Use.Day, Person: r.Use.Person, Engine: r.Use.Engine, Calls: r.Use.Calls, Usage: r.Use.Usage})
}
