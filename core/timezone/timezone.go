// Package timezone keeps in which time zones people are, once for all plugins that ask or
// tell them.
package timezone

import (
	"context"
	"time"

	"synthbot/core"
	"synthbot/core/values"
)

// Zone is in which time zone a person is.
type Zone struct {
	Name   string    `json:"zone"`            // of the IANA database; "": they never said
	Origin core.Path `json:"origin,omitzero"` // where they said so: there and below it may be shown
}

const key = "zone"

// Of returns a person's zone; the zero Zone if they never said. items are core.Host.Zones;
// nil stores nothing.
func Of(ctx context.Context, items core.Items, person core.Path) (z Zone, err error) {
	if items != nil {
		z, _, err = values.Get[Zone](ctx, items, person, key)
	}
	return z, err
}

// Keep stores a person's zone, as Items.Put does; the zero Zone takes it away.
func Keep(ctx context.Context, items core.Items, person core.Path, z Zone) error {
	switch {
	case items == nil:
		return nil
	case z.Name == "":
		return values.Put(ctx, items, person, key, nil)
	}
	return values.Put(ctx, items, person, key, z)
}

// maxName is longer than any name of a time zone.
const maxName = 64

// Load finds a time zone by its name in the IANA database ("Europe/Rome", "UTC"), in any
// case.
func Load(name string) (loc *time.Location, ok bool) {
	if name == "" || len(name) > maxName || name == "Local" {
		return nil, false
	}
	for _, spelling := range []string{name, capitalized(name)} {
		if loc, err := time.LoadLocation(spelling); err == nil {
			return loc, true
		}
	}
	return nil, false
}

// capitalized writes a name as the database mostly does.
func capitalized(name string) string {
	b := []byte(name)
	for i, c := range b {
		first := i == 0 || b[i-1] == '/' || b[i-1] == '_' || b[i-1] == '-'
		switch {
		case first && 'a' <= c && c <= 'z':
			b[i] = c - 'a' + 'A'
		case !first && 'A' <= c && c <= 'Z':
			b[i] = c - 'A' + 'a'
		case c == ' ':
			b[i] = '_'
		}
	}
	return string(b)
}
