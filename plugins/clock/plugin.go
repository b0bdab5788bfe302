// Package clock gives the model date, time, season and weather, for the bot and for the user:
// as a small injection that never waits, and on request with the action weather.
//
// Weather and cities come from servers with the API of Open-Meteo, without a key. They are
// called only when a user names a city or wants the weather and, with weather = "prompt", to
// refresh the weather in prompts. Their answers are limited in size and checked.
//
// A user's location is stored under their path, with the place where they set it. It is shown
// there and in private, and nowhere else.
package clock

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/timezone"
	"synthbot/core/values"
)

// Plugin provides the time, the season and the weather. Safe for concurrent use.
type Plugin struct {
	host   core.Host
	config Config
	server *server
	skies  *skies
	home   *home
}

// New makes the plugin. Run keeps the weather of prompts fresh.
func New(h core.Host, c Config) (*Plugin, error) {
	return &Plugin{host: h, config: c, server: newServer(&c), skies: newSkies(), home: &home{name: c.Place}}, nil
}

func (p *Plugin) Name() string { return p.host.Name }

// spot is a place on the map.
type spot struct {
	Name    string    `json:"name"`
	Region  string    `json:"region,omitempty"`
	Country string    `json:"country,omitempty"`
	Lat     float64   `json:"lat,omitempty"`
	Lon     float64   `json:"lon,omitempty"`
	Zone    string    `json:"zone,omitempty"`
	Origin  core.Path `json:"origin,omitzero"` // where the user set it
	// Bare says that only the zone is known. Such a spot is not stored.
	Bare bool `json:"-"`
}

// String returns the name, the region and the country.
func (s *spot) String() string {
	text := s.Name
	for _, more := range []string{s.Region, s.Country} {
		if more != "" && more != s.Name {
			text += ", " + more
		}
	}
	return text
}

// location returns the spot's time zone, nil if it is unknown.
func (s *spot) location() *time.Location {
	loc, _ := timezone.Load(s.Zone)
	return loc
}

// keyPlace is the key of a user's spot. Their time zone is in the host's Zones, which other plugins also set.
const keyPlace = "place"

// keepPlace stores a user's spot, and sets their time zone for all plugins; nil removes both.
func (p *Plugin) keepPlace(ctx context.Context, person core.Path, s *spot) error {
	item := values.New(person, keyPlace, nil)
	if s != nil && s.location() == nil {
		s.Zone = "" // unknown
	}
	if s != nil && !s.Bare {
		item.Value = core.JSON(s)
	}
	if _, err := p.host.Items.Put(ctx, item); err != nil {
		return fmt.Errorf("place: %w", err)
	}
	switch {
	case s == nil:
		return timezone.Keep(ctx, p.host.Zones, person, timezone.Zone{})
	case s.location() != nil:
		return timezone.Keep(ctx, p.host.Zones, person, timezone.Zone{Name: s.Zone, Origin: s.Origin})
	}
	return nil
}

// zoneSpot returns a spot of which only the zone is known, nil if the zone is unknown.
func zoneSpot(z timezone.Zone) *spot {
	if _, ok := timezone.Load(z.Name); !ok {
		return nil
	}
	city := z.Name[strings.LastIndex(z.Name, "/")+1:]
	return &spot{Name: strings.ReplaceAll(city, "_", " "), Zone: z.Name, Origin: z.Origin, Bare: true}
}

// visibleSpot returns the spot of the author of a turn, if it may be shown there: in
// private, and to readers of its origin.
func (p *Plugin) visibleSpot(ctx context.Context, place core.Path, private bool, author core.Author,
	sees []core.Path) (*spot, error) {
	person, err := place.Person(author.ID)
	if err != nil || author.Bot {
		return nil, nil // no single user
	}
	z, err := timezone.Of(ctx, p.host.Zones, person)
	if err != nil {
		return nil, err
	}
	named, ok, err := values.Get[spot](ctx, p.host.Items, person, keyPlace)
	if err != nil {
		return nil, err
	}
	spots := []*spot{zoneSpot(z)}
	if ok && (named.Zone == "" || named.Zone == z.Name) { // they did not set another time zone since
		spots = []*spot{&named, zoneSpot(z)}
	}
	for _, s := range spots {
		if s != nil && (private || s.visibleAt(place) || slices.ContainsFunc(sees, s.visibleAt)) {
			return s, nil
		}
	}
	return nil, nil
}

func (s *spot) visibleAt(at core.Path) bool { return at.Within(s.Origin) }

// Config is the table [plugins.clock].
type Config struct {
	Place      string        `toml:"place" doc:"The bot's home, as it appears in the prompt and is looked up for the weather." example:"Rome, Italy"`
	Hemisphere string        `toml:"hemisphere" default:"auto" oneof:"auto|north|south|none" doc:"The hemisphere of the seasons. auto: by the bot's place or time zone; none: no seasons."`
	Weather    string        `toml:"weather" default:"ask" oneof:"off|ask|prompt" doc:"off: no weather and no cities; ask: when a user asks; prompt: in every prompt as well."`
	Forecast   string        `toml:"forecast_url" default:"https://api.open-meteo.com" doc:"The address of the forecasts (API of Open-Meteo)."`
	Geocoding  string        `toml:"geocoding_url" default:"https://geocoding-api.open-meteo.com" doc:"The address of the search for cities (API of Open-Meteo)."`
	Units      string        `toml:"units" default:"metric" oneof:"metric|imperial" doc:"metric: °C and km/h; imperial: °F and mph."`
	Refresh    time.Duration `toml:"refresh" default:"30m" min:"5m" max:"24h" doc:"How old weather data may be before it is fetched again."`
	Timeout    time.Duration `toml:"timeout" default:"10s" min:"1s" max:"1m" doc:"How long a request may take."`
}

// Values of Config.Weather.
const (
	weatherOff    = "off"
	weatherAsk    = "ask"
	weatherPrompt = "prompt"
)

func (c *Config) Check(fault func(text string, at ...any)) {
	for key, address := range map[string]string{"forecast_url": c.Forecast, "geocoding_url": c.Geocoding} {
		u, err := url.Parse(address)
		if address != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "") {
			fault("it is not an address; write one like https://api.open-meteo.com", key)
		}
	}
}
