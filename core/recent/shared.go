package recent

import "sync"

// Shared is a Cache that is safe for concurrent use.
type Shared[K comparable, V any] struct {
	mu    sync.Mutex
	cache Cache[K, V]
}

// NewShared returns an empty cache.
func NewShared[K comparable, V any](size int) *Shared[K, V] {
	return &Shared[K, V]{cache: NewCache[K, V](size)}
}

// Get returns the value of a key. ok is false if there is none.
func (s *Shared[K, V]) Get(key K) (v V, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cache.Get(key)
}

// Take returns the value of a key, and removes the key. ok is false if there is none.
func (s *Shared[K, V]) Take(key K) (v V, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok = s.cache.Get(key)
	s.cache.Delete(key)
	return v, ok
}

// Clear removes all keys.
func (s *Shared[K, V]) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache = NewCache[K, V](s.cache.size)
}

// Put sets the value of a key.
func (s *Shared[K, V]) Put(key K, v V) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache.Put(key, v)
}
