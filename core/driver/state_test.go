package driver

import (
	"sync"
	"testing"

	"synthbot/core/coretest"
)

// TestUpdatesOfTwoDrivers: no update is lost while two drivers of one interface run.
func TestUpdatesOfTwoDrivers(t *testing.T) {
	var all sync.WaitGroup
	s := new(coretest.SharedState)
	for range 8 {
		all.Go(func() {
			for range 100 {
				_, err := Update(t.Context(), s, "count", func(n *int) bool { *n++; return true })
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	var n int
	if err := Load(t.Context(), s, "count", &n); err != nil || n != 800 {
		t.Errorf("got %d updates, %v, want 800", n, err)
	}
}
