package reminders

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"synthbot/core"
	"synthbot/core/timezone"
)

// zone is whose wall clock counts.
type zone struct {
	*time.Location
	// veiled is true if the user set it elsewhere: it is used here, but not shown.
	veiled bool
}

// zoneFor is the zone that a time is in: the one that was named, the person's,
// or the bot's.
func (p *Plugin) zoneFor(ctx context.Context, a asker, named string) (zone, error) {
	if named != "" {
		if loc, ok := timezone.Load(named); ok {
			return zone{loc, false}, nil
		}
		return zone{}, core.Errorf(core.Invalid, "There is no such time zone; write one like Europe/Rome.")
	}
	z, err := timezone.Of(ctx, p.host.Zones, a.person)
	if err != nil {
		return zone{}, err
	}
	loc, ok := timezone.Load(z.Name)
	if !ok {
		return zone{p.host.Clock().Location(), false}, nil
	}
	shows := func(at core.Path) bool { return at.Within(z.Origin) }
	return zone{loc, !a.private && !shows(a.place) && !slices.ContainsFunc(a.sees, shows)}, nil
}

// Inject implements core.Injector: the user's local time, if it differs from the bot's and
// may be shown.
func (p *Plugin) Inject(ctx context.Context, s core.Scene) (json.RawMessage, error) {
	person, err := s.Path.Person(s.Author.ID)
	if err != nil || s.Author.ID == "" || s.Author.Bot {
		return nil, nil // nobody, or many
	}
	z, err := p.zoneFor(ctx, asker{place: s.Path, private: s.Private, person: person, sees: s.Sees}, "")
	now := p.host.Clock()
	if err != nil || z.veiled || z.String() == now.Location().String() {
		return nil, err
	}
	local := now.In(z.Location).Format(wallForm)
	return core.JSON(map[string]string{"person_zone": z.String(), "person_time": local}), nil
}

// wallForm is a wall clock's time without a word on where it hangs.
const wallForm = "2006-01-02T15:04"

// stamp writes a moment for a model.
func stamp(t time.Time, veiled bool) string {
	if veiled {
		return t.Format(wallForm)
	}
	return t.Format(time.RFC3339)
}
