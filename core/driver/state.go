// Package driver holds what drivers of chat platforms share: stored state, background tasks, send queues, storing of
// received events, health, pauses, and the guard against sending after another process has taken over. It does not
// know what messages say.
package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"synthbot/core"
	"synthbot/core/loop"
)

// State stores small values by key, which survive a restart. Get returns nil for an unknown key. A value is
// durable when Put returns. Safe for concurrent use.
type State interface {
	Get(ctx context.Context, key string) ([]byte, error)
	Put(ctx context.Context, key string, value []byte) error
}

// Swapper is a State that several drivers or processes can change.
type Swapper interface {
	// Swap stores value if old is the stored value; nil means none. Otherwise ok is false.
	Swap(ctx context.Context, key string, old, value []byte) (ok bool, err error)
}

// Holder is a State that another process can take over, together with the places that the driver serves.
type Holder interface {
	// Holds reports whether it is certain that no other process has taken over. It does not block.
	Holds() bool
}

// Load decodes the JSON stored under a key into value, a pointer. It leaves value unchanged if there is none.
// The error wraps core.ErrDamaged if the JSON cannot be decoded.
func Load(ctx context.Context, s State, key string, value any) error {
	data, err := s.Get(ctx, key)
	if err == nil && data != nil {
		if err = json.Unmarshal(data, value); err != nil {
			err = fmt.Errorf("%w: %w", core.ErrDamaged, err)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// AwaitState calls load, which loads what a driver needs before it may receive events, until the store can be
// read. What is damaged is left out, because it would stay so. AwaitState returns false if ctx ends first.
func AwaitState(ctx context.Context, log *slog.Logger, load func(context.Context) error) bool {
	for pause := time.Second / 4; ; pause = min(2*pause, 10*time.Second) {
		err := load(ctx)
		switch {
		case ctx.Err() != nil:
			return false
		case errors.Is(err, core.ErrDamaged):
			log.Error("state is damaged, continuing without it", "err", err)
			return true
		case err == nil:
			return true
		}
		log.Warn("state not read yet", "retry_in", pause, "err", err)
		if !loop.Sleep(ctx, pause) {
			return false
		}
	}
}

// Save stores a value as JSON.
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

// Update reads a value as JSON, calls change, and stores the result unless change returns false. A value
// that cannot be decoded counts as missing. ok reports whether the result was stored. If the State is a
// [Swapper] and another process changes the value meanwhile, change is called again with the new value.
func Update[T any](ctx context.Context, s State, key string, change func(value *T) bool) (ok bool, err error) {
	shared, isShared := s.(Swapper)
	for err == nil && !ok {
		var old []byte
		var value T
		old, err = s.Get(ctx, key)
		_ = json.Unmarshal(old, &value)
		if err != nil || !change(&value) {
			break
		}
		if isShared {
			ok, err = shared.Swap(ctx, key, old, core.JSON(value))
		} else {
			err = s.Put(ctx, key, core.JSON(value))
			ok = err == nil
		}
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", key, err)
	}
	return ok, err
}
