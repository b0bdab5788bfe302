package clock

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/timezone"
	"synthbot/plugins/plugintest"
)

// weatherService is a small service that knows some cities and has one weather for all.
type weatherService struct {
	*httptest.Server
	broken    atomic.Bool
	forecasts atomic.Int32
	hold      chan struct{} // if set, forecasts wait for it
}

func newWeatherService(t *testing.T) *weatherService {
	s := &weatherService{}
	s.Server = httptest.NewServer(s.handler())
	t.Cleanup(s.Close)
	return s
}

func (s *weatherService) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/search", s.search)
	mux.HandleFunc("GET /v1/forecast", s.forecast)
	return mux
}

func (s *weatherService) search(w http.ResponseWriter, r *http.Request) {
	city := func(name, region, country, code, zone string, lat, lon float64) string {
		return fmt.Sprintf(`{"id":1,"name":%q,"latitude":%g,"longitude":%g,"country_code":%q,"country":%q,"admin1":%q,"timezone":%q}`, name, lat, lon, code, country, region, zone)
	}
	q := r.URL.Query()
	results := []string{}
	switch name := strings.ToLower(q.Get("name")); {
	case s.broken.Load():
		http.Error(w, `{"error":true,"reason":"over quota"}`, http.StatusTooManyRequests)
		return
	case q.Get("language") != "en" || q.Get("count") != "10":
		http.Error(w, "no such language", http.StatusBadRequest)
		return
	case name == "lisbon":
		results = append(results, city("Lisbon", "Lisbon", "Portugal", "PT", "Europe/Lisbon", 38.7, -9.1))
	case name == "rome":
		results = append(results, city("Rome", "Lazio", "Italy", "IT", "Europe/Rome", 41.9, 12.5))
	case name == "paris":
		results = append(results, city("Paris", "Île-de-France", "France", "FR", "Europe/Paris", 48.9, 2.3), city("Paris", "Texas", "United States", "US", "America/Chicago", 33.7, -95.6))
	case strings.HasPrefix(name, "kanarienvogel"):
		results = append(results, city(name, "", "Nowhere", "XX", "Mars/Base", 10, 10))
	}
	if len(results) == 0 {
		fmt.Fprint(w, `{"generationtime_ms":0.5}`)
		return
	}
	fmt.Fprintf(w, `{"results":[%s],"generationtime_ms":0.5}`, strings.Join(results, ","))
}

const weather = "{" + weatherRest

const weatherRest = `"latitude":38.7,"longitude":-9.1,"timezone":"Europe/Lisbon","current":{"time":"2026-11-20T15:00","interval":900,"temperature_2m":12.3,"apparent_temperature":10.6,
"relative_humidity_2m":80,"wind_speed_10m":14.2,"wind_gusts_10m":20.1,"weather_code":61},"daily":{"time":["2026-11-20","2026-11-21","2026-11-22"],"weather_code":[61,3,null],
"temperature_2m_max":[14,15.2,9],"temperature_2m_min":[8,-3.2,1],"precipitation_probability_max":[90,60,null],"sunrise":["2026-11-20T07:09","2026-11-21T07:10"],"sunset":["2026-11-20T16:46","2026-11-21T16:45"]}}`

func (s *weatherService) forecast(w http.ResponseWriter, r *http.Request) {
	if s.hold != nil {
		<-s.hold
	}
	s.forecasts.Add(1)
	if s.broken.Load() || r.URL.Query().Get("timezone") != "auto" {
		http.Error(w, `{"error":true}`, http.StatusInternalServerError)
		return
	}
	fmt.Fprint(w, weather)
}

func TestScripts(t *testing.T) {
	plugintest.Run(t, "testdata/scripts/*.txt", plugintest.Of(New))
}

func TestLiveScripts(t *testing.T) {
	s := newWeatherService(t)
	plugintest.Run(t, "testdata/live/*.txt", plugintest.Of(New), plugintest.Live(), plugintest.Var("server", s.URL),
		plugintest.Verb("broken", func(*plugintest.Script, string) { s.broken.Store(true) }))
}

