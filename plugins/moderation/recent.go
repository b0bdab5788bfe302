package moderation

// recent keeps what belongs to keys that were used not long ago: at least the
// last max of them, at most twice as many. It is not safe for concurrent use.
type recent[K comparable, V any] struct {
	max        int
	young, old map[K]*V
}

func newRecent[K comparable, V any](max int) recent[K, V] {
	return recent[K, V]{max: max, young: make(map[K]*V)}
}

// find returns what belongs to the key; nil where there is nothing any more.
func (r *recent[K, V]) find(key K) *V {
	if v := r.young[key]; v != nil {
		return v
	}
	v := r.old[key]
	if v != nil {
		delete(r.old, key)
		r.keep(key, v)
	}
	return v
}

// keep puts a key in that is not there.
func (r *recent[K, V]) keep(key K, v *V) {
	if len(r.young) >= r.max {
		r.old, r.young = r.young, make(map[K]*V, r.max)
	}
	r.young[key] = v
}

// drop takes a key out.
func (r *recent[K, V]) drop(key K) {
	delete(r.young, key)
	delete(r.old, key)
}

func (r *recent[K, V]) size() int { return len(r.young) + len(r.old) }
