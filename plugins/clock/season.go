package clock

import (
	"slices"
	"strings"
	"time"
)

// tropic is the latitude below which there are no four seasons worth a word.
const tropic = 20.0

// season is that of the month, by the hemisphere; "" where there is none.
func season(month time.Month, hemisphere int) string {
	seasons := []string{"winter", "spring", "summer", "autumn"}
	quarter := int(month) % 12 / 3
	switch {
	case hemisphere > 0:
		return seasons[quarter]
	case hemisphere < 0:
		return seasons[(quarter+2)%4]
	}
	return ""
}

// hemisphere is 1 in the north, -1 in the south, 0 where it does not matter.
func hemisphere(s *spot, zone string) int {
	if s != nil && !s.Bare {
		switch {
		case s.Lat >= tropic:
			return 1
		case s.Lat <= -tropic:
			return -1
		}
		return 0
	}
	begins := func(prefix string) bool { return strings.HasPrefix(zone, prefix) }
	switch {
	case slices.ContainsFunc(southern, begins):
		return -1
	case slices.ContainsFunc(northern, begins):
		return 1
	}
	return 0
}

// southern and northern list time zones with four seasons; of those that are in
// neither, nothing is claimed.
var southern = []string{
	"Australia/", "Antarctica/", "Pacific/Auckland", "Pacific/Chatham", "NZ", "America/Argentina/",
	"America/Buenos_Aires", "America/Santiago", "America/Punta_Arenas", "America/Montevideo", "America/Asuncion",
	"America/Sao_Paulo", "Africa/Johannesburg", "Africa/Maseru", "Africa/Windhoek", "Africa/Gaborone",
}

var northern = []string{
	"Europe/", "Arctic/", "Atlantic/Reykjavik", "Atlantic/Azores", "Atlantic/Madeira", "Asia/Tokyo",
	"Asia/Seoul", "Asia/Shanghai", "Asia/Istanbul", "Asia/Tehran", "Asia/Baghdad", "Asia/Kabul", "Asia/Tashkent",
	"Asia/Almaty", "Asia/Jerusalem", "Asia/Beirut", "Asia/Tbilisi", "Asia/Yerevan", "Asia/Baku",
	"Asia/Novosibirsk", "Asia/Vladivostok", "Asia/Yekaterinburg", "Africa/Cairo", "Africa/Tunis",
	"Africa/Algiers", "Africa/Casablanca", "Africa/Tripoli", "US/", "Canada/", "America/New_York",
	"America/Chicago", "America/Denver", "America/Los_Angeles", "America/Phoenix", "America/Detroit",
	"America/Indiana/", "America/Boise", "America/Anchorage", "America/Toronto", "America/Vancouver",
	"America/Winnipeg", "America/Edmonton", "America/Halifax", "America/St_Johns", "America/Montreal",
}
