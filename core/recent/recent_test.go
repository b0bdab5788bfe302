package recent

import (
	"sync"
	"testing"
)

// TestCache: the cache keeps recently used values and never exceeds its limit.
func TestCache(t *testing.T) {
	c := NewCache[int, int](100)
	for i := range 10_000 {
		if _, ok := c.Get(i); ok {
			t.Fatalf("%d was found before it was put", i)
		}
		c.Put(i, i)
		for back := range min(i, 50) {
			if v, ok := c.Get(i - back); !ok || v != i-back {
				t.Fatalf("%d was dropped after %d others", i-back, back)
			}
		}
		if c.Len() > 200 {
			t.Fatalf("unexpected length %d", c.Len())
		}
	}
	if _, ok := c.Get(5); ok {
		t.Error("the value put five steps before is still there")
	}
	for range 3 {
		c.Put(9_999, 1)
	}
	if v, _ := c.Get(9_999); v != 1 || c.Len() > 200 {
		t.Errorf("after another put: unexpected value %d, length %d", v, c.Len())
	}
	c.Delete(9_999)
	if _, ok := c.Get(9_999); ok {
		t.Error("the value was not deleted")
	}
}

// TestShared: several goroutines may use the cache at the same time.
func TestShared(t *testing.T) {
	c := NewShared[int, int](100)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			c.Put(i, 2*i)
			if v, ok := c.Get(i); !ok || v != 2*i {
				t.Errorf("got %[2]d for %[1]d", i, v)
			}
		})
	}
	all.Wait()
}

// TestPerEpoch: work of the same epoch shares the cache; a new epoch drops it. Work of an old epoch gets a
// cache of its own.
func TestPerEpoch(t *testing.T) {
	c := NewPerEpoch(func() *Shared[int, int] { return NewShared[int, int](1) })
	first := c.In(1)
	if c.In(1) != first {
		t.Error("work of the same epoch does not share the cache")
	}
	second := c.In(2)
	if second == first || c.In(2) != second {
		t.Error("a new epoch has the old cache or none that is shared")
	}
	if old := c.In(1); old == first || old == second {
		t.Error("work of an old epoch shares a cache")
	}
	if c.In(2) != second {
		t.Error("work of an old epoch replaced the cache")
	}
}
