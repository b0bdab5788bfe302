package botapi

import (
	"context"
	"encoding/json"
)

// State keeps what must be known after a restart. Get returns nil for an unknown key. Safe
// for concurrent use.
type State interface {
	Get(ctx context.Context, key string) ([]byte, error)
	Put(ctx context.Context, key string, value []byte) error
}

// Load reads a value as JSON. It leaves the value as it is if there is none.
func Load(ctx context.Context, s State, key string, value any) error {
	data, err := s.Get(ctx, key)
	if err != nil || data == nil {
		return err
	}
	return json.Unmarshal(data, value)
}

// Save writes a value as JSON.
func Save(ctx context.Context, s State, key string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return s.Put(ctx, key, data)
}
