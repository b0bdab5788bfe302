package clock

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"synthbot/core"
	"synthbot/core/txt"
)

// maxInjection is the size of the injection in bytes.
const maxInjection = 300

// injection is what a prompt shows. Nothing in it changes within a minute.
type injection struct {
	Now     string `json:"now"`
	Place   string `json:"place,omitempty"`
	Season  string `json:"season,omitempty"`
	Weather string `json:"weather,omitempty"`
	Person  *there `json:"person,omitempty"`
}

// there is the same where the person is, so far as it differs.
type there struct {
	Now     string `json:"now,omitempty"`
	Place   string `json:"place,omitempty"`
	Season  string `json:"season,omitempty"`
	Weather string `json:"weather,omitempty"`
}

// Inject implements core.Injector. It waits for nobody: weather is what is at
// hand, and Run gets what is not.
func (p *Plugin) Inject(ctx context.Context, s core.Scene) (json.RawMessage, error) {
	now := s.Now
	if now.IsZero() {
		now = p.host.Clock()
	}
	home := p.home.at()
	if p.config.Weather == weatherPrompt && p.home.due(p.host.Clock()) {
		p.skies.rouse() // the map did not answer when Run began
	}
	t := injection{Now: moment(now), Place: txt.Clip(p.config.Place, 40), Weather: p.sky(home)}
	t.Season = season(now.Month(), p.hemisphere(home, now.Location().String()))
	person, err := p.visibleSpot(ctx, s.Path, s.Private, s.Author, s.Sees)
	if err != nil {
		return nil, err
	}
	if person != nil {
		t.Person = p.there(person, now, t.Season)
	}
	return t.encode()
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

// moment is a wall clock's time.
func moment(t time.Time) string { return t.Format("Monday 2 January 2006, 15:04") }

// encode leaves out what there is no room for, the least telling first.
func (t *injection) encode() (json.RawMessage, error) {
	leave := []func(){
		func() {},
		func() { t.Weather = "" },
		func() { clearWeather(t.Person) },
		func() { t.Place = "" },
		func() { t.Person = nil },
	}
	var raw []byte
	for _, shorter := range leave {
		shorter()
		var err error
		if raw, err = json.Marshal(t); err != nil {
			return nil, fmt.Errorf("clock: %w", err)
		}
		if len(raw) <= maxInjection {
			break
		}
	}
	return raw, nil
}

func clearWeather(t *there) {
	if t != nil {
		t.Weather = ""
	}
}

// sky returns the weather of a spot in a few words, if prompts show it and it is known. Run
// hears of spots that are unknown or outdated.
func (p *Plugin) sky(s *spot) string {
	if p.config.Weather != weatherPrompt || s == nil || s.Bare {
		return ""
	}
	f, ok := p.skies.glance(s, p.host.Clock(), p.config.Refresh)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s %s, %s", degrees(f.Now.Temperature), f.Units.Temperature, words(f.Now.Code))
}
