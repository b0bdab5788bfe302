package clock

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"synthbot/core/txt"
)

// server calls the two services. Safe for concurrent use.
type server struct {
	client                    http.Client
	forecastURL, geocodingURL string
	temperature, speed        string // the units, as in requests
	unitTemp, unitSpeed       string // and as in texts
}

const maxAnswer = 256 << 10 // the maximum size of an answer, in bytes

func newServer(c *Config) *server {
	s := &server{
		forecastURL: strings.TrimSuffix(c.Forecast, "/"), geocodingURL: strings.TrimSuffix(c.Geocoding, "/"),
		temperature: "celsius", speed: "kmh", unitTemp: "°C", unitSpeed: "km/h",
	}
	if c.Units == "imperial" {
		s.temperature, s.speed, s.unitTemp, s.unitSpeed = "fahrenheit", "mph", "°F", "mph"
	}
	s.client = http.Client{
		Timeout: c.Timeout,
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true,
			TLSHandshakeTimeout: c.Timeout},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s
}

func (s *server) get(ctx context.Context, address string, query url.Values, v any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	r.Header.Set("User-Agent", "synthbot")
	r.Header.Set("Accept", "application/json")
	answer, err := s.client.Do(r)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // without the address, which contains words of a user
		}
		return fmt.Errorf("%s: %w", r.URL.Host, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: status %d", r.URL.Host, answer.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case len(body) > maxAnswer:
		err = fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	case err == nil:
		err = json.Unmarshal(body, v)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", r.URL.Host, err)
	}
	return nil
}

var errNowhere = errors.New("there is no such place on the map") // returned for a city that is not on the map

// found is the answer to a search for a city.
type found struct {
	Results []struct {
		Name    string  `json:"name"`
		Lat     float64 `json:"latitude"`
		Lon     float64 `json:"longitude"`
		Code    string  `json:"country_code"`
		Country string  `json:"country"`
		Region  string  `json:"admin1"`
		Zone    string  `json:"timezone"`
	} `json:"results"`
}

// locate finds a city, by its name or as "city, country". It returns errNowhere if there is none.
func (s *server) locate(ctx context.Context, name, language string) (*spot, error) {
	city, rest, _ := strings.Cut(name, ",")
	language, _, _ = strings.Cut(strings.ToLower(language), "-")
	var f found
	query := url.Values{"name": {strings.TrimSpace(city)}, "count": {"10"}, "format": {"json"}, "language": {language}}
	if err := s.get(ctx, s.geocodingURL+"/v1/search", query, &f); err != nil {
		return nil, err
	}
	return f.pick(strings.TrimSpace(rest))
}

// pick returns the first result in a region or country; "" means anywhere.
func (f *found) pick(in string) (*spot, error) {
	for _, r := range f.Results {
		s := &spot{Name: clean(r.Name), Region: clean(r.Region), Country: clean(r.Country), Lat: r.Lat, Lon: r.Lon,
			Zone: r.Zone}
		if s.Name == "" || !(math.Abs(r.Lat) <= 90 && math.Abs(r.Lon) <= 180) {
			continue
		}
		if s.location() == nil {
			s.Zone = ""
		}
		if in == "" || strings.EqualFold(in, s.Region) || strings.EqualFold(in, s.Country) ||
			strings.EqualFold(in, r.Code) || strings.EqualFold(in, s.Region+", "+s.Country) {
			return s, nil
		}
	}
	return nil, errNowhere
}

func clean(s string) string { return txt.ClipLine(s, 60) }

// forecast is the weather of a spot, as the model sees it.
type forecast struct {
	Brief string      `json:"-"` // the present weather, in a few words
	Place string      `json:"place"`
	Time  string      `json:"local_time"`
	Now   forecastNow `json:"now"`
	Days  []day       `json:"days,omitempty"`
}

type forecastNow struct {
	Sky         string `json:"sky"`
	Temperature string `json:"temperature"`
	Feels       string `json:"feels_like"`
	Wind        string `json:"wind"`
	Gusts       string `json:"gusts,omitempty"`
	Humidity    string `json:"humidity"`
}

type day struct {
	Date    string `json:"date"`
	Day     string `json:"day"`
	Sky     string `json:"sky"`
	Min     string `json:"min"`
	Max     string `json:"max"`
	Rain    string `json:"rain_chance,omitempty"`
	Sunrise string `json:"sunrise,omitempty"`
	Sunset  string `json:"sunset,omitempty"`
}

