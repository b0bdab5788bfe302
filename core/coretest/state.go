package coretest

import (
	"bytes"
	"context"
	"maps"
	"runtime"
	"sync"
)

// SharedState is a driver.State that several drivers or processes can change. Its zero value is empty. It is
// safe for concurrent use.
type SharedState struct {
	mu     sync.Mutex
	values map[string][]byte
}

// Get implements driver.State.
func (s *SharedState) Get(_ context.Context, key string) ([]byte, error) {
	defer runtime.Gosched() // lets an update that is not atomic interfere
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.values[key]), nil
}

// Put implements driver.State.
func (s *SharedState) Put(_ context.Context, key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(key, value)
	return nil
}

func (s *SharedState) put(key string, value []byte) {
	if s.values == nil {
		s.values = make(map[string][]byte)
	}
	s.values[key] = bytes.Clone(value)
}

// Swap implements driver.Swapper.
func (s *SharedState) Swap(_ context.Context, key string, old, value []byte) (ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !bytes.Equal(s.values[key], old) {
		return false, nil
	}
	s.put(key, value)
	return true, nil
}

// Values returns a copy of all values.
func (s *SharedState) Values() map[string][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.values)
}
