package diary

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"synthbot/core"
)

// shown is what users see of an entry about them.
type shown struct {
	Place core.Path `json:"place"`
	Day   string    `json:"day"`
	open
}

// Kept implements core.DataKeeper: the entries that a person is in, without the
// bot's private thoughts and without the other people's paths.
func (p *Plugin) Kept(ctx context.Context, person core.Path) ([]json.RawMessage, error) {
	items, err := p.pages(ctx)
	if err != nil {
		return nil, err
	}
	var kept []json.RawMessage
	for _, item := range items {
		var v view
		if err := item.Decode(&v); err != nil {
			return nil, err
		}
		day, _ := isDay(item.Key)
		for _, e := range v.Entries {
			if !e.concerns(person) {
				continue
			}
			e.By, e.People = core.Path{}, nil
			kept = append(kept, core.JSON(shown{item.Path, day, e}))
		}
	}
	return kept, nil
}

// pages are all days of all places.
func (p *Plugin) pages(ctx context.Context) ([]core.Item, error) {
	items, err := p.host.Items.List(ctx, core.Path{})
	if err != nil {
		return nil, fmt.Errorf("diary: %w", err)
	}
	return slices.DeleteFunc(items, func(i core.Item) bool { _, ok := isDay(i.Key); return !ok }), nil
}

// concerns reports whether a person caused the entry, or is in it.
func (e *open) concerns(person core.Path) bool {
	return e.By == person || slices.ContainsFunc(e.People, func(s someone) bool { return s.Path == person })
}

// Erase implements core.DataKeeper: entries about the user alone are deleted. Their name leaves
// the others, and so do digests made of them.
func (p *Plugin) Erase(ctx context.Context, person core.Path) error {
	items, err := p.pages(ctx)
	if err != nil {
		return err
	}
	for _, item := range items {
		var d page
		if err := item.Decode(&d); err != nil {
			return err
		}
		if !d.erase(person) {
			continue
		}
		day, _ := isDay(item.Key)
		if err := p.edit(ctx, item.Path, day, func(d *page) error { d.erase(person); return nil }); err != nil {
			return err
		}
	}
	return nil
}

// erase removes a user from a page, and reports whether they were in it.
func (d *page) erase(person core.Path) (found bool) {
	var names []someone // of the user
	d.Entries = slices.DeleteFunc(d.Entries, func(e entry) bool {
		if !e.concerns(person) {
			return false
		}
		found = true
		others := !e.By.IsZero() && e.By != person
		for _, s := range e.People {
			if s.Path == person {
				names = append(names, s)
			} else {
				others = true
			}
		}
		return !others
	})
	for i := range d.Entries {
		e := &d.Entries[i]
		if e.concerns(person) {
			e.without(person, names)
		}
	}
	if found {
		d.Digest = nil
	}
	return found
}

// without takes a person's names out of an entry.
func (e *entry) without(person core.Path, names []someone) {
	e.People = slices.DeleteFunc(e.People, func(s someone) bool { return s.Path == person })
	if e.By == person {
		e.By = core.Path{}
	}
	for _, s := range names {
		e.Summary, e.Thought = s.without(e.Summary), s.without(e.Thought)
		for i := range e.Tags {
			e.Tags[i] = s.without(e.Tags[i])
		}
		for i := range e.Feelings {
			e.Feelings[i] = s.without(e.Feelings[i])
		}
	}
}
