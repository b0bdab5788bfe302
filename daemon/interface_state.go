package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"synthbot/core"
)

// state keeps what one interface must know after a restart.
type state struct {
	*sync.Mutex // held by who updates a value; drivers of one interface share it
	items       core.Items
	place       core.Path
}

// state returns the state of an interface by its name.
func (s *Storage) state(name string) (*state, error) {
	place, err := core.MakePath(name)
	if err != nil {
		return nil, err
	}
	lock, _ := s.stateLocks.LoadOrStore(name, new(sync.Mutex))
	return &state{lock.(*sync.Mutex), s.Items("interface " + name), place}, nil
}

// Get returns nil for an unknown key.
func (s *state) Get(ctx context.Context, key string) (value []byte, err error) {
	item, ok, err := s.items.Get(ctx, s.place, key)
	if err != nil || !ok {
		return nil, err
	}
	if err := json.Unmarshal(item.Value, &value); err != nil {
		return nil, fmt.Errorf("state of %s: %w", s.place, err)
	}
	return value, nil
}

// Put is durable when it returns.
func (s *state) Put(ctx context.Context, key string, value []byte) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	item := core.Item{Path: s.place, Key: key, Value: raw, Version: core.AnyVersion}
	if _, err := s.items.Put(ctx, item); err != nil {
		return fmt.Errorf("state of %s: %w", s.place, err)
	}
	return nil
}
