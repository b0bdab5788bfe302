package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"synthbot/core"
)

const maxPluginKey = 1024

var _ core.Items = items{}

// items is what one plugin keeps.
type items struct {
	db     *DB
	plugin string
}

// Items is what the plugin of that name keeps.
func (db *DB) Items(plugin string) core.Items { return items{db, plugin} }

// kept is an Item as it is stored.
type kept struct {
	Version uint64          `json:"n"`
	Time    time.Time       `json:"t"`
	Value   json.RawMessage `json:"v"`
}

// pluginKey is the key of an item: plugin, 0, place, key.
func pluginKey(plugin string, path core.Path, key string) []byte {
	k := append([]byte(plugin), ending)
	k = append(k, placeKey(path)...)
	return append(k, key...)
}

func checkItem(plugin, key string) error {
	if plugin == "" || strings.ContainsRune(plugin, ending) || len(plugin)+len(key) > maxPluginKey {
		return fmt.Errorf("%w: plugin %q, a key of %d bytes", ErrBatch, plugin, len(key))
	}
	return nil
}

// Get returns what a plugin keeps under path and key; ok is false, and the
// version 0, where there is nothing.
func (i items) Get(ctx context.Context, path core.Path, key string) (item core.Item, ok bool, err error) {
	err = i.db.view(ctx, func(v *view) error {
		item, ok, err = v.item(i.plugin, path, key)
		return err
	})
	return item, ok, err
}

func (t *tx) item(plugin string, path core.Path, key string) (core.Item, bool, error) {
	if !path.IsZero() {
		path = t.resolve(path).path
	}
	value := t.bucket(bucketPlugins).Get(pluginKey(plugin, path, key))
	if value == nil {
		return core.Item{Path: path, Key: key}, false, nil
	}
	item, err := readItem(path, key, value)
	return item, err == nil, err
}

func readItem(path core.Path, key string, value []byte) (core.Item, error) {
	var k kept
	if err := json.Unmarshal(value, &k); err != nil {
		return core.Item{}, fmt.Errorf("item %q of %s: %w", key, path, err)
	}
	return core.Item{Path: path, Key: key, Version: k.Version, Time: k.Time, Value: k.Value}, nil
}

// Put keeps an item and returns its new version. item.Version must be the one
// that is there, 0 for none, or AnyVersion; else the error wraps core.ErrVersion. A
// nil Value takes the item away. What lies under the path of somebody who was
// forgotten after the epoch of the context began, names them, or comes of a turn
// that answers them, is not stored; the error wraps core.ErrForgotten.
func (i items) Put(ctx context.Context, item core.Item) (version uint64, err error) {
	return i.put(ctx, []core.Item{item})
}

// PutAll is Put for several items, all or none.
func (i items) PutAll(ctx context.Context, list ...core.Item) error {
	_, err := i.put(ctx, list)
	return err
}

// put keeps items, all or none, and returns the version of the last one.
func (i items) put(ctx context.Context, list []core.Item) (version uint64, err error) {
	size := 0
	for n := range list {
		item := &list[n]
		if err := checkItem(i.plugin, item.Key); err != nil {
			return 0, err
		}
		if item.Value != nil && (len(item.Value) > maxEntryBytes || !json.Valid(item.Value)) {
			return 0, fmt.Errorf("%w: the value of %q, of %d bytes, is not JSON or too large",
				ErrBatch, item.Key, len(item.Value))
		}
		if item.Value != nil {
			size += len(item.Value) + 200
		}
	}
	b := i.db.begun(ctx)
	name := func() string { return "an item of plugin " + i.plugin + " under " + list[0].Path.String() }
	j := &job{name: name, size: size, run: func(t *tx) error {
		for _, item := range list {
			if item.Value != nil && b.concerns(&item) {
				return fmt.Errorf("%w: %w", ErrBatch, core.ErrForgotten)
			}
			if version, err = t.putItem(i.plugin, item); err != nil {
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

// concerns reports whether an item is about somebody, or of a place, that was
// forgotten since, or comes of a turn that answers them.
func (b begun) concerns(item *core.Item) bool {
	if b.stale() || b.forgot(item.Path) || b.named(item.Value) {
		return true
	}
	key, _ := core.ParsePath(item.Key)
	return b.forgot(key)
}

func (t *tx) putItem(plugin string, item core.Item) (uint64, error) {
	old, _, err := t.item(plugin, item.Path, item.Key)
	if err != nil {
		return 0, err
	}
	if item.Version != core.AnyVersion && item.Version != old.Version {
		return 0, fmt.Errorf("%w: %w: %s, %q: version %d is there, %d was read",
			ErrBatch, core.ErrVersion, plugin, item.Key, old.Version, item.Version)
	}
	key := pluginKey(plugin, old.Path, item.Key)
	if item.Value == nil {
		t.bucket(bucketPlugins).Delete(key)
		return 0, nil
	}
	value, err := json.Marshal(kept{old.Version + 1, t.now, item.Value})
	if err != nil {
		return 0, fmt.Errorf("item: %w", err)
	}
	t.bucket(bucketPlugins).Put(key, value)
	return old.Version + 1, nil
}

// List returns what a plugin keeps at or below root, by path and key; for the
// zero Path everything.
func (i items) List(ctx context.Context, root core.Path) (list []core.Item, err error) {
	err = i.db.view(ctx, func(v *view) error {
		p := v.resolve(root)
		prefix := append([]byte(i.plugin), ending)
		from, to := subtree(p.path)
		cursor := v.bucket(bucketPlugins).Cursor()
		k, value := cursor.Seek(append(bytes.Clone(prefix), from...))
		for ; bytes.HasPrefix(k, prefix); k, value = cursor.Next() {
			if !below(k[len(prefix):], to) {
				break
			}
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

// itemAt reads an item from what follows the plugin's name in its key.
func itemAt(rest, value []byte) (core.Item, error) {
	place, key, ok := bytes.Cut(rest, []byte{ending})
	if !ok {
		return core.Item{}, fmt.Errorf("item %q: %w", rest, errFields)
	}
	var path core.Path
	if len(place) > 0 {
		var err error
		if path, err = placeOf(rest[:len(place)+1]); err != nil {
			return core.Item{}, err
		}
	}
	return readItem(path, string(key), value)
}
