// Package recent is a cache that keeps the most recently used keys.
package recent

// Cache keeps the most recently used keys: at least size of them, and at most twice as
// many. It is not safe for concurrent use.
type Cache[K comparable, V any] struct {
	size     int
	new, old map[K]V
}

// NewCache returns an empty cache.
func NewCache[K comparable, V any](size int) Cache[K, V] {
	return Cache[K, V]{size: size, new: make(map[K]V)}
}

// Get returns the value of a key. ok is false if there is none.
func (c *Cache[K, V]) Get(key K) (v V, ok bool) {
	v, ok = c.new[key]
	if ok {
		return v, ok
	}
	v, ok = c.old[key]
	if ok {
		c.Put(key, v)
	}
	return v, ok
}

// Put sets the value of a key.
func (c *Cache[K, V]) Put(key K, v V) {
	delete(c.old, key)
	if len(c.new) >= c.size {
		c.old, c.new = c.new, make(map[K]V, c.size)
	}
	c.new[key] = v
}

// Ensure returns the value of a key. If there is none, it sets the one that make returns.
func (c *Cache[K, V]) Ensure(key K, make func() V) V {
	v, ok := c.Get(key)
	if !ok {
		v = make()
		c.Put(key, v)
	}
	return v
}

// Delete removes a key.
func (c *Cache[K, V]) Delete(key K) {
	delete(c.new, key)
	delete(c.old, key)
}

// Len returns how many keys there are.
func (c *Cache[K, V]) Len() int { return len(c.new) + len(c.old) }
