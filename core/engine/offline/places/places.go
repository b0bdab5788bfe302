// Package places knows the time zones of cities and countries by their names in several languages.
package places

import (
	_ "embed"
	"strings"
	"sync"
	"time"

	"synthbot/core/engine/offline/phrases"
)

// placeList lists time zones with the names of their places in all languages: "Asia/Tokyo: tokyo, tokio, japan". A
// country may have several zones.
//
//go:embed places.txt
var placeList string

// list maps folded names to time zones.
var list = sync.OnceValue(func() map[string][]string {
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
})

// Zones returns the time zones of a place, from the list or by a city's name in the time zone database.
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
