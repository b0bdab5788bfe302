// Package beats lets the bot act on its own initiative. At configured times it begins a turn that nobody asked for: a
// check-in, a message to a chat that has fallen silent, or something invisible to users, such as a digest of its diary.
//
// It writes only to places that want it: a group's moderators, and users in their private chats, say so with /beats on,
// or the configuration lists the place. /beats off always ends it. There are daily limits. It does not write at night
// there, while people are talking, or again before somebody has reacted to the last beat. Beats that were missed while
// the bot was not running are dropped. The turn decides what a beat says.
//
// A beat is an event of core.KindBeat whose Data says what the turn may do:
// {"beat":"NAME","quiet":true,"actions":["diary_*"]}. It is marked as done before the event is
// received: a crash in between loses a beat, but none comes twice.
package beats

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/command"
	"synthbot/core/loop"
	"synthbot/core/timezone"
	"synthbot/core/txt"
	"synthbot/core/values"
)

// Plugin is the plugin. Safe for concurrent use.
type Plugin struct {
	core.Alone
	host   core.Host
	config Config
	night  night
	beats  []beat
	wake   chan struct{}

	changed atomic.Bool // the wants of some place have changed
}

// beat is a Beat with its parsed schedule.
type beat struct {
	*Beat
	schedule
}

// silent reports whether the beat is invisible to users.
func (b *beat) silent() bool { return b.Kind == kindInternal && !b.Speak }

// New makes the plugin. Run begins the beats.
func New(h core.Host, c Config) (*Plugin, error) {
	p := &Plugin{host: h, config: c, wake: make(chan struct{}, 1)}
	var err error
	if p.night, err = readNight(c.Night); err != nil {
		return nil, fmt.Errorf("night: %w", err)
	}
	for i := range p.config.Beats {
		b := beat{Beat: &p.config.Beats[i]}
		b.Kind = cmp.Or(b.Kind, kindOutreach)
		if b.schedule, err = readSchedule(b.Beat); err != nil {
			return nil, err
		}
		p.beats = append(p.beats, b)
	}
	return p, nil
}

func (p *Plugin) Name() string { return p.host.Name }

// Actions implements core.Plugin. There are none: users and models cannot cause a beat.
func (p *Plugin) Actions() []core.Action { return nil }

// Keys of items: what a place wants and what it got, under its path; and the day's count, under the zero path.
const (
	keyWants = "wants"
	keyGot   = "got"
	keyDay   = "day"
)

// wants is the setting of a place, by /beats.
type wants struct {
	On      bool      `json:"on"`
	Zone    string    `json:"zone,omitempty"` // "": the user's in private, else the bot's
	Private bool      `json:"private,omitempty"`
	Since   time.Time `json:"since"`

	usersZone bool // Zone is the user's own, which may change
}

// got records the beats that a place got.
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

// wanting returns the settings of all places that have one, each with its time zone.
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
			w.usersZone = true
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
		return "", nil // not a user with a time zone
	}
	z, err := timezone.Of(ctx, p.host.Zones, person)
	return z.Name, err
}

func (p *Plugin) zone(w wants) *time.Location {
	if loc, ok := timezone.Load(w.Zone); ok {
		return loc
	}
	return p.host.Clock().Location()
}

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

// Config is the table [plugins.beats].
type Config struct {
	Beats    []Beat        `toml:"beat" doc:"Something that the bot does on its own, and when."`
	PerPlace int           `toml:"per_place" default:"3" min:"1" max:"100" doc:"How many beats one place gets per day at most."`
	PerDay   int           `toml:"per_day" default:"100" min:"1" max:"100000" doc:"How many beats all places together get per day at most."`
	Night    string        `toml:"night" default:"22:00-08:00" doc:"When the bot writes to nobody, in the place's time zone; none: no such time." example:"23:00-07:30"`
	Silence  time.Duration `toml:"silence" default:"15m" min:"1m" max:"24h" doc:"How long a place must have been silent before a beat begins there."`
}

// Beat is one thing that the bot does on its own.
type Beat struct {
	Name    string        `toml:"name" required:"true" example:"good-morning" doc:"Its name: a-z, 0-9, - and _."`
	Kind    string        `toml:"kind" default:"outreach" oneof:"outreach|internal" doc:"outreach: it may write to users who agreed; internal: for the bot itself, invisible to users."`
	At      []string      `toml:"at" example:"09:00, 18:30" doc:"The times of day, in the place's time zone; or set every."`
	Every   time.Duration `toml:"every" example:"6h" min:"0s" max:"8760h" doc:"The interval, at least 15m; or set at."`
	Days    []string      `toml:"days" example:"mon, thu" doc:"The days of the week: mon, tue, wed, thu, fri, sat, sun; empty: all."`
	Prompt  string        `toml:"prompt" required:"true" example:"Ask how everybody is, in one short line, or let it be." doc:"The instruction for the model."`
	Places  []core.Path   `toml:"places" kind:"place" example:"telegram/-1001234567890" doc:"The places, with all places below them. Empty: for outreach, places with /beats on; for internal, places where something was said since. A place that is listed itself needs no /beats on."`
	After   time.Duration `toml:"after" default:"24h" min:"0s" max:"8760h" doc:"For outreach: how long the place must have been silent."`
	Actions []string      `toml:"actions" example:"diary_*" doc:"The actions that it may use, by name or pattern. Empty: outreach sends messages, internal uses diary and memories."`
	Speak   bool          `toml:"speak" default:"false" doc:"Lets an internal beat write to users as well; the rules for outreach then apply."`
}

