// Package timezone keeps in which time zones people are, once for all plugins that ask or
// tell them.
package timezone

import (
	"context"
	"strings"
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

// city finds the zone whose name ends so. Several names of one zone are one.
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

// showSame reports whether the clocks of two zones show the same, in winter and in summer.
func showSame(a, b *time.Location) bool {
	for _, month := range []time.Month{time.January, time.July} {
		at := time.Date(2026, month, 1, 0, 0, 0, 0, time.UTC)
		if at.In(a).Format(time.RFC1123Z) != at.In(b).Format(time.RFC1123Z) {
			return false
		}
	}
	return true
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
