package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"synthbot/core"
	"synthbot/core/llm"
)

// State returns what the conversation in a place is about; the zero State where
// nothing is known.
func (db *DB) State(ctx context.Context, place core.Path) (s core.State, err error) {
	err = db.view(ctx, func(v *view) error {
		s, err = v.State(place)
		return err
	})
	return s, err
}

// State implements core.View.
func (v *view) State(path core.Path) (s core.State, err error) {
	err = v.read(path, func(p place) error {
		value := v.bucket(bucketStates).Get(p.key)
		if value == nil {
			return nil
		}
		if err := json.Unmarshal(value, &s); err != nil {
			v.db.odd(fmt.Errorf("state of %s: %w", p.path, err))
			s = core.State{}
		}
		return nil
	})
	return s, err
}

// states encodes what conversations are about; a zero State has no value.
func states(all map[core.Path]core.State) (map[core.Path][]byte, error) {
	values := make(map[core.Path][]byte, len(all))
	for path, s := range all {
		if path.IsZero() {
			return nil, fmt.Errorf("state: %w: no place", ErrBatch)
		}
		if s.IsZero() {
			values[path] = nil
			continue
		}
		value, err := json.Marshal(s)
		if err != nil {
			return nil, fmt.Errorf("state: %w: %w", ErrBatch, err)
		}
		values[path] = value
	}
	return values, nil
}

// setState replaces what the conversation in a place is about.
func (t *tx) setState(path core.Path, value []byte) {
	p, b := t.resolve(path), t.bucket(bucketStates)
	if value == nil {
		b.Delete(p.key)
	} else {
		b.Put(p.key, value)
	}
}

// Use counts what was spent on a day, for a person (or the bot itself, the zero
// Path), with an engine.
type Use struct {
	Day    string // 2006-01-02, in whatever zone the caller counts
	Person core.Path
	Engine string
	Calls  int
	llm.Usage
}

func usageKey(u Use) []byte {
	k := append([]byte(u.Day), ending)
	k = append(k, placeKey(u.Person)...)
	return append(k, u.Engine...)
}

// AddUse adds to the counters of a day, in the transaction that comes next, or in
// one of its own a moment later: nobody should wait for a sync on behalf of a
// count. The outcome, once it is durable, is in the channel.
func (db *DB) AddUse(uses ...Use) <-chan error {
	j := &job{done: make(chan error, 1), rides: true, ends: true}
	for _, u := range uses {
		if len(u.Day) != len("2006-01-02") || strings.ContainsRune(u.Engine, ending) || len(u.Engine) > maxPluginKey {
			j.done <- fmt.Errorf("use: %w: day %q, engine %q", ErrBatch, u.Day, u.Engine)
			return j.done
		}
	}
	j.run = func(t *tx) error {
		for _, u := range uses {
			t.addUse(u)
		}
		return nil
	}
	if err := db.queue.add(j); err != nil {
		j.done <- err
	}
	return j.done
}

// addUse adds to what was used. What cannot be read counts anew.
func (t *tx) addUse(u Use) {
	b := t.bucket(bucketUsage)
	key := usageKey(u)
	value := b.Get(key)
	if value != nil {
		old, err := readUse(key, value)
		if err != nil {
			t.db.odd(err)
		}
		u.Calls += old.Calls
		u.In, u.Out, u.Cached = u.In+old.In, u.Out+old.Out, u.Cached+old.Cached
	}
	var f fields
	f.signed(tagFirst, int64(u.Calls))
	f.signed(tagSecond, int64(u.In))
	f.signed(tagThird, int64(u.Out))
	f.signed(tagFourth, int64(u.Cached))
	b.Put(key, f)
}

func readUse(key, value []byte) (u Use, err error) {
	day, rest, ok := strings.Cut(string(key), string(rune(ending)))
	person, engine, ok2 := strings.Cut(rest, string(rune(ending)))
	if !ok || !ok2 {
		return Use{}, fmt.Errorf("use %q: %w", key, errFields)
	}
	u = Use{Day: day, Engine: engine}
	if person != "" {
		if u.Person, err = placeOf([]byte(person + string(rune(ending)))); err != nil {
			return Use{}, err
		}
	}
	return u, each(string(value), func(f field) error {
		switch f.tag {
		case tagFirst:
			return f.setInt(&u.Calls)
		case tagSecond:
			return f.setInt(&u.In)
		case tagThird:
			return f.setInt(&u.Out)
		case tagFourth:
			return f.setInt(&u.Cached)
		}
		return nil
	})
}

// Uses returns the counters of the days from first to last, both inclusive, by
// day, person and engine.
func (db *DB) Uses(ctx context.Context, first, last string) (uses []Use, err error) {
	err = db.view(ctx, func(v *view) error {
		c := v.bucket(bucketUsage).Cursor()
		for k, value := c.Seek([]byte(first)); k != nil; k, value = c.Next() {
			u, err := readUse(k, value)
			if u.Day > last {
				break
			}
			if err != nil {
				v.db.odd(err)
				continue
			}
			uses = append(uses, u)
		}
		return nil
	})
	return uses, err
}
