package driver

import (
	"context"
	"runtime"
	"sync"
	"testing"
)

// shelf is a State that several drivers share.
type shelf struct {
	sync.Mutex
	values sync.Map
}

func (s *shelf) Get(_ context.Context, key string) ([]byte, error) {
	value, _ := s.values.Load(key)
	data, _ := value.([]byte)
	runtime.Gosched() // lets an update without a lock interfere
	return data, nil
}

func (s *shelf) Put(_ context.Context, key string, value []byte) error {
	s.values.Store(key, value)
	return nil
}

// TestUpdatesOfTwoDrivers: no update is lost while two drivers of one interface run.
func TestUpdatesOfTwoDrivers(t *testing.T) {
	var all sync.WaitGroup
	s := &shelf{}
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
		t.Errorf("%d of 800 updates, %v", n, err)
	}
}
