// Package values stores values of any type as the JSON of items.
package values

import (
	"context"
	"errors"
	"fmt"

	"synthbot/core"
)

// New returns an item that sets the value under path and key; nil removes it.
func New(path core.Path, key string, value any) core.Item {
	item := core.Item{Path: path, Key: key, Version: core.AnyVersion}
	if value != nil {
		item.Value = core.JSON(value)
	}
	return item
}

// Get reads the value under path and key. ok is false, and v zero, if there is none.
func Get[T any](ctx context.Context, items core.Items, path core.Path, key string) (v T, ok bool, err error) {
	item, ok, err := items.Get(ctx, path, key)
	if err != nil {
		return v, false, itemError(path, key, err)
	}
	err = item.Decode(&v)
	return v, ok, err
}

// Put sets the value under path and key; nil removes it.
func Put(ctx context.Context, items core.Items, path core.Path, key string, value any) error {
	_, err := items.Put(ctx, New(path, key, value))
	return itemError(path, key, err)
}

// itemError adds the name of the item to an error. It returns nil if err is nil.
func itemError(path core.Path, key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("item %q of %q: %w", key, path, err)
}

// Edit changes the value under path and key, which is zero if there is none. change is
// called again if the value changed meanwhile. It removes the value unless it returns keep.
func Edit[T any](
	ctx context.Context, items core.Items, path core.Path, key string, change func(*T) (keep bool, err error),
) error {
	const tries = 5
	for range tries {
		item, ok, err := items.Get(ctx, path, key)
		if err != nil {
			return itemError(path, key, err)
		}
		var v T
		if err := item.Decode(&v); err != nil {
			return err
		}
		keep, err := change(&v)
		if err != nil || !keep && !ok {
			return err
		}
		next := core.Item{Path: path, Key: key, Version: item.Version}
		if keep {
			next.Value = core.JSON(v)
		}
		_, err = items.Put(ctx, next)
		if !errors.Is(err, core.ErrVersion) {
			return itemError(path, key, err)
		}
	}
	return core.Errorf(core.Temporary, "Too many changes at the same time. Please try again.")
}
