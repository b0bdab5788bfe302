package driver

import (
	"context"
	"runtime"
	"sync"
	"testing"
)

// shelf is a State that several drivers share.
type shelf struct{ values sync.Map }

func (s *shelf) Get(_ context.Context, key string) ([]byte, error) {
	value, _ := s.values.Load(key)
	runtime.Gosched() // lets an update that is not atomic interfere
	if value == nil {
		return nil, nil
	}
	return []byte(value.(string)), nil
}

func (s *shelf) Put(_ context.Context, key string, value []byte) error {
	s.values.Store(key, string(value))
	return nil
}

func (s *shelf) Swap(_ context.Context, key string, old, value []byte) (bool, error) {
	if old == nil {
		_, loaded := s.values.LoadOrStore(key, string(value))
		return !loaded, nil
	}
	return s.values.CompareAndSwap(key, string(old), string(value)), nil
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
