package recent

import "sync"

// PerEpoch holds a cache that may concern users: each epoch begins with an empty one (see package epochs). Safe for
// concurrent use.
type PerEpoch[C any] struct {
	empty func() C

	mu    sync.Mutex
	epoch uint64
	cache C
}

// NewPerEpoch returns a PerEpoch whose caches are made by empty.
func NewPerEpoch[C any](empty func() C) *PerEpoch[C] {
	return &PerEpoch[C]{empty: empty, cache: empty()}
}

// In returns the cache for work that began in an epoch. Work of an earlier epoch gets a cache of its own.
func (p *PerEpoch[C]) In(epoch uint64) C {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case epoch < p.epoch:
		return p.empty()
	case epoch > p.epoch:
		p.cache, p.epoch = p.empty(), epoch
	}
	return p.cache
}
