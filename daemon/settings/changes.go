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
	"sync/atomic"

	"synthbot/config"
	"synthbot/core"
	"synthbot/core/sorting"
)

// Layer is what one source sets for a path and all places below it.
type Layer[T any] struct {
	Path   core.Path
	From   string // the source, shown to users: "override discord/1"
	Values T
}

// Changes are the settings that users changed by command, stored in items. Safe for concurrent use.
type Changes[T any] struct {
	items  core.Items
	mu     sync.Mutex                              // held while layers change
	layers atomic.Pointer[map[core.Path]*Layer[T]] // each change makes a new map
}

const itemKey = "changed" // the key of the items that hold changes, as JSON

// Open reads the stored changes.
func Open[T any](ctx context.Context, items core.Items) (*Changes[T], error) {
	c := &Changes[T]{items: items}
	_, err := c.Reread(ctx)
	return c, err
}

// Reread reads the stored changes again, as after a user was forgotten. It reports whether there are fewer than before.
func (c *Changes[T]) Reread(ctx context.Context) (fewer bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, err := c.items.List(ctx, core.Path{})
	if err != nil {
		return false, fmt.Errorf("settings changed by command: %w", err)
	}
	before := len(c.now())
	layers := make(map[core.Path]*Layer[T])
	for _, item := range all {
		var values T
		if item.Key == itemKey && json.Unmarshal(item.Value, &values) == nil {
			layers[item.Path] = newChange(item.Path, values)
		}
	}
	c.layers.Store(&layers)
	return len(layers) < before, nil
}

func newChange[T any](at core.Path, values T) *Layer[T] {
	from := "a command in " + at.String()
	if at.IsZero() {
		from = "a command for all places"
	}
	return &Layer[T]{Path: at, From: from, Values: values}
}

// now returns the changes by path. The caller must not change the map.
func (c *Changes[T]) now() map[core.Path]*Layer[T] {
	layers := c.layers.Load()
	if layers == nil {
		return nil
	}
	return *layers
}

// Change lets f change the settings of a path, and stores them together with further items, or nothing.
func (c *Changes[T]) Change(ctx context.Context, at core.Path, f func(*T), further ...core.Item) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	layers, values := maps.Clone(c.now()), c.At(at)
	f(&values)
	item := core.Item{Path: at, Key: itemKey, Version: core.AnyVersion}
	if reflect.ValueOf(values).IsZero() {
		delete(layers, at)
	} else {
		raw, err := json.Marshal(values)
		if err != nil {
			return err
		}
		item.Value, layers[at] = raw, newChange(at, values)
	}
	if err := c.items.PutAll(ctx, append(further, item)...); err != nil {
		return fmt.Errorf("settings changed by command: %w", err)
	}
	c.layers.Store(&layers)
	return nil
}

// Set changes one setting of a path to a value that a user wrote, or to [Default]. The errors are for users.
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

// At returns the changes of a path; the zero Path is for all places.
func (c *Changes[T]) At(path core.Path) (values T) {
	if l, ok := c.now()[path]; ok {
		values = l.Values
	}
	return values
}

// All returns the changes of all paths, shorter paths first.
func (c *Changes[T]) All() []*Layer[T] { return sorted(slices.Collect(maps.Values(c.now()))) }

// sorted sorts layers, shorter paths first. Layers of one path keep their order.
func sorted[T any](layers []*Layer[T]) []*Layer[T] {
	sorting.SortStable(layers, func(a, b *Layer[T]) int {
		return cmp.Or(cmp.Compare(depth(a.Path), depth(b.Path)), strings.Compare(a.Path.String(), b.Path.String()))
	})
	return layers
}

func depth(p core.Path) int { return strings.Count(p.String(), "/") }