func TestConform(t *testing.T) {
	s := newWeatherService(t)
	plugintest.Conform(t, plugintest.Case{
		Name: "clock",
		Make: func(t *testing.T, stand *plugintest.Harness) core.Plugin {
			c := Config{Weather: weatherPrompt, Forecast: s.URL, Geocoding: s.URL, Timeout: time.Minute}
			p, err := New(stand.Host, plugintest.Defaults(t, c))
			if err != nil {
				t.Fatal(err)
			}
			return p
		},
		Keep: []plugintest.Sample{{Command: "place", Args: map[string]string{"place": plugintest.Canary}}},
		Ask:  []plugintest.Sample{{Command: "place"}, {Action: "weather", Payload: `{"days":1}`}},
	})
}

func made(t testing.TB, c Config) (*plugintest.Harness, *Plugin) {
	t.Helper()
	s := plugintest.NewHarness(t, "clock")
	p, err := New(s.Host, plugintest.Defaults(t, c))
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

func inject(t testing.TB, p *Plugin, s core.Scene) injection {
	t.Helper()
	raw, err := p.Inject(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > 600 {
		t.Errorf("got %d bytes: %s", len(raw), raw)
	}
	var got injection
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	return got
}

var jay = core.MustPath("room/@user/jay")

// TestRoom checks that a prompt's part is limited, although names may be long.
func TestRoom(t *testing.T) {
	s, p := made(t, Config{Place: strings.Repeat("Ł", 200), Weather: weatherPrompt})
	long := &spot{Name: strings.Repeat("Ñ", 60), Region: strings.Repeat("é", 60), Country: strings.Repeat("\"", 60), Lat: -40, Lon: 3, Zone: "Australia/Sydney", Origin: core.MustPath("room/jay")}
	if err := p.keepPlace(t.Context(), jay, long); err != nil {
		t.Fatal(err)
	}
	p.home.spot = &spot{Name: "x", Lat: 50}
	f := &forecast{Brief: "-12 °C, thunderstorm with hail"}
	p.skies.put(p.home.spot, f, s.Clock())
	p.skies.put(long, f, s.Clock())
	scene := core.Scene{Path: core.MustPath("room/jay"), Private: true, Author: core.Author{ID: "jay"}, Now: s.Clock()}
	got := inject(t, p, scene)
	if got.Now == "" || got.Season != "spring" || got.Person == nil || got.Person.Season != "autumn" || got.Person.Now == "" {
		t.Errorf("got %+v, %+v", got, got.Person)
	}
	if again := inject(t, p, scene); *again.Person != *got.Person {
		t.Errorf("got %+v, then %+v", got.Person, again.Person)
	}
}

// handlerTransport serves requests with a handler, without a network.
type handlerTransport struct{ http.Handler }

func (w handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, r)
	return answer.Result(), nil
}

// TestWeatherNeverWaits checks that a prompt uses the weather that is known. Missing weather is fetched once in
// the background, and a failing service is paused.
func TestWeatherNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &weatherService{hold: make(chan struct{})}
		s, p := made(t, Config{Place: "Lisbon", Weather: weatherPrompt})
		p.server.client.Transport = handlerTransport{service.handler()}
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error, 1)
		go func() { over <- p.Run(ctx) }()
		synctest.Wait()
		weather := func() string {
			got := inject(t, p, core.Scene{Path: core.MustPath("room/1"), Now: s.Clock()})
			synctest.Wait()
			return got.Weather
		}
		if got := weather() + weather(); got != "" {
			t.Errorf("got %q before the first forecast", got)
		}
		close(service.hold)
		synctest.Wait()
		if got := weather(); got != "12 °C, light rain" {
			t.Errorf("got %q", got)
		}
		time.Sleep(29 * time.Minute)
		if weather(); service.forecasts.Load() != 1 {
			t.Errorf("asked %d times", service.forecasts.Load())
		}
		service.broken.Store(true)
		time.Sleep(2 * time.Minute)
		if got := weather() + weather() + weather(); strings.Count(got, "rain") != 3 || service.forecasts.Load() != 2 {
			t.Errorf("got %q after %d requests; want the old weather, and no request to a failing service", got, service.forecasts.Load())
		}
		time.Sleep(retryDelay)
		if weather(); service.forecasts.Load() != 3 {
			t.Errorf("got %d requests; want another one after the pause", service.forecasts.Load())
		}
		time.Sleep(3 * time.Hour)
		if got := weather(); got != "" {
			t.Errorf("got %q, which is hours old", got)
		}
		service.broken.Store(false)
		time.Sleep(retryDelay)
		if got := weather() + "/" + weather(); got != "/12 °C, light rain" {
			t.Errorf("got %q after the service recovered", got)
		}
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}

