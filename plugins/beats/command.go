package beats

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/loop"
	"synthbot/core/timezone"
	"synthbot/core/values"
)

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
