package memory

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"synthbot/core"
)

// tail walks a place's log backward. Only a view has one: in a transaction that
// has deleted, bbolt's cursors lose their way backward, and Last may never return.
type tail struct {
	view    *view
	cursor  *bbolt.Cursor
	path    core.Path
	prefix  []byte
	started bool
	seq     uint64
	value   []byte
	at      line // decoded by merge only
}

func (v *view) tail(path core.Path, key []byte) *tail {
	return &tail{view: v, cursor: v.bucket(bucketLog).Cursor(), path: path, prefix: key}
}

// back goes to the next older entry; false when there is none.
func (t *tail) back() (ok bool) {
	previous := t.cursor.Prev
	if !t.started {
		t.started = true
		k, _ := t.cursor.Seek(after(t.prefix))
		if k == nil {
			previous = t.cursor.Last
		}
	}
	for !ok {
		var k []byte
		k, t.value = previous()
		if !bytes.HasPrefix(k, t.prefix) {
			return false
		}
		t.seq, ok = numberOf(k, t.prefix)
		previous = t.cursor.Prev
	}
	return true
}

// line reads the entry; ok is false where it cannot be read.
func (t *tail) line() (l line, ok bool) { return t.view.readLine(t.path, t.seq, t.value) }

func reverse(entries []core.Entry) { slices.Reverse(entries) }

// Recent merges the logs of the n places that were last active, from their
// ends: what lies further back is never looked at. Within a place the numbers
// decide, not the times.
func (v *view) Recent(root core.Path, n int, keep func(core.Path) bool) (entries []core.Entry, err error) {
	err = v.read(root, func(p place) error {
		entries = v.merge(v.active(p.path, n, keep), n)
		return nil
	})
	return entries, err
}

// merge takes the n newest entries of some places.
func (v *view) merge(places []core.Path, n int) []core.Entry {
	var tails []*tail
	for _, path := range places {
		t := v.tail(path, placeKey(path))
		if t.step() {
			tails = append(tails, t)
		}
	}
	var entries []core.Entry
	for len(entries) < n && len(tails) > 0 {
		newest := slices.MinFunc(tails, func(a, b *tail) int {
			return latest(activity{a.at.Message.Time, a.prefix}, activity{b.at.Message.Time, b.prefix})
		})
		entries = append(entries, newest.at.Entry)
		if !newest.step() {
			tails = slices.DeleteFunc(tails, func(t *tail) bool { return t == newest })
		}
	}
	reverse(entries)
	return entries
}

// step goes back to the next entry that can be read.
func (t *tail) step() (ok bool) {
	for !ok && t.back() {
		t.at, ok = t.line()
	}
	return ok
}

// active lists the n places at or below root that were last active.
func (v *view) active(root core.Path, n int, keep func(core.Path) bool) (places []core.Path) {
	var all []activity
	from, to := subtree(root)
	c := v.bucket(bucketPlaces).Cursor()
	for k, value := c.Seek(from); below(k, to); k, value = c.Next() {
		h := v.headOf(k, value)
		if h.count > 0 {
			all = append(all, activity{h.time, k})
		}
	}
	slices.SortFunc(all, latest)
	for _, a := range all {
		if len(places) >= n {
			break
		}
		if path, err := placeOf(a.key); err == nil && (keep == nil || keep(path)) {
			places = append(places, path)
		}
	}
	return places
}

// activity says when a place was last active. The key belongs to the
// transaction.
type activity struct {
	time time.Time
	key  []byte
}

// latest puts the latest first; of two at the same time, the one whose path comes
// later.
func latest(a, b activity) int {
	return cmp.Or(b.time.Compare(a.time), bytes.Compare(b.key, a.key))
}