// TestMapComesLater checks that a search for the bot's place that failed at the start is repeated.
func TestMapComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &weatherService{}
		service.broken.Store(true)
		s, p := made(t, Config{Place: "Lisbon", Weather: weatherPrompt})
		p.server.client.Transport = handlerTransport{service.handler()}
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error, 1)
		go func() { over <- p.Run(ctx) }()
		synctest.Wait()
		service.broken.Store(false)
		time.Sleep(retryDelay)
		got := ""
		for range 3 { // the place, then its weather, then the prompt
			got = inject(t, p, core.Scene{Path: core.MustPath("room/1"), Now: s.Clock()}).Weather
			synctest.Wait()
		}
		if got != "12 °C, light rain" {
			t.Errorf("got %q", got)
		}
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}

// TestIdle checks that Run sleeps until it ends if weather is off.
func TestIdle(t *testing.T) {
	for _, weather := range []string{weatherOff, weatherAsk, weatherPrompt} {
		synctest.Test(t, func(t *testing.T) {
			_, p := made(t, Config{Weather: weather})
			ctx, cancel := context.WithCancel(t.Context())
			over := make(chan error)
			go func() { over <- p.Run(ctx) }()
			time.Sleep(48 * time.Hour)
			synctest.Wait()
			cancel()
			if err := <-over; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestBadServers checks that wrong, large and slow responses are rejected.
func TestBadServers(t *testing.T) {
	const both = `{"results":[{"name":"Rome"}],` + weatherRest // valid for both requests
	right := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, both) }))
	defer right.Close()
	_, p := made(t, Config{Forecast: right.URL, Geocoding: right.URL})
	if _, err := p.server.locate(t.Context(), "Rome", "en"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.server.forecast(t.Context(), &spot{}); err != nil {
		t.Fatal(err)
	}
	answers := map[string]http.HandlerFunc{
		"nonsense": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"empty":    func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") },
		"endless":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, both, strings.Repeat(" ", maxAnswer)) },
		"sends on": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				fmt.Fprint(w, both)
				return
			}
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		},
		"no sense": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, strings.ReplaceAll(weather, "12.3", "1e300"))
		},
		"never comes": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(answer)
			defer server.Close()
			_, p := made(t, Config{Forecast: server.URL, Geocoding: server.URL, Timeout: 50 * time.Millisecond})
			if s, err := p.server.locate(t.Context(), "Rome", "en"); err == nil {
				t.Errorf("search: got %+v", s)
			}
			if f, err := p.server.forecast(t.Context(), &spot{}); err == nil {
				t.Errorf("forecast: got %+v", f)
			} else if strings.Contains(err.Error(), "latitude") {
				t.Errorf("the error contains the request: %v", err)
			}
		})
	}
}

func TestSeason(t *testing.T) {
	at := func(lat float64) *spot { return &spot{Lat: lat} }
	for _, tc := range []struct {
		month time.Month
		spot  *spot
		zone  string
		want  string
	}{
		{time.January, at(50), "", "winter"}, {time.December, at(50), "", "winter"}, {time.March, at(50), "", "spring"}, {time.November, at(50), "", "autumn"},
		{time.January, at(-33), "", "summer"}, {time.July, at(-33), "", "winter"}, {time.January, at(1), "Asia/Singapore", ""},
		{time.June, nil, "Europe/Rome", "summer"}, {time.June, nil, "Australia/Sydney", "winter"}, {time.June, nil, "Asia/Singapore", ""}, {time.June, nil, "UTC", ""},
		{time.June, &spot{Bare: true, Zone: "America/Santiago"}, "America/Santiago", "winter"},
	} {
		if got := season(tc.month, hemisphere(tc.spot, tc.zone)); got != tc.want {
			t.Errorf("%s at %+v, %s: got %q, want %q", tc.month, tc.spot, tc.zone, got, tc.want)
		}
	}
	_, p := made(t, Config{Hemisphere: "south"})
	if got := season(time.June, p.hemisphere(nil, "Europe/Rome")); got != "winter" {
		t.Errorf("with a southern place: got %s", got)
	}
}

