package coretest

import (
	"testing"

	"synthbot/core"
)

func TestMemStore(t *testing.T) {
	stores := make(map[string]*MemStore)
	TestStore(t, func(_ *testing.T, dir string) core.Store {
		if old := stores[dir]; old != nil {
			stores[dir] = old.Reopen()
		} else {
			stores[dir] = NewMemStore()
		}
		return stores[dir]
	})
}
