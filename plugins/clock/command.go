package clock

import (
	"context"
	"strings"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/timezone"
)

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

// maxPlace is the longest name that is looked for, in bytes.
const maxPlace = 100

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

// find takes a time zone, or a city.
func (p *Plugin) find(ctx context.Context, name, locale string) (*spot, error) {
	zone := strings.ReplaceAll(name, " ", "_")
	if strings.Contains(zone, "/") || zone == "UTC" {
		if loc, ok := timezone.Load(zone); ok && loc.String() == zone {
			return bare(timezone.Zone{Name: loc.String()}), nil
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

// describePlace tells users what location they set, where they set it.
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
