package recon

import (
	"hash/maphash"
	"sync"
)

// memo remembers what was found in the latest texts, by their hashes: those of a conversation come again with
// each turn. It is safe for concurrent use.
type memo[T any] struct {
	find func(text string) T
	seed maphash.Seed

	mu    sync.Mutex
	found map[uint64]T
}

// maxFound is how many texts a memo remembers.
const maxFound = 4096

func newMemo[T any](find func(text string) T) *memo[T] {
	return &memo[T]{find: find, seed: maphash.MakeSeed(), found: make(map[uint64]T)}
}

func (m *memo[T]) in(text string) T {
	key := maphash.String(m.seed, text)
	m.mu.Lock()
	value, ok := m.found[key]
	m.mu.Unlock()
	if ok {
		return value
	}
	value = m.find(text)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.found) >= maxFound {
		clear(m.found)
	}
	m.found[key] = value
	return value
}
