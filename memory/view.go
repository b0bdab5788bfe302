package memory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"time"

	"synthbot/core"
	"synthbot/core/sorting"
	"synthbot/memory/kv"
)

// View implements core.Store. Within f, no other View may begin and nothing may be
// committed: both could wait for this one to end. A panic of f becomes an error.
func (db *DB) View(ctx context.Context, f func(core.View) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	defer db.engine.recoverPanic(debug.SetPanicOnFault(true), &err)
	b, err := db.engine.Begin(ctx)
	if err != nil {
		return err
	}
	defer b.End()
	v := &view{tx: newTx(db, b)}
	defer func() {
		v.ended = true
		p := recover()
		if p != nil {
			db.log.Error("a view panicked", "file", db.engine.name, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("view: panic: %v", p)
		}
	}()
	return f(v)
}

// view is View for this package. After a panic, or if the disk cannot read a page, the error wraps core.ErrDamaged.
func (db *DB) view(ctx context.Context, f func(*view) error) error {
	return db.View(ctx, func(v core.View) (err error) {
		defer db.engine.recoverPanic(debug.SetPanicOnFault(true), &err)
		return f(v.(*view))
	})
}

type view struct {
	tx
	ended bool
}

var errEnded = errors.New("this view has ended")

// readPlace calls f with the place of a path. If the engine panics on a broken page, the error wraps core.ErrDamaged.
func readPlace[T any](v *view, path core.Path, f func(place) T) (value T, err error) {
	if v.ended {
		return value, errEnded
	}
	defer func() { err = v.db.engine.withName(err) }()
	defer v.db.engine.recoverPanic(debug.SetPanicOnFault(true), &err)
	return f(v.resolve(path)), nil
}

func (v *view) Head(path core.Path) (core.Head, error) {
	return readPlace(v, path, func(p place) core.Head {
		h, _ := v.readHead(p.key)
		return h.of(p.path)
	})
}

func (h head) of(path core.Path) core.Head {
	return core.Head{Path: path, Last: h.last, Count: h.count, Answered: h.answered, Time: h.time, Private: h.private}
}

func (v *view) Places(root core.Path) ([]core.Head, error) {
	return readPlace(v, root, func(p place) (heads []core.Head) {
		for path, h := range v.headsBelow(p.path) {
			heads = append(heads, h.of(path))
		}
		return heads
	})
}

func (v *view) Waiting() ([]core.Path, error) {
	return readPlace(v, core.Path{}, func(place) []core.Path { return v.placesIn(bucketDue, core.Path{}) })
}

func (v *view) Due(path core.Path, max int) ([]core.Entry, error) {
	prefetch(&v.tx, func(r *reads) { r.nextTurn(v, path) }) // of no use if the place has moved
	return readPlace(v, path, func(p place) (entries []core.Entry) {
		for seq := range v.numbers(bucketDue, p.key, 0) {
			if len(entries) == max {
				break
			}
			if l, ok := v.entry(p, seq); ok {
				entries = append(entries, l.Entry)
			} else {
				v.db.dropDue(p, seq)
			}
		}
		return entries
	})
}

func (v *view) Entry(path core.Path, id string) (e core.Entry, ok bool, err error) {
	if id == "" {
		return core.Entry{}, false, nil
	}
	e, err = readPlace(v, path, func(p place) core.Entry {
		seq, known := v.findID(p, id)
		if !known {
			return core.Entry{}
		}
		var l storedEntry
		l, ok = v.entry(p, seq)
		return l.Entry
	})
	return e, ok, err
}

func (v *view) After(path core.Path, seq uint64, max int, into []core.Entry) ([]core.Entry, error) {
	return readPlace(v, path, func(p place) []core.Entry {
		entries, first := into[:0], seq+p.shift+1
		if first == 0 {
			return entries
		}
		for next, value := range v.numbers(bucketLog, p.key, first) {
			if len(entries) == max {
				break
			}
			if l, ok := v.readEntry(p.path, next, value); ok {
				if len(entries) == 0 {
					h, _ := v.readHead(p.key)
					entries = slices.Grow(entries, min(max, int(h.last-min(h.last, next))+1))
				}
				entries = append(entries, l.Entry)
			}
		}
		return entries
	})
}

func (v *view) Last(path core.Path, n int) ([]core.Entry, error) {
	return readPlace(v, path, func(p place) []core.Entry {
		h, _ := v.readHead(p.key)
		entries, t := make([]core.Entry, 0, min(max(n, 0), int(h.count))), v.tail(p.path, p.key)
		for len(entries) < n && t.step() {
			entries = append(entries, t.entry.Entry)
		}
		slices.Reverse(entries)
		return entries
	})
}

// Recent merges the logs of the n places that were last active, from their ends. Within a
// place the numbers decide, not the times.
func (v *view) Recent(root core.Path, n int, keep func(core.Path) bool) ([]core.Entry, error) {
	return readPlace(v, root, func(p place) []core.Entry { return v.merge(v.active(p.path, n, keep), n) })
}

// State returns the zero State if the stored one cannot be read.
func (v *view) State(path core.Path) (core.State, error) {
	return readPlace(v, path, func(p place) (s core.State) {
		value := v.bucket(bucketStates).Get(p.key)
		if value == nil {
			return core.State{}
		}
		if err := json.Unmarshal(value, &s); err != nil {
			v.db.logUnreadable(fmt.Errorf("state of %s: %w", p.path, err))
			return core.State{}
		}
		return s
	})
}

func (v *view) Journal(turn core.TurnID) ([]core.Record, error) {
	return readPlace(v, turn.Path, func(p place) (records []core.Record) {
		for _, r := range v.records(core.TurnID{Path: p.path, Seq: turn.Seq + p.shift}) {
			if w, ok := v.readRecord(r.key, r.value); ok {
				records = append(records, core.Record{Key: r.key, Progress: w.Progress, Time: w.Time, Data: w.Data})
			}
		}
		return records
	})
}

// backward iterates over the pairs with a prefix that are before the key to, last first. Only views have it:
// after a Delete in the same transaction, bbolt's cursors go wrong when they move backward.
func (v *view) backward(bucket string, prefix, to []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(k, value []byte) bool) {
		c := v.bucket(bucket).Cursor(prefix, to)
		k, value := c.Before(to)
		for k != nil && bytes.HasPrefix(k, prefix) && yield(k, value) {
			k, value = c.Prev()
		}
	}
}

