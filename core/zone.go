package core

import (
	"context"
	"encoding/json"
	"fmt"
)

// Zone is in which time zone a person is.
type Zone struct {
	Name   string `json:"zone"`            // of the IANA database; "": he never said
	Origin Path   `json:"origin,omitzero"` // where he said so: there and below it may be told
}

// zoneKey is under what a person's zone is kept.
const zoneKey = "zone"

// Zones keeps in which time zones people are, once for all plugins that ask or
// tell them. The zero value knows nobody, and keeps nothing. Safe for concurrent
// use.
type Zones struct{ Items Items }

// Of returns the person's; the zero Zone where he never said.
func (z Zones) Of(ctx context.Context, person Path) (Zone, error) {
	if z.Items == nil {
		return Zone{}, nil
	}
	item, ok, err := z.Items.Get(ctx, person, zoneKey)
	var kept Zone
	if err == nil && ok {
		err = json.Unmarshal(item.Value, &kept)
	}
	if err != nil {
		return Zone{}, fmt.Errorf("zone of %s: %w", person, err)
	}
	return kept, nil
}

// Keep keeps it in place of what was there, as Items.Put does; the zero Zone takes
// it away.
func (z Zones) Keep(ctx context.Context, person Path, zone Zone) error {
	if z.Items == nil {
		return nil
	}
	item := Item{Path: person, Key: zoneKey, Version: AnyVersion}
	if zone.Name != "" {
		raw, err := json.Marshal(zone)
		if err != nil {
			return fmt.Errorf("zone: %w", err)
		}
		item.Value = raw
	}
	if _, err := z.Items.Put(ctx, item); err != nil {
		return fmt.Errorf("zone of %s: %w", person, err)
	}
	return nil
}
