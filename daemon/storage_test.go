package daemon

import (
	"sync"
	"testing"

	chat "synthbot/core/driver"
	"synthbot/memory"
)

// TestStateSwap checks that concurrent updates of an interface's state are not lost.
func TestStateSwap(t *testing.T) {
	db, err := memory.Open(t.TempDir(), memory.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	storage := &Storage{Store: db, DB: db}
	const writers, updates = 4, 25
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			s := storage.interfaceState("discord")
			for range updates {
				if _, err := chat.Update(t.Context(), s, "count", func(n *int) bool { *n++; return true }); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	var n int
	err = chat.Load(t.Context(), storage.interfaceState("discord"), "count", &n)
	if err != nil || n != writers*updates {
		t.Errorf("got %d updates, want %d: %v", n, writers*updates, err)
	}
}
