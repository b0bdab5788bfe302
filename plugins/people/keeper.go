package people

import (
	"context"
	"encoding/json"
	"fmt"

	"synthbot/core"
)

// hearsayKept is what a user sees of what they said about another.
type hearsayKept struct {
	About  core.Path         `json:"about"`
	Linked bool              `json:"linked,omitempty"`
	Fields map[field][]value `json:"fields,omitempty"`
}

// saidBy returns the records that a user made about others.
func (p *Plugin) saidBy(ctx context.Context, person core.Path) ([]core.Item, error) {
	items, err := p.host.Items.List(ctx, core.Path{})
	if err != nil {
		return nil, fmt.Errorf("bios: %w", err)
	}
	var theirs []core.Item
	for _, item := range items {
		if item.Key == person.String() && item.Path != person {
			theirs = append(theirs, item)
		}
	}
	return theirs, nil
}

// Kept implements core.DataKeeper: what a user said about others lies under their paths.
func (p *Plugin) Kept(ctx context.Context, person core.Path) ([]json.RawMessage, error) {
	items, err := p.saidBy(ctx, person)
	if err != nil {
		return nil, err
	}
	var kept []json.RawMessage
	for i := range items {
		var r record
		if err := items[i].Decode(&r); err != nil {
			return nil, err
		}
		kept = append(kept, core.JSON(hearsayKept{items[i].Path, r.Linked, r.Fields}))
	}
	return kept, nil
}

// Erase implements core.DataKeeper.
func (p *Plugin) Erase(ctx context.Context, person core.Path) error {
	p.codes.forget(person)
	items, err := p.saidBy(ctx, person)
	if err != nil {
		return err
	}
	for _, item := range items {
		if err := core.PutItem(ctx, p.host.Items, item.Path, item.Key, nil); err != nil {
			return err
		}
	}
	return nil
}