func TestCheck(t *testing.T) {
	for address, want := range map[string]int{"": 0, "https://x.example": 0, "http://127.0.0.1:8080/om": 0, "ftp://x": 1, "x.example": 1, "https://": 1} {
		faults := 0
		(&Config{Forecast: address}).Check(func(string, ...any) { faults++ })
		if faults != want {
			t.Errorf("%q: got %d faults, want %d", address, faults, want)
		}
	}
}

func TestManySkies(t *testing.T) {
	k := newSkies()
	now := time.Now()
	for i := range 4 * maxSkies {
		k.put(&spot{Lat: float64(i) / 10}, &forecast{}, now.Add(time.Duration(i)*time.Second))
	}
	if n := k.known.Len(); n < maxSkies || n > 2*maxSkies {
		t.Errorf("got %d cached places", n)
	}
	if _, ok := k.fresh(&spot{Lat: 4*maxSkies/10 - 0.1}, now, time.Hour); !ok {
		t.Error("the newest place was removed")
	}
}

// FuzzAnswers checks that any response becomes a short and valid result.
func FuzzAnswers(f *testing.F) {
	f.Add(weather)
	f.Add(`{"results":[{"name":"Rome\u0000\n\tx","latitude":1e9,"timezone":"Local"}],"current":{"time":"x"},"daily":{"time":["2026-01-01"],"weather_code":[]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var a answered
		var m found
		if json.Unmarshal([]byte(text), &a) == nil {
			if sky, err := newServer(&Config{}).read(&a); err == nil {
				raw, err := json.Marshal(sky)
				if err != nil || len(raw) > 4000 {
					t.Fatalf("%d bytes, %v", len(raw), err)
				}
			}
		}
		if json.Unmarshal([]byte(text), &m) == nil {
			if s, err := m.pick(""); err == nil && (s.Name == "" || len([]rune(s.String())) > 200 || strings.ContainsAny(s.String(), "\n\x00")) {
				t.Fatalf("search: got %+v", s)
			}
		}
	})
}

func BenchmarkInject(b *testing.B) {
	s, p := made(b, Config{Place: "Rome"})
	scene := core.Scene{Path: core.MustPath("room/1"), Author: core.Author{ID: "jay"}, Now: s.Clock()}
	b.ReportAllocs()
	for b.Loop() {
		inject(b, p, scene)
	}
}

// TestOneZone checks that the city that a user named is used until they name another time zone.
func TestOneZone(t *testing.T) {
	s, p := made(t, Config{})
	private := core.MustPath("room/jay")
	where := func() string {
		at, err := p.visibleSpot(t.Context(), private, true, core.Author{ID: "jay"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if at == nil {
			return ""
		}
		return at.String()
	}
	keep := func(zone string) {
		if err := timezone.Keep(t.Context(), s.Zones, jay, timezone.Zone{Name: zone, Origin: private}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.keepPlace(t.Context(), jay, &spot{Name: "Naples", Zone: "Europe/Rome", Lat: 40, Origin: private}); err != nil {
		t.Fatal(err)
	}
	if z, err := timezone.Of(t.Context(), s.Zones, jay); err != nil || z != (timezone.Zone{Name: "Europe/Rome", Origin: private}) || where() != "Naples" {
		t.Errorf("zone: got %v, %v, city %q", z, err, where())
	}
	if keep("Asia/Tokyo"); where() != "Tokyo" {
		t.Errorf("city after that: got %q", where())
	}
	if keep(""); where() != "" {
		t.Errorf("city after that: got %q", where())
	}
	if err := p.keepPlace(t.Context(), jay, &spot{Name: "Atlantis", Zone: "Sea/Bottom", Origin: private}); err != nil || where() != "Atlantis" {
		t.Errorf("without a known zone: got city %q, %v", where(), err)
	}
	if err := s.DB.Forget(t.Context(), jay); err != nil || where() != "" {
		t.Errorf("after forget: got city %q, %v", where(), err)
	}
}
