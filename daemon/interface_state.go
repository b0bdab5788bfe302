package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	"synthbot/core"
	"synthbot/memory"
)

// state keeps what one interface must know after a restart, in the database.
// Where none is open, nothing is known.
type state struct {
	*sync.Mutex // held by who updates a value; drivers of one interface share it
	db          *atomic.Pointer[memory.DB]
	name        string
	place       core.Path
}

func (p *Env) stateOf(name string) (*state, error) {
	place, err := core.MakePath(name)
	if err != nil {
		return nil, err
	}
	lock, _ := p.stateLocks.LoadOrStore(name, new(sync.Mutex))
	return &state{lock.(*sync.Mutex), &p.db, "interface " + name, place}, nil
}

// Get returns nil for an unknown key.
func (s *state) Get(ctx context.Context, key string) (value []byte, err error) {
	db := s.db.Load()
	if db == nil {
		return nil, nil // somebody only looks
	}
	item, ok, err := db.Items(s.name).Get(ctx, s.place, key)
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
	db := s.db.Load()
	if db == nil {
		return fmt.Errorf("state of %s: %w", s.place, core.ErrClosed)
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	_, err = db.Items(s.name).Put(ctx, core.Item{Path: s.place, Key: key, Value: raw, Version: core.AnyVersion})
	return err
}
