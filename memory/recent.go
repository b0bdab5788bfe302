package memory

import (
	"bytes"
	"container/heap"
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
	key     []byte
	value   []byte
	at      line // decoded by merge only
}

func (v *view) tail(path core.Path, key []byte) *tail {
	return &tail{view: v, cursor: v.bucket(bucketLog).Cursor(), path: path, prefix: key}
}

// back goes to the next older entry; false when there is none.
func (t *tail) back() bool {
	if t.started {
		t.key, t.value = t.cursor.Prev()
	} else {
		t.started = true
		if k, _ := t.cursor.Seek(after(t.prefix)); k == nil {
			t.key, t.value = t.cursor.Last()
		} else {
			t.key, t.value = t.cursor.Prev()
		}
	}
	return bytes.HasPrefix(t.key, t.prefix)
}

// line reads the entry; ok is false where it cannot be read.
func (t *tail) line() (l line, ok bool) { return t.view.readLine(t.path, t.key, t.value) }

func reverse(entries []core.Entry) { slices.Reverse(entries) }

// Recent merges the logs of the n places that were last active, from their
// ends: what lies further back is never looked at. Within a place the numbers
// decide, not the times.
func (v *view) Recent(root core.Path, n int, keep func(core.Path) bool) (entries []core.Entry, err error) {
	err = v.read(root, func(p place) error {
		if n <= 0 {
			return nil
		}
		active, err := v.active(p.path, n, keep)
		if err != nil {
			return err
		}
		entries = v.merge(active, n)
		return nil
	})
	return entries, err
}

// merge takes the n newest entries of some places.
func (v *view) merge(places []core.Path, n int) []core.Entry {
	var tails tailHeap
	for _, path := range places {
		if t := v.tail(path, placeKey(path)); t.step() {
			tails = append(tails, t)
		}
	}
	heap.Init(&tails)
	var entries []core.Entry
	for len(entries) < n && len(tails) > 0 {
		entries = append(entries, tails[0].at.Entry)
		if tails[0].step() {
			heap.Fix(&tails, 0)
		} else {
			heap.Pop(&tails)
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
func (v *view) active(root core.Path, n int, keep func(core.Path) bool) ([]core.Path, error) {
	var all recency
	from, to := subtree(root)
	c := v.bucket(bucketPlaces).Cursor()
	for k, value := c.Seek(from); below(k, to); k, value = c.Next() {
		if h := v.headOf(k, value); h.count > 0 {
			all = append(all, activity{h.time, k})
		}
	}
	heap.Init(&all)
	var places []core.Path
	for len(places) < n && len(all) > 0 {
		path, err := placeOf(heap.Pop(&all).(activity).key)
		if err != nil {
			return nil, err
		}
		if keep == nil || keep(path) {
			places = append(places, path)
		}
	}
	return places, nil
}

// activity says when a place was last active. The key belongs to the
// transaction.
type activity struct {
	time time.Time
	key  []byte
}

// recency is a heap, latest first; of two at the same time the one whose path
// comes later counts as the later one.
type recency []activity

func (r recency) Len() int      { return len(r) }
func (r recency) Swap(i, j int) { r[i], r[j] = r[j], r[i] }
func (r recency) Less(i, j int) bool {
	if order := r[i].time.Compare(r[j].time); order != 0 {
		return order > 0
	}
	return bytes.Compare(r[i].key, r[j].key) > 0
}
func (r *recency) Push(x any) { *r = append(*r, x.(activity)) }
func (r *recency) Pop() any {
	last := len(*r) - 1
	x := (*r)[last]
	*r = (*r)[:last]
	return x
}

// tailHeap has the latest entry first.
type tailHeap []*tail

func (h tailHeap) Len() int      { return len(h) }
func (h tailHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h tailHeap) Less(i, j int) bool {
	if order := h[i].at.Message.Time.Compare(h[j].at.Message.Time); order != 0 {
		return order > 0
	}
	return bytes.Compare(h[i].prefix, h[j].prefix) > 0
}
func (h *tailHeap) Push(x any) { *h = append(*h, x.(*tail)) }
func (h *tailHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
