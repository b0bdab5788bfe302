// Package timezone stores users' time zones for all plugins.
package timezone

import (
	"context"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/values"
)

// Zone is a user's time zone.
type Zone struct {
	Name   string    `json:"zone"`            // name in the IANA database; "": unknown
	Origin core.Path `json:"origin,omitzero"` // where the user set it; it may be shown there and below
}

const key = "zone"

// Of returns a user's zone, or the zero Zone if it is unknown. items are core.Host.Zones; nil has no zones.
func Of(ctx context.Context, items core.Items, person core.Path) (z Zone, err error) {
	if items != nil {
		z, _, err = values.Get[Zone](ctx, items, person, key)
	}
	return z, err
}

// Keep stores a user's zone, as Items.Put does. The zero Zone deletes it.
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

// Load finds a time zone in any case by its name in the IANA database ("Europe/Rome", "UTC"), or by the last part of
// that ("New York") if only one zone has it.
func Load(name string) (loc *time.Location, ok bool) {
	if name == "" || len(name) > maxName || name == "Local" {
		return nil, false
	}
	spellings := []string{strings.ReplaceAll(name, " ", "_"), capitalized(name)}
	for _, spelling := range spellings {
		if loc, err := time.LoadLocation(spelling); err == nil {
			return loc, true
		}
	}
	for _, spelling := range spellings { // "Port-au-Prince", "rome"
		if loc, ok = city(spelling); ok {
			return loc, true
		}
	}
	return nil, false
}

// city finds the only zone with this last part of its name. Several names for one zone count as one.
func city(name string) (found *time.Location, ok bool) {
	if strings.HasPrefix(name, "/") {
		return nil, false
	}
	const regions = "Europe Africa America America/Argentina America/Indiana America/Kentucky " +
		"America/North_Dakota Antarctica Arctic Asia Atlantic Australia Brazil Canada Chile Indian Mexico Pacific US"
	for region := range strings.FieldsSeq(regions) {
		loc, err := time.LoadLocation(region + "/" + name)
		switch {
		case err != nil:
		case found == nil:
			found = loc
		case !showSame(found, loc):
			return nil, false
		}
	}
	return found, found != nil
}

// showSame reports whether clocks in two zones show the same time, in winter and in summer.
func showSame(a, b *time.Location) bool {
	for _, month := range []time.Month{time.January, time.July} {
		at := time.Date(2026, month, 1, 0, 0, 0, 0, time.UTC)
		if at.In(a).Format(time.RFC1123Z) != at.In(b).Format(time.RFC1123Z) {
			return false
		}
	}
	return true
}

// capitalized writes a name in the usual form of the database.
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
