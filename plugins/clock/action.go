package clock

import (
	"context"
	"errors"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/command"
	"synthbot/core/timezone"
)

type weatherPayload struct {
	_ struct{} `title:"Look up the weather"`

	Place string `json:"place,omitempty" title:"place" max:"100" doc:"A city, with its country where there are several: Paris, France. Left out: the person's place, else the bot's."`
	Days  int    `json:"days" title:"days" default:"1" min:"1" max:"7" doc:"How many days, including today."`
}

func (p *Plugin) Actions() []core.Action {
	if p.config.Weather == weatherOff {
		return nil
	}
	return []core.Action{action.Typed(core.Action{
		Name: "weather", Similes: []string{"get_weather", "weather_forecast"},
		Brief: "Look up the weather of a place, now and for the next days",
		Examples: action.Guide("Returns the weather of a place now, and day by day for up to a week.",
			"When somebody asks about the weather, or whether they need a coat, an umbrella, a plan for indoors.",
			[]string{"Do not make up the weather: what you know about a climate is not a forecast.",
				"For the day after tomorrow ask for 3 days."},
			core.NewExample("“Do I need an umbrella?” from somebody whose place is known", `{}`),
			core.NewExample("“How will the weekend be in Lisbon?” on a Thursday",
				`{"place":"Lisbon, Portugal","days":4}`),
		).Note("place is searched for on a map by its name: no streets, no “here”."),
		Effects: core.EffectReadsForeign, Permission: core.PermissionEveryone, Idempotent: true, Retries: 1,
		Timeout: 3*p.config.Timeout + time.Second, RateLimit: core.RateLimit{Count: 30, Per: time.Hour},
	}, p.weather)}
}

func (p *Plugin) weather(ctx context.Context, c core.Call, in weatherPayload) (core.Result, error) {
	s, err := p.where(ctx, c, in.Place)
	if err != nil {
		return core.Result{}, err
	}
	now := p.host.Clock()
	f, ok := p.skies.fresh(s, now, p.config.Refresh/2)
	if !ok {
		if f, err = p.look(ctx, s); err != nil {
			if f, ok = p.skies.fresh(s, now, tooOld); !ok {
				return core.Result{}, &core.Error{Kind: core.Temporary, Text: "The weather service does not answer.",
					Err: err}
			}
		}
	}
	shown := *f
	shown.Place, shown.Days = s.String(), f.Days[:min(len(f.Days), max(in.Days, 1))]
	return core.Output(shown), nil
}

// where returns the spot with a name or, without one, that of the author or the bot.
func (p *Plugin) where(ctx context.Context, c core.Call, name string) (*spot, error) {
	if name == "" {
		s, err := p.visibleSpot(ctx, c.Path, c.Private, c.Author, c.Sees)
		switch {
		case err != nil || s != nil && !s.Bare:
			return s, err
		case p.config.Place == "":
			return nil, core.Errorf(core.Invalid, "Say of which place.")
		}
		err = p.home.find(ctx, p)
		s, _ = p.home.at(p.host.Clock())
		if s == nil {
			return nil, &core.Error{Kind: core.Temporary, Text: "The bot's place was not found on the map.", Err: err}
		}
		return s, nil
	}
	return p.locate(ctx, name, p.host.Language)
}

// locate finds a city. Its errors are for users.
func (p *Plugin) locate(ctx context.Context, name, language string) (*spot, error) {
	s, err := p.server.locate(ctx, name, language)
	switch {
	case errors.Is(err, errNowhere):
		return nil, core.Errorf(core.Invalid,
			"There is no such place on the map. Write a city, with its country where there are several.")
	case err != nil:
		return nil, &core.Error{Kind: core.Temporary, Text: "The map service does not answer.", Err: err}
	}
	return s, nil
}

// Commands implements command.Commander.
func (p *Plugin) Commands() []command.Command {
	return []command.Command{{Spec: command.Spec{
		Name: "place", Idempotent: true, Brief: "Tell the bot where you are, for the time and the weather",
		Args: []command.Arg{{Name: "place", Brief: "a city (Rome, Italy) or a time zone (Europe/Rome); off: forget it",
			Rest: true}},
		Briefs: map[string]string{
			"it": "Di' al bot dove sei, per l'ora e il meteo", "de": "Sag dem Bot, wo du bist, für Uhrzeit und Wetter",
			"fr": "Indiquer au bot où vous êtes, pour l'heure et la météo",
			"es": "Dile al bot dónde estás, para la hora y el tiempo",
			"pt": "Diz ao bot onde estás, para a hora e o tempo",
		},
	}, Do: p.place}}
}

const maxPlace = 100 // the maximum length of a place's name, in bytes

func (p *Plugin) place(ctx context.Context, c command.Call) (string, error) {
	name := strings.Join(strings.Fields(c.Args["place"]), " ")
	switch {
	case name == "":
		return p.describePlace(ctx, c)
	case strings.EqualFold(name, "off"):
		return "I forgot where you are.", p.keepPlace(ctx, c.Person, nil)
	case len(name) > maxPlace:
		return "", core.Errorf(core.Invalid, "That is too long for a city.")
	}
	s, err := p.find(ctx, name, c.Locale)
	if err != nil {
		return "", err
	}
	s.Origin = c.Path
	return "You are in " + p.describe(s) + ".", p.keepPlace(ctx, c.Person, s)
}

func (p *Plugin) find(ctx context.Context, name, locale string) (*spot, error) {
	zone := strings.ReplaceAll(name, " ", "_")
	if strings.Contains(zone, "/") || zone == "UTC" {
		if loc, ok := timezone.Load(zone); ok && loc.String() == zone {
			return zoneSpot(timezone.Zone{Name: loc.String()}), nil
		}
	}
	if p.config.Weather == weatherOff {
		return nil, core.Errorf(core.Invalid, "There is no such time zone; write one like Europe/Rome.")
	}
	if locale == "" {
		locale = p.host.Language
	}
	return p.locate(ctx, name, locale)
}

func (p *Plugin) describe(s *spot) string {
	text := s.String()
	loc := s.location()
	if loc != nil {
		text += ", where it is " + p.host.Clock().In(loc).Format("Monday, 15:04")
	}
	return text
}

// describePlace returns the caller's place, if it may be shown here.
func (p *Plugin) describePlace(ctx context.Context, c command.Call) (string, error) {
	s, err := p.visibleSpot(ctx, c.Path, c.Private, c.Author, c.Sees)
	if err != nil {
		return "", err
	}
	if s == nil {
		return "I do not know where you are. Write `/place Rome, Italy`, or a time zone: `/place Europe/Rome`.", nil
	}
	return "You are in " + p.describe(s) + ".", nil
}
