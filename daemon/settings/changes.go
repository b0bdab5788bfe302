package settings

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"synthbot/config"
	"synthbot/core"
)

// Layer is what one source sets for a path and all places below it.
type Layer[T any] struct {
	Path   core.Path
	From   string // the source, shown to users: "override discord/1"
	Values T
}

// Changes are the settings that users changed by command. They are stored in items
// and survive a restart. Safe for concurrent use.
type Changes[T any] struct {
	items core.Items

	mu      sync.RWMutex
	layers  map[core.Path]*Layer[T]
	version int // counts changes
}

// itemKey is the key of the items that hold changes, as JSON.
const itemKey = "changed"

// Open reads the stored changes.
func Open[T any](ctx context.Context, items core.Items) (*Changes[T], error) {
	c := &Changes[T]{items: items}
	_, err := c.Reread(ctx)
	return c, err
}

// Reread reads the stored changes again, after someone was forgotten. It reports
// whether there are fewer than before.
func (c *Changes[T]) Reread(ctx context.Context) (fewer bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, err := c.items.List(ctx, core.Path{})
	if err != nil {
		return false, fmt.Errorf("settings changed by command: %w", err)
	}
	before := len(c.layers)
	c.layers = make(map[core.Path]*Layer[T])
	c.version++
	for _, item := range all {
		var values T
		if item.Key == itemKey && json.Unmarshal(item.Value, &values) == nil {
			c.put(item.Path, values)
		}
	}
	return len(c.layers) < before, nil
}

// put makes values the changes of a path. The caller holds mu.
func (c *Changes[T]) put(at core.Path, values T) {
	c.layers[at] = &Layer[T]{Path: at, From: "a command in " + at.String(), Values: values}
}

// Change lets f change the settings of a path, and stores them.
func (c *Changes[T]) Change(ctx context.Context, at core.Path, f func(*T)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var values T
	if old, ok := c.layers[at]; ok {
		values = old.Values
	}
	f(&values)
	item := core.Item{Path: at, Key: itemKey, Version: core.AnyVersion}
	isEmpty := reflect.ValueOf(values).IsZero()
	if !isEmpty {
		raw, err := json.Marshal(values)
		if err != nil {
			return err
		}
		item.Value = raw
	}
	if _, err := c.items.Put(ctx, item); err != nil {
		return fmt.Errorf("settings changed by command: %w", err)
	}
	c.version++
	if isEmpty {
		delete(c.layers, at)
	} else {
		c.put(at, values)
	}
	return nil
}

// Set changes one setting of a path to a value that a user wrote. [Default] takes
// back an earlier change. The errors are for users.
func (c *Changes[T]) Set(ctx context.Context, at core.Path, name, text string) error {
	var parsed T
	from := reflect.ValueOf(&parsed).Elem()
	f, err := find(from.Type(), name)
	if err != nil {
		return err
	}
	if text != Default {
		if f.of(from).Kind() == reflect.Slice {
			text = strings.Join(elements(text), ",")
		}
		err := config.SetText(&parsed, name, text)
		if err == nil && !f.isSet(from) {
			err = fmt.Errorf("is empty; write a value, or %s", Default)
		}
		if err != nil {
			return core.Errorf(core.Invalid, "%s %s.", name, err)
		}
	}
	return c.Change(ctx, at, func(values *T) { f.of(reflect.ValueOf(values).Elem()).Set(f.of(from)) })
}

// at returns the changes of a path: one layer, or none.
func (c *Changes[T]) at(path core.Path) []*Layer[T] {
	c.mu.RLock()
	defer c.mu.RUnlock()
	l, ok := c.layers[path]
	if !ok {
		return nil
	}
	return []*Layer[T]{l}
}

// state returns how many paths have changes, and their version.
func (c *Changes[T]) state() (paths, version int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.layers), c.version
}

// All returns the changes of all paths, shorter paths first.
func (c *Changes[T]) All() []*Layer[T] {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.SortedFunc(maps.Values(c.layers), func(a, b *Layer[T]) int { return compare(a.Path, b.Path) })
}

// compare sorts shorter paths before longer ones.
func compare(a, b core.Path) int {
	return cmp.Or(cmp.Compare(depth(a), depth(b)), strings.Compare(a.String(), b.String()))
}

func depth(p core.Path) int { return strings.Count(p.String(), "/") }
