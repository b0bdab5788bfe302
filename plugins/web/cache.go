package web

import (
	"sync"
	"time"
)

// Bounds of what is remembered.
const (
	maxCached     = 64
	maxCachedSize = 8 << 20 // bytes
)

// cache remembers pages for a while. Safe for concurrent use once clock and lasts
// are set.
type cache struct {
	clock func() time.Time
	lasts time.Duration

	mu    sync.Mutex
	pages map[string]*page
	order []dated // the oldest first
	size  int
}

type dated struct {
	key  string
	time time.Time
}

// get returns a page that is remembered, or nil.
func (c *cache) get(key string) *page {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget()
	return c.pages[key]
}

// put remembers a page.
func (c *cache) put(key string, p *page) {
	if c.lasts <= 0 || p.size() > maxCachedSize/4 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pages == nil {
		c.pages = make(map[string]*page)
	}
	if c.pages[key] != nil { // two asked at the same time
		return
	}
	c.pages[key] = p
	c.order = append(c.order, dated{key, c.clock()})
	c.size += p.size()
	c.forget()
}

// forget drops what is too old, or too much.
func (c *cache) forget() {
	now := c.clock()
	for len(c.order) > 0 &&
		(len(c.order) > maxCached || c.size > maxCachedSize || now.Sub(c.order[0].time) >= c.lasts) {
		key := c.order[0].key
		c.size -= c.pages[key].size()
		delete(c.pages, key)
		c.order = c.order[1:]
	}
}
