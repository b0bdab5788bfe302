package beats

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"synthbot/core"
	"synthbot/core/timezone"
)

// Plugin is the bot's own initiative. Safe for concurrent use.
type Plugin struct {
	core.Alone
	host   core.Host
	config Config
	night  night
	beats  []beat
	wake   chan struct{}

	changed atomic.Bool // a place wants something else
}

// beat is a Beat that was read.
type beat struct {
	*Beat
	schedule
}

// silent reports whether nobody sees anything of it.
func (b *beat) silent() bool { return b.Kind == kindInternal && !b.Speak }

// New makes the plugin. Its beats come while Run runs.
func New(h core.Host, c Config) (*Plugin, error) {
	p := &Plugin{host: h, config: c, wake: make(chan struct{}, 1)}
	var err error
	if p.night, err = readNight(c.Night); err != nil {
		return nil, fmt.Errorf("night: %w", err)
	}
	for i := range p.config.Beats {
		b := beat{Beat: &p.config.Beats[i]}
		b.Kind = cmp.Or(b.Kind, kindOutreach)
		if b.Name == "" {
			return nil, fmt.Errorf("beat %d has no name", i+1)
		}
		if b.schedule, err = readSchedule(b.Beat); err != nil {
			return nil, err
		}
		p.beats = append(p.beats, b)
	}
	return p, nil
}

// Name implements core.Plugin.
func (p *Plugin) Name() string { return p.host.Name }

// Actions implements core.Plugin: people and models cannot cause a beat.
func (p *Plugin) Actions() []core.Action { return nil }

// Keys of what is kept: of a place, what it wants and what it got; and under the
// zero path, how many there were on a day.
const (
	keyWants = "wants"
	keyGot   = "got"
	keyDay   = "day"
)

// wants is what a place said about beats.
type wants struct {
	On      bool      `json:"on"`
	Zone    string    `json:"zone,omitempty"` // that was named; "": the person's in private, else the bot's
	Private bool      `json:"private,omitempty"`
	Since   time.Time `json:"since"`

	his bool // the zone is what the person there says elsewhere
}

// got is what a place got.
type got struct {
	Day     string           `json:"day,omitempty"` // by the place's time zone
	Count   int              `json:"count,omitempty"`
	Latest  map[string]int64 `json:"latest,omitempty"` // by beat: the last time it was due, Unix
	Reached time.Time        `json:"reached,omitzero"` // when it was last written to
}

// day counts all beats of a day, by the bot's time zone.
type day struct {
	Day   string `json:"day"`
	Count int    `json:"count"`
}

// wanting lists the places that said something about beats, each with its zone.
func (p *Plugin) wanting(ctx context.Context) (map[core.Path]wants, error) {
	items, err := p.host.Items.List(ctx, core.Path{})
	if err != nil {
		return nil, fmt.Errorf("beats: %w", err)
	}
	all := make(map[core.Path]wants)
	for _, item := range items {
		var w wants
		if item.Key != keyWants || json.Unmarshal(item.Value, &w) != nil {
			continue
		}
		if w.Zone == "" && w.Private {
			if w.Zone, err = p.zoneThere(ctx, item.Path); err != nil {
				return nil, err
			}
			w.his = true
		}
		all[item.Path] = w
	}
	return all, nil
}

// zoneThere returns the current time zone of the user of a private place.
func (p *Plugin) zoneThere(ctx context.Context, place core.Path) (string, error) {
	s, err := p.look(ctx, place)
	if err != nil || s.who == "" {
		return "", err
	}
	person, err := place.Person(s.who)
	if err != nil {
		return "", nil // nobody whom a zone could be kept of
	}
	return p.zoneOfPerson(ctx, person)
}

func (p *Plugin) zoneOfPerson(ctx context.Context, person core.Path) (string, error) {
	z, err := timezone.Of(ctx, p.host.Zones, person)
	return z.Name, err
}

// zone is whose wall clocks count in a place.
func (p *Plugin) zone(w wants) *time.Location {
	if loc, ok := timezone.Load(w.Zone); ok {
		return loc
	}
	return p.host.Clock().Location()
}

// zones lists those that beats may be due in.
func (p *Plugin) zones(all map[core.Path]wants) []*time.Location {
	list := []*time.Location{p.host.Clock().Location()}
	for _, w := range all {
		loc := p.zone(w)
		if !slices.ContainsFunc(list, func(l *time.Location) bool { return l.String() == loc.String() }) {
			list = append(list, loc)
		}
	}
	return list
}
