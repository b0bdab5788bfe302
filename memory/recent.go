package memory

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"synthbot/core"
)

// backward goes through the pairs of a range, to exclusive, last first. Only a view
// has it: in a transaction that has deleted, bbolt's cursors lose their way backward,
// and Last may never return.
func (v *view) backward(bucket string, from, to []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(k, value []byte) bool) {
		c := v.bucket(bucket).Cursor()
		k, value := before(c, to)
		for k != nil && bytes.Compare(k, from) >= 0 && yield(k, value) {
			k, value = c.Prev()
		}
	}
}

// before goes to the last pair before a key.
func before(c *bbolt.Cursor, key []byte) (k, value []byte) {
	k, _ = c.Seek(key)
	if k == nil {
		return c.Last()
	}
	return c.Prev()
}

// tail walks a place's log backward.
type tail struct {
	view   *view
	cursor *bbolt.Cursor // nil before the first step
	path   core.Path
	prefix []byte
	at     storedEntry
}

func (v *view) tail(path core.Path, key []byte) *tail { return &tail{view: v, path: path, prefix: key} }

// step goes to the next older entry that can be read; false if there is none.
func (t *tail) step() bool {
	var k, value []byte
	if t.cursor == nil {
		t.cursor = t.view.bucket(bucketLog).Cursor()
		k, value = before(t.cursor, after(t.prefix))
	} else {
		k, value = t.cursor.Prev()
	}
	for ; bytes.HasPrefix(k, t.prefix); k, value = t.cursor.Prev() {
		seq, ok := numberOf(k, t.prefix)
		if !ok {
			continue
		}
		if t.at, ok = t.view.readEntry(t.path, seq, value); ok {
			return true
		}
	}
	return false
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
	slices.Reverse(entries)
	return entries
}

// active lists the n places at or below root that were last active.
func (v *view) active(root core.Path, n int, keep func(core.Path) bool) (places []core.Path) {
	var all []activity
	for k, value := range v.bucket(bucketPlaces).pairs(subtree(root)) {
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

// latest sorts the latest first; at the same time, the greatest path first.
func latest(a, b activity) int {
	return cmp.Or(b.time.Compare(a.time), bytes.Compare(b.key, a.key))
}
