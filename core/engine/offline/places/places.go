// Package places knows the time zones of cities and countries by their names in several languages.
package places

import (
	_ "embed"
	"strings"
	"sync"
	"time"

	"synthbot/core/engine/offline/phrases"
)

// placeList names places in all languages, with the time zone of each: "Asia/Tokyo: tokyo, tokio, japan". Where
// a country has several, they are all there.
//
//go:embed places.txt
var placeList string

// readPlaces maps folded names to time zones.
func readPlaces() map[string][]string {
	all := make(map[string][]string)
	for line := range strings.Lines(placeList) {
		zones, names, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		for name := range strings.SplitSeq(names, ", ") {
			all[phrases.FoldName(name)] = strings.Fields(zones)
		}
	}
	return all
}

var list = sync.OnceValue(readPlaces)

// Zones returns the time zones of a place, by the list, or as the database of time zones calls a city.
func Zones(name string) []string {
	name = phrases.FoldName(name)
	zones := list()[name]
	if len(zones) > 0 || name == "" {
		return zones
	}
	parts := strings.Fields(name)
	for i, p := range parts {
		parts[i] = phrases.Capital(p)
	}
	for area := range strings.FieldsSeq("America Europe Asia Africa Australia Pacific Atlantic Indian") {
		zone := area + "/" + strings.Join(parts, "_")
		_, err := time.LoadLocation(zone)
		if err == nil {
			return []string{zone}
		}
	}
	return nil
}
