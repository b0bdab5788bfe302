package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/llm"
)

func encodeState(s core.State) ([]byte, error) {
	if s.IsZero() {
		return nil, nil
	}
	return json.Marshal(s)
}

// Use is the usage of an engine on a day, for a person (or the bot itself, the zero Path).
type Use struct {
	Day    string    `json:"day"` // 2006-01-02, in the caller's time zone
	Person core.Path `json:"person,omitzero"`
	Engine string    `json:"engine"`
	Calls  int       `json:"calls"`
	llm.Usage
	Cost *float64 `json:"cost,omitempty"` // nil: not stored, as in versions that priced stored tokens
}

// Add adds other counters. The cost is known only if both are.
func (u *Use) Add(other Use) {
	u.Calls += other.Calls
	u.In, u.Out, u.Cached = u.In+other.In, u.Out+other.Out, u.Cached+other.Cached
	if u.Cost == nil || other.Cost == nil {
		u.Cost = nil
		return
	}
	u.Cost = new(*u.Cost + *other.Cost)
}

func usageKey(u Use) []byte {
	k := append([]byte(u.Day), terminator)
	k = append(k, placeKey(u.Person)...)
	return append(k, u.Engine...)
}

func badEngine(name string) bool {
	return strings.ContainsRune(name, terminator) || len(name) > maxPluginKey
}

// AddUse adds to the counters of a day. It does not block: the counts are written with the next transaction, or
// after maxDelay. The channel returns the outcome once it is durable.
func (db *DB) AddUse(uses ...Use) <-chan error {
	j := &job{done: make(chan error, 1), canWait: true, finishing: true}
	for _, u := range uses {
		if len(u.Day) != len(time.DateOnly) || badEngine(u.Engine) {
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

// addUse adds to the counters. Unreadable ones begin again.
func (t *tx) addUse(u Use) {
	if old, ok := storedUse(t, usageKey(u)); ok {
		u.Add(old)
	}
	putUse(t, u)
}

// importUse stores the counters of an export, unless later ones of the same place or person are stored.
func importUse(t *tx, u Use) (changed bool) {
	if old, ok := storedUse(t, usageKey(u)); ok && old.Calls >= u.Calls {
		return false
	}
	putUse(t, u)
	return true
}

func storedUse(t *tx, key []byte) (u Use, ok bool) {
	value := t.bucket(bucketUsage).Get(key)
	if value == nil {
		return u, false
	}
	u, err := readUse(key, value)
	if err != nil {
		t.db.logUnreadable(err)
	}
	return u, err == nil
}

func putUse(t *tx, u Use) {
	var c codec
	u.fields(&c)
	t.bucket(bucketUsage).Put(usageKey(u), c.out)
}

// readUse decodes counters. If their values cannot be read, it returns an error and zero counters.
func readUse(key, value []byte) (u Use, err error) {
	day, rest, ok := bytes.Cut(key, []byte{terminator})
	if !ok {
		return Use{}, fmt.Errorf("use %q: %w", key, errFields)
	}
	person, engine, err := cutOrigin(rest)
	if err != nil {
		return Use{}, err
	}
	u = Use{Day: string(day), Person: person, Engine: string(engine)}
	counted := u
	var c codec
	if err := c.read(value, func() { counted.fields(&c) }); err != nil {
		return u, err
	}
	return counted, nil
}

func (u *Use) fields(c *codec) {
	signed(c, 1, &u.Calls)
	signed(c, 2, &u.In)
	signed(c, 3, &u.Out)
	signed(c, 4, &u.Cached)
	c.decimal(5, &u.Cost)
}

// Uses returns the counters of the days from first to last, inclusive, by day, person and engine.
func (db *DB) Uses(ctx context.Context, first, last string) (uses []Use, err error) {
	err = db.read(ctx, func(v *view) {
		to := append([]byte(last), terminator+1)
		uses = slices.Collect(decoded(&v.tx, bucketUsage, []byte(first), to, readUse))
	})
	return uses, err
}
