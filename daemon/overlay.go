package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"synthbot/core"
)

// changed is what was changed by command in a place and below it. What is nil
// was not.
type changed struct {
	Persona    *string `json:"persona,omitempty"` // a file
	Engine     *string `json:"engine,omitempty"`
	Activation *string `json:"activation,omitempty"`
	Asleep     *bool   `json:"asleep,omitempty"`
	Admin      *bool   `json:"admin,omitempty"` // of a person
	Language   *string `json:"language,omitempty"`
	Scope      *string `json:"scope,omitempty"`
	Allow      *string `json:"allow,omitempty"` // patterns of actions, with commas
	Deny       *string `json:"deny,omitempty"`  // likewise
	Person     *int64  `json:"person,omitempty"`
	Tokens     *int64  `json:"tokens,omitempty"`
}

func (c changed) isZero() bool { return c == changed{} }

// overlay is what was changed by command. It outlives the process; the file's
// overrides count where their path is longer. Safe for concurrent use.
type overlay struct {
	items core.Items

	mu     sync.RWMutex
	places map[core.Path]changed
}

const overlayKey = "changed"

// openOverlay reads what was changed in former lives.
func openOverlay(ctx context.Context, items core.Items) (*overlay, error) {
	o := &overlay{items: items}
	_, err := o.reread(ctx)
	return o, err
}

// reread takes what is kept for all there is: somebody was forgotten, with his
// private places. It reports whether there is less than before.
func (o *overlay) reread(ctx context.Context) (less bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	all, err := o.items.List(ctx, core.Path{})
	if err != nil {
		return false, fmt.Errorf("settings changed by command: %w", err)
	}
	before := len(o.places)
	o.places = make(map[core.Path]changed)
	for _, i := range all {
		var c changed
		if i.Key == overlayKey && json.Unmarshal(i.Value, &c) == nil {
			o.places[i.Path] = c
		}
	}
	return len(o.places) < before, nil
}

// change applies f to what was changed at the path, and keeps it.
func (o *overlay) change(ctx context.Context, at core.Path, f func(*changed)) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.places[at]
	f(&c)
	item := core.Item{Path: at, Key: overlayKey, Version: core.AnyVersion}
	if !c.isZero() {
		raw, err := json.Marshal(c)
		if err != nil {
			return err
		}
		item.Value = raw
	}
	if _, err := o.items.Put(ctx, item); err != nil {
		return fmt.Errorf("settings changed by command: %w", err)
	}
	if c.isZero() {
		delete(o.places, at)
	} else {
		o.places[at] = c
	}
	return nil
}

// at returns what sets reports to be set, at the longest path that holds the
// place, and that path; ok is false where nothing was changed.
func (o *overlay) at(place core.Path, sets func(changed) bool) (c changed, at core.Path, ok bool) {
	if o == nil {
		return c, at, false
	}
	o.mu.RLock()
	defer o.mu.RUnlock()
	if len(o.places) == 0 {
		return c, at, false
	}
	for at = place; ; at = at.Parent() {
		if c, ok = o.places[at]; ok && sets(c) {
			return c, at, true
		}
		if at.IsZero() {
			return changed{}, at, false
		}
	}
}

// each calls f for each place where something was changed, in their order.
func (o *overlay) each(f func(at core.Path, c changed)) {
	if o == nil {
		return
	}
	o.mu.RLock()
	defer o.mu.RUnlock()
	for _, p := range slices.SortedFunc(maps.Keys(o.places), func(a, b core.Path) int { return strings.Compare(a.String(), b.String()) }) {
		f(p, o.places[p])
	}
}

// admins are the people who were made admins by command.
func (o *overlay) admins() []core.Path {
	var people []core.Path
	o.each(func(p core.Path, c changed) {
		if c.Admin != nil && *c.Admin && p.IsPerson() {
			people = append(people, p)
		}
	})
	return people
}

// asleep reports whether the place was put to sleep: what is said there is context.
func (o *overlay) asleep(place core.Path) bool {
	c, _, ok := o.at(place, func(c changed) bool { return c.Asleep != nil })
	return ok && *c.Asleep
}
