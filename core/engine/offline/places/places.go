// Package places knows the time zones of cities and countries by their names in several languages.
package places

import (
	_ "embed"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"synthbot/core/txt"
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
			all[foldName(name)] = strings.Fields(zones)
		}
	}
	return all
}

var list = sync.OnceValue(readPlaces)

// foldName joins the folded words of a name.
func foldName(name string) string {
	isSign := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.Mn, r) }
	return strings.Join(strings.FieldsFunc(txt.Fold(name), isSign), " ")
}

// Zones returns the time zones of a place, by the list, or as the database of time zones calls a city.
func Zones(name string) []string {
	name = foldName(name)
	zones := list()[name]
	if len(zones) > 0 {
		return zones
	}
	for area := range strings.FieldsSeq("America Europe Asia Africa Australia Pacific Atlantic Indian") {
		zone, ok := loadCity(area, name)
		if ok {
			return []string{zone}
		}
	}
	return nil
}

// loadCity finds a zone by the name of its city in small letters.
func loadCity(area, city string) (string, bool) {
	parts := strings.Fields(city)
	for i, p := range parts {
		first, size := utf8.DecodeRuneInString(p)
		parts[i] = string(unicode.ToUpper(first)) + p[size:]
	}
	zone := area + "/" + strings.Join(parts, "_")
	_, err := time.LoadLocation(zone)
	return zone, err == nil && len(parts) > 0
}
