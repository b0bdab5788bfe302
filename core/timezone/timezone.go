// Package timezone keeps in which time zones people are, once for all plugins that ask or
// tell them.
package timezone

import (
	"context"
	"encoding/json"
	"fmt"

	"synthbot/core"
)

// Zone is in which time zone a person is.
type Zone struct {
	Name   string    `json:"zone"`            // of the IANA database; "": they never said
	Origin core.Path `json:"origin,omitzero"` // where they said so: there and below it may be told
}

const key = "zone"

// Of returns a person's zone; the zero Zone if they never said. items are core.Host.Zones;
// nil stores nothing.
func Of(ctx context.Context, items core.Items, person core.Path) (Zone, error) {
	if items == nil {
		return Zone{}, nil
	}
	item, ok, err := items.Get(ctx, person, key)
	var kept Zone
	if err == nil && ok {
		err = json.Unmarshal(item.Value, &kept)
	}
	if err != nil {
		return Zone{}, fmt.Errorf("zone of %s: %w", person, err)
	}
	return kept, nil
}

// Keep stores a person's zone, as Items.Put does; the zero Zone takes it away.
func Keep(ctx context.Context, items core.Items, person core.Path, z Zone) error {
	if items == nil {
		return nil
	}
	item := core.Item{Path: person, Key: key, Version: core.AnyVersion}
	if z.Name != "" {
		raw, err := json.Marshal(z)
		if err != nil {
			return fmt.Errorf("zone: %w", err)
		}
		item.Value = raw
	}
	if _, err := items.Put(ctx, item); err != nil {
		return fmt.Errorf("zone of %s: %w", person, err)
	}
	return nil
}