type tail struct {
	view     *view
	cursor   kv.Cursor
	k, value []byte // the pair that step decodes next
	path     core.Path
	prefix   []byte
	entry    storedEntry
}

func (v *view) tail(path core.Path, key []byte) *tail {
	t := &tail{view: v, cursor: v.bucket(bucketLog).Cursor(key, prefixEnd(key)), path: path, prefix: key}
	t.k, t.value = t.cursor.Before(prefixEnd(key))
	return t
}

// step moves to the next older entry that can be read, and reports whether there is one.
func (t *tail) step() bool {
	for bytes.HasPrefix(t.k, t.prefix) {
		seq, ok := parseSeq(t.k, t.prefix)
		if ok {
			t.entry, ok = t.view.readEntry(t.path, seq, t.value)
		}
		t.k, t.value = t.cursor.Prev()
		if ok {
			return true
		}
	}
	return false
}

func (v *view) merge(places []core.Path, n int) []core.Entry {
	var tails []*tail
	for _, path := range places {
		t := v.tail(path, placeKey(path))
		if t.step() {
			tails = append(tails, t)
		}
	}
	if len(tails) == 0 {
		return nil
	}
	entries := make([]core.Entry, 0, n)
	for len(entries) < n && len(tails) > 0 {
		newest := slices.MinFunc(tails, func(a, b *tail) int {
			return byLatest(activity{a.entry.Message.Time, a.prefix}, activity{b.entry.Message.Time, b.prefix})
		})
		entries = append(entries, newest.entry.Entry)
		if !newest.step() {
			tails = slices.DeleteFunc(tails, func(t *tail) bool { return t == newest })
		}
	}
	slices.Reverse(entries)
	return entries
}

// active returns the n places at or below root that were last active, of those that keep accepts.
func (v *view) active(root core.Path, n int, keep func(core.Path) bool) (places []core.Path) {
	var all []activity
	for k, value := range v.bucket(bucketPlaces).pairs(subtree(root)) {
		h := v.headOf(k, value)
		if h.count > 0 {
			all = append(all, activity{h.time, k})
		}
	}
	sorting.Sort(all, byLatest)
	for _, a := range all {
		if len(places) >= n {
			break
		}
		if path, err := parsePlace(a.key); err == nil && (keep == nil || keep(path)) {
			places = append(places, path)
		}
	}
	return places
}

// activity is when a place was last active. The key is valid during the transaction.
type activity struct {
	time time.Time
	key  []byte
}

func byLatest(a, b activity) int { return cmp.Or(b.time.Compare(a.time), bytes.Compare(b.key, a.key)) }