const (
	kindOutreach = "outreach"
	kindInternal = "internal"
)

const minEvery = 15 * time.Minute

func (c *Config) Check(fault func(text string, at ...any)) {
	if _, err := readNight(c.Night); err != nil {
		fault(err.Error(), "night")
	}
	seen := make(map[string]bool)
	for i := range c.Beats {
		b := &c.Beats[i]
		b.check(func(text string, at ...any) { fault(text, append([]any{"beat", i}, at...)...) })
		if seen[b.Name] {
			fault("there are two beats of that name", "beat", i, "name")
		}
		seen[b.Name] = true
	}
}

func (b *Beat) check(fault func(text string, at ...any)) {
	if !txt.IsName(b.Name, 32, "-") {
		fault("a name is of a-z, 0-9, - and _, at most 32 letters", "name")
	}
	b.timing(fault)
	action.CheckPatterns(b.Actions, fault, "actions")
}

// Commands implements command.Commander.
func (p *Plugin) Commands() []command.Command {
	return []command.Command{{Spec: command.Spec{
		Name: "beats", Idempotent: true, Brief: "Choose whether I may write here on my own",
		Args: []command.Arg{
			{Name: "what", Brief: "on or off; leave it out to see which", Choices: []string{"on", "off"}},
			{Name: "zone", Brief: "with on: the time zone here, like Europe/Rome", Rest: true},
		},
		Briefs: map[string]string{
			"it": "Di' se posso scrivere qui di mia iniziativa", "de": "Sag, ob ich hier von mir aus schreiben darf",
			"fr": "Dire si je peux écrire ici de ma propre initiative",
			"es": "Di si puedo escribir aquí por iniciativa propia",
			"pt": "Diz se posso escrever aqui por iniciativa própria",
		},
	}, Do: p.command}}
}

func (p *Plugin) command(ctx context.Context, c command.Call) (string, error) {
	w, said, err := values.Get[wants](ctx, p.host.Items, c.Path, keyWants)
	if err != nil {
		return "", err
	}
	what := c.Args["what"]
	if what == "" {
		return p.describe(ctx, c, w, said)
	}
	if !c.Private && c.Author.Rank < core.RankModerator {
		return "", core.Errorf(core.Forbidden, "In a group, only its moderators can choose that.")
	}
	if w.On != (what == "on") {
		w.Since = p.host.Clock()
	}
	w.On, w.Private = what == "on", c.Private
	if c.Args["zone"] != "" {
		loc, ok := timezone.Load(c.Args["zone"])
		if !ok {
			return "", core.Errorf(core.Invalid, "There is no such time zone; write one like Europe/Rome.")
		}
		w.Zone = loc.String()
	}
	if err := values.Put(ctx, p.host.Items, c.Path, keyWants, w); err != nil {
		return "", err
	}
	p.changed.Store(true)
	loop.Notify(p.wake)
	return p.describe(ctx, c, w, true)
}

// planned lists the beats of a place. named reports whether the configuration names it.
func (p *Plugin) planned(place core.Path) (list []string, named bool) {
	for i := range p.beats {
		b := &p.beats[i]
		if !b.silent() && b.covers(place) {
			named = named || slices.Contains(b.Places, place)
			list = append(list, fmt.Sprintf("%s (%s)", b.Name, b.schedule.String()))
		}
	}
	return list, named
}

// describe tells users whether beats are on here, and which. In private, the night is in the user's own time zone.
func (p *Plugin) describe(ctx context.Context, c command.Call, w wants, said bool) (text string, err error) {
	if w.Zone == "" && c.Private {
		z, err := timezone.Of(ctx, p.host.Zones, c.Person)
		if err != nil {
			return "", err
		}
		w.Zone = z.Name
	}
	here, named := p.planned(c.Path)
	switch {
	case said && !w.On, !said && !named:
		return "I do not write here on my own. `/beats on` lets me.", nil
	case len(here) == 0:
		return "I may write here on my own, but nothing is planned.", nil
	}
	text = "I may write here on my own: " + strings.Join(here, "; ")
	if p.night != (night{}) {
		zone := "my time zone"
		loc := p.zone(w)
		if loc != time.Local {
			zone = loc.String()
		}
		text += ". Never at night (" + p.config.Night + ", " + zone + ")"
	}
	return text + ". `/beats off` ends that.", nil
}