// answered is the service's answer with a forecast.
type answered struct {
	Current struct {
		Time        string   `json:"time"`
		Temperature *float64 `json:"temperature_2m"`
		Feels       float64  `json:"apparent_temperature"`
		Humidity    float64  `json:"relative_humidity_2m"`
		Wind        float64  `json:"wind_speed_10m"`
		Gusts       float64  `json:"wind_gusts_10m"`
		Code        float64  `json:"weather_code"`
	} `json:"current"`
	Daily struct {
		Time    []string   `json:"time"`
		Code    []*float64 `json:"weather_code"`
		Max     []*float64 `json:"temperature_2m_max"`
		Min     []*float64 `json:"temperature_2m_min"`
		Rain    []*float64 `json:"precipitation_probability_max"`
		Sunrise []string   `json:"sunrise"`
		Sunset  []string   `json:"sunset"`
	} `json:"daily"`
}

const maxDays = 7 // how many days a forecast covers

func (s *server) forecast(ctx context.Context, at *spot) (*forecast, error) {
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', 4, 64) }
	query := url.Values{
		"latitude": {number(at.Lat)}, "longitude": {number(at.Lon)}, "timezone": {"auto"},
		"forecast_days":    {strconv.Itoa(maxDays)},
		"temperature_unit": {s.temperature}, "wind_speed_unit": {s.speed},
		"current": {"temperature_2m,apparent_temperature,relative_humidity_2m," +
			"wind_speed_10m,wind_gusts_10m,weather_code"},
		"daily": {"weather_code,temperature_2m_max,temperature_2m_min,precipitation_probability_max,sunrise,sunset"},
	}
	var a answered
	if err := s.get(ctx, s.forecastURL+"/v1/forecast", query, &a); err != nil {
		return nil, err
	}
	return s.read(&a)
}

var errForecast = errors.New("the forecast cannot be read")

func (s *server) read(a *answered) (*forecast, error) {
	c := &a.Current
	if _, err := time.Parse(localForm, c.Time); err != nil || c.Temperature == nil {
		return nil, errForecast
	}
	for _, v := range []float64{*c.Temperature, c.Feels, c.Humidity, c.Wind, c.Gusts} {
		if math.Abs(v) > 1000 {
			return nil, errForecast
		}
	}
	temperature := func(t float64) string { return degrees(t) + " " + s.unitTemp }
	speed := func(v float64) string { return degrees(v) + " " + s.unitSpeed }
	f := &forecast{Time: c.Time, Now: forecastNow{
		Sky: words(c.Code), Temperature: temperature(*c.Temperature), Feels: temperature(c.Feels),
		Wind: speed(c.Wind), Humidity: degrees(c.Humidity) + " %",
	}}
	f.Brief = f.Now.Temperature + ", " + f.Now.Sky
	if c.Gusts > c.Wind*1.5 {
		f.Now.Gusts = speed(c.Gusts)
	}
	d := &a.Daily
	for i, date := range d.Time[:min(len(d.Time), maxDays)] {
		t, err := time.Parse(time.DateOnly, date)
		code, least, most, rain := at(d.Code, i), at(d.Min, i), at(d.Max, i), at(d.Rain, i)
		if err != nil || code == nil || least == nil || most == nil || max(math.Abs(*least), math.Abs(*most)) > 1000 {
			continue
		}
		one := day{Date: date, Day: t.Weekday().String(), Sky: words(*code), Min: temperature(*least),
			Max: temperature(*most), Sunrise: hourOf(d.Sunrise, i), Sunset: hourOf(d.Sunset, i)}
		if rain != nil && *rain >= 0 && *rain <= 100 {
			one.Rain = degrees(*rain) + " %"
		}
		f.Days = append(f.Days, one)
	}
	return f, nil
}

// localForm is the layout of the service's local times.
const localForm = "2006-01-02T15:04"

// at returns element i, the zero value if there is none.
func at[T any](list []T, i int) (v T) {
	if i < len(list) {
		v = list[i]
	}
	return v
}

func hourOf(list []string, i int) string {
	t, err := time.Parse(localForm, at(list, i))
	if err != nil {
		return ""
	}
	return t.Format("15:04")
}

// skyWords describes the weather codes of the WMO, as Open-Meteo uses them.
var skyWords = map[int]string{
	0: "clear sky", 1: "mainly clear", 2: "partly cloudy", 3: "overcast", 45: "fog", 48: "fog", 51: "drizzle",
	53: "drizzle", 55: "drizzle", 56: "freezing drizzle", 57: "freezing drizzle", 61: "light rain", 63: "rain",
	65: "heavy rain", 66: "freezing rain", 67: "freezing rain", 71: "light snow", 73: "snow", 75: "heavy snow",
	77: "snow grains", 80: "rain showers", 81: "rain showers", 82: "violent rain showers", 85: "snow showers",
	86: "snow showers", 95: "thunderstorm", 96: "thunderstorm with hail", 99: "thunderstorm with hail",
}

func words(code float64) string {
	return cmp.Or(skyWords[int(min(max(code, 0), 99))], "unknown weather")
}

func degrees(t float64) string { return strconv.Itoa(int(math.Round(t))) }
