package clock

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/loop"
	"synthbot/core/txt"
)

// injection is the plugin's part of a prompt. It does not change within a minute.
type injection struct {
	there
	Person *there `json:"person,omitempty"`
}

// there contains the time, place, season and weather of the bot, or of a user. A user's season is
// left out if it is the bot's.
type there struct {
	Now     string `json:"now,omitempty"`
	Place   string `json:"place,omitempty"`
	Season  string `json:"season,omitempty"`
	Weather string `json:"weather,omitempty"`
}

// Inject implements core.Injector. It never waits: it uses cached weather, and Run fetches what is missing.
func (p *Plugin) Inject(ctx context.Context, s core.Scene) (json.RawMessage, error) {
	now := s.Now
	if now.IsZero() {
		now = p.host.Clock()
	}
	home, due := p.home.at(p.host.Clock())
	if p.config.Weather == weatherPrompt && due {
		loop.Notify(p.skies.wake) // the bot's place was not found yet
	}
	t := injection{there: there{Now: moment(now), Place: txt.Clip(p.config.Place, 40), Weather: p.sky(home)}}
	t.Season = season(now.Month(), p.hemisphere(home, now.Location().String()))
	person, err := p.visibleSpot(ctx, s.Path, s.Private, s.Author, s.Sees)
	if err != nil {
		return nil, err
	}
	if person != nil {
		t.Person = p.there(person, now, t.Season)
	}
	return core.JSON(t), nil
}

func (p *Plugin) hemisphere(home *spot, zone string) int {
	switch p.config.Hemisphere {
	case "north":
		return 1
	case "south":
		return -1
	case "none":
		return 0
	}
	return hemisphere(home, zone)
}

func (p *Plugin) there(s *spot, now time.Time, here string) *there {
	t := &there{Place: txt.Clip(s.String(), 40), Weather: p.sky(s)}
	loc := s.location()
	if loc != nil {
		now = now.In(loc)
		t.Now = moment(now)
	}
	if p.config.Hemisphere != "none" {
		t.Season = season(now.Month(), hemisphere(s, s.Zone))
		if t.Season == here {
			t.Season = ""
		}
	}
	return t
}

func moment(t time.Time) string { return t.Format("Monday 2 January 2006, 15:04") }

// sky returns the weather of a spot in a few words, if prompts show weather and it is cached. It
// makes Run fetch missing and outdated weather.
func (p *Plugin) sky(s *spot) string {
	if p.config.Weather != weatherPrompt || s == nil || s.Bare {
		return ""
	}
	f, ok := p.skies.getOrRequest(s, p.host.Clock(), p.config.Refresh)
	if !ok {
		return ""
	}
	return f.Brief
}

const tropic = 20.0 // the latitude below which prompts name no season

// season returns the season of a month in a hemisphere, "" if that is 0.
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

// hemisphere returns 1 in the north, -1 in the south, and 0 in the tropics or if it is unknown.
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

// southern and northern list time zones with four seasons. For others, prompts name no season.
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
