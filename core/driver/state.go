// Package driver has what drivers of chat platforms share: a queue for each chat, tasks
// that end with the driver, whether events come in, pauses, and what outlives the
// process. It knows nothing of messages.
package driver

import (
	"context"
	"encoding/json"
	"fmt"

	"synthbot/core"
)

// State keeps small values by key over a restart. Get returns nil for an unknown key. A
// value is durable when Put returns. Safe for concurrent use.
type State interface {
	Get(ctx context.Context, key string) ([]byte, error)
	Put(ctx context.Context, key string, value []byte) error
}

// Swapper is a State that several drivers or processes change.
type Swapper interface {
	// Swap is Put if old is stored under the key, nil for none. ok is false if something else is.
	Swap(ctx context.Context, key string, old, value []byte) (ok bool, err error)
}

// Holder is a State that another process may take over, together with the places that the driver serves.
type Holder interface {
	// Holds reports whether it is certain that none has. It does not block.
	Holds() bool
}

// Load reads a value as JSON. It leaves the value as it is if there is none.
func Load(ctx context.Context, s State, key string, value any) error {
	data, err := s.Get(ctx, key)
	if err == nil && data != nil {
		err = json.Unmarshal(data, value)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// Save writes a value as JSON.
func Save(ctx context.Context, s State, key string, value any) error {
	data, err := json.Marshal(value)
	if err == nil {
		err = s.Put(ctx, key, data)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// Update reads a value as JSON, changes it and writes it again, unless change returns
// false; what cannot be decoded counts as nothing. ok reports whether it was written. If
// the State is a [Swapper], nobody else changes the value meanwhile: then change is called again.
func Update[T any](ctx context.Context, s State, key string, change func(value *T) bool) (ok bool, err error) {
	for err == nil && !ok {
		var old []byte
		var value T
		old, err = s.Get(ctx, key)
		_ = json.Unmarshal(old, &value)
		if err != nil || !change(&value) {
			break
		}
		ok, err = swap(ctx, s, key, old, core.JSON(value))
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", key, err)
	}
	return ok, err
}

func swap(ctx context.Context, s State, key string, old, value []byte) (ok bool, err error) {
	if shared, ok := s.(Swapper); ok {
		return shared.Swap(ctx, key, old, value)
	}
	err = s.Put(ctx, key, value)
	return err == nil, err
}
