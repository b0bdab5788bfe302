package core

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// JSON encodes a value of a type that can be encoded; any other is null.
func JSON(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSpace(b.Bytes())
}

// Decode reads the value of an item. It leaves v as it is if there is none.
func (i *Item) Decode(v any) error {
	if i.Value == nil {
		return nil
	}
	if err := json.Unmarshal(i.Value, v); err != nil {
		return fmt.Errorf("item %q of %q: %w", i.Key, i.Path, err)
	}
	return nil
}

// NewItem returns an item that replaces what is under path and key; nil removes it.
func NewItem(path Path, key string, value any) Item {
	item := Item{Path: path, Key: key, Version: AnyVersion}
	if value != nil {
		item.Value = JSON(value)
	}
	return item
}

// GetItem reads the value under path and key. ok is false, and v zero, if there is none.
func GetItem[T any](ctx context.Context, items Items, path Path, key string) (v T, ok bool, err error) {
	item, ok, err := items.Get(ctx, path, key)
	if err != nil {
		return v, false, fmt.Errorf("item %q of %q: %w", key, path, err)
	}
	return v, ok, item.Decode(&v)
}

// PutItem replaces what is under path and key; nil removes it.
func PutItem(ctx context.Context, items Items, path Path, key string, value any) error {
	if _, err := items.Put(ctx, NewItem(path, key, value)); err != nil {
		return fmt.Errorf("item %q of %q: %w", key, path, err)
	}
	return nil
}

// EditItem changes the value under path and key, which is zero if there is none. change is
// called again if the value changed meanwhile. It removes the value unless it returns keep.
func EditItem[T any](
	ctx context.Context, items Items, path Path, key string, change func(*T) (keep bool, err error),
) error {
	const tries = 5
	for range tries {
		item, ok, err := items.Get(ctx, path, key)
		if err != nil {
			return fmt.Errorf("item %q of %q: %w", key, path, err)
		}
		var v T
		if err := item.Decode(&v); err != nil {
			return err
		}
		keep, err := change(&v)
		if err != nil || !keep && !ok {
			return err
		}
		next := Item{Path: path, Key: key, Version: item.Version}
		if keep {
			next.Value = JSON(v)
		}
		_, err = items.Put(ctx, next)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, ErrVersion):
			return fmt.Errorf("item %q of %q: %w", key, path, err)
		}
	}
	return Errorf(Temporary, "Too many changed that at once.")
}
