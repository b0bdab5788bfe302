package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"synthbot/core"
)

const maxPluginKey = 1024

var _ core.Items = items{}

type items struct {
	db     *DB
	plugin string
}

// Items returns the items of a plugin.
func (db *DB) Items(plugin string) core.Items { return items{db, plugin} }

type storedItem struct {
	Version uint64          `json:"n"`
	Time    time.Time       `json:"t"`
	Value   json.RawMessage `json:"v"`
}

func pluginKey(plugin string, path core.Path, key string) []byte {
	k := append([]byte(plugin), terminator)
	k = append(k, placeKey(path)...)
	return append(k, key...)
}

func checkItem(plugin, key string) error {
	if plugin == "" || strings.ContainsRune(plugin, terminator) || len(plugin)+len(key) > maxPluginKey {
		return fmt.Errorf("%w: plugin %q, a key of %d bytes", ErrBatch, plugin, len(key))
	}
	return nil
}

// Get implements core.Items: ok is false, and the version 0, if there is no item.
func (i items) Get(ctx context.Context, path core.Path, key string) (item core.Item, ok bool, err error) {
	err = i.db.view(ctx, func(v *view) error {
		item, ok, err = i.read(&v.tx, path, key)
		return err
	})
	return item, ok, err
}

func (i items) read(t *tx, path core.Path, key string) (core.Item, bool, error) {
	if !path.IsZero() {
		path = t.resolve(path).path
	}
	value := t.bucket(bucketPlugins).Get(pluginKey(i.plugin, path, key))
	if value == nil {
		return core.Item{Path: path, Key: key}, false, nil
	}
	item, err := readItem(path, key, value)
	return item, err == nil, err
}

func readItem(path core.Path, key string, value []byte) (core.Item, error) {
	var k storedItem
	if err := json.Unmarshal(value, &k); err != nil {
		return core.Item{}, fmt.Errorf("item %q of %s: %w", key, path, err)
	}
	return core.Item{Path: path, Key: key, Version: k.Version, Value: k.Value}, nil
}

// Put stores an item and returns its new version. item.Version must be the stored one, 0 for none, or core.AnyVersion;
// else the error wraps core.ErrVersion. A nil Value deletes the item. An item is not stored if it lies under the path
// of somebody who was forgotten after the context's epoch began, names them, or comes from a turn that answers them;
// the error wraps core.ErrForgotten.
func (i items) Put(ctx context.Context, item core.Item) (version uint64, err error) {
	return i.put(ctx, []core.Item{item})
}

// PutAll is Put for several items, all or none.
func (i items) PutAll(ctx context.Context, list ...core.Item) error {
	_, err := i.put(ctx, list)
	return err
}

// put stores items, all or none, and returns the version of the last one.
func (i items) put(ctx context.Context, list []core.Item) (version uint64, err error) {
	name, size := "", 0
	for n := range list {
		item := &list[n]
		name = "an item of plugin " + i.plugin + " under " + item.Path.String()
		if err := checkItem(i.plugin, item.Key); err != nil {
			return 0, err
		}
		if item.Value == nil {
			continue
		}
		if len(item.Value) > maxEntryBytes || !json.Valid(item.Value) {
			return 0, fmt.Errorf("%w: the value of %q, of %d bytes, is not JSON or too large",
				ErrBatch, item.Key, len(item.Value))
		}
		size += len(item.Value) + 200
	}
	b := i.db.epochOf(ctx)
	j := &job{name: name, size: size, run: func(t *tx) error {
		for _, item := range list {
			if item.Value != nil && b.concerns(&item) {
				return fmt.Errorf("%w: %w", ErrBatch, core.ErrForgotten)
			}
			if version, err = i.write(t, item); err != nil {
				return err
			}
		}
		return nil
	}}
	if err := i.db.write(ctx, j); err != nil {
		return 0, err
	}
	return version, nil
}

// concerns reports whether an item is of somebody or a place forgotten since then, or of a turn that answers them.
func (b writeEpoch) concerns(item *core.Item) bool {
	key, _ := core.ParsePath(item.Key)
	return b.isMuted(b.turn) || b.forgot(item.Path, key) || b.isNamed(item.Value)
}

func (i items) write(t *tx, item core.Item) (uint64, error) {
	old, _, err := i.read(t, item.Path, item.Key)
	if err != nil {
		return 0, err
	}
	if item.Version != core.AnyVersion && item.Version != old.Version {
		return 0, fmt.Errorf("%w: %w: %s, %q: version %d is stored, %d was read",
			ErrBatch, core.ErrVersion, i.plugin, item.Key, old.Version, item.Version)
	}
	key := pluginKey(i.plugin, old.Path, item.Key)
	if item.Value == nil {
		t.bucket(bucketPlugins).Delete(key)
		return 0, nil
	}
	version := old.Version + 1
	t.bucket(bucketPlugins).Put(key, core.JSON(storedItem{version, t.now, item.Value}))
	return version, nil
}

// List returns the items at or below root, by path and key.
func (i items) List(ctx context.Context, root core.Path) (list []core.Item, err error) {
	err = i.db.view(ctx, func(v *view) error {
		prefix := append([]byte(i.plugin), terminator)
		from, to := prefix, prefixEnd(prefix)
		if !root.IsZero() {
			from, to = subtree(v.resolve(root).path)
			from, to = slices.Concat(prefix, from), slices.Concat(prefix, to)
		}
		for k, value := range v.bucket(bucketPlugins).pairs(from, to) {
			item, err := itemAt(k[len(prefix):], value)
			if err != nil {
				return err
			}
			list = append(list, item)
		}
		return nil
	})
	return list, err
}

func itemAt(rest, value []byte) (core.Item, error) {
	path, key, err := cutOrigin(rest)
	if err != nil {
		return core.Item{}, err
	}
	return readItem(path, string(key), value)
}
