package clock

import (
	"net/url"
	"time"
)

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

// What Config.Weather may be.
const (
	weatherOff    = "off"
	weatherAsk    = "ask"
	weatherPrompt = "prompt"
)

// Check implements the configuration's own check.
func (c *Config) Check(fault func(text string, at ...any)) {
	for key, address := range map[string]string{"forecast_url": c.Forecast, "geocoding_url": c.Geocoding} {
		u, err := url.Parse(address)
		if address != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "") {
			fault("it is not an address; write one like https://api.open-meteo.com", key)
		}
	}
}
