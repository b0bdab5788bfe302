package reminders

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"synthbot/core"
	"synthbot/plugins/reminders/calendar"
)

// kept is a person's time zone as it is kept.
type keptZone struct {
	Zone string `json:"zone"`
}

// zoneFor is the zone that a time is in: the one that was named, the person's,
// or the bot's.
func (p *Plugin) zoneFor(ctx context.Context, person core.Path, named string) (*time.Location, error) {
	if named != "" {
		if loc, ok := calendar.Zone(named); ok {
			return loc, nil
		}
		return nil, core.Errorf(core.Invalid, "There is no such time zone; write one like Europe/Rome.")
	}
	loc, own, err := p.zoneOf(ctx, person)
	if err != nil || own {
		return loc, err
	}
	return p.host.Clock().Location(), nil
}

// zoneOf is the zone that a person chose.
func (p *Plugin) zoneOf(ctx context.Context, person core.Path) (loc *time.Location, own bool, err error) {
	item, ok, err := p.host.Items.Get(ctx, person, keyZone)
	if err != nil || !ok {
		return nil, false, err
	}
	var k keptZone
	if err := json.Unmarshal(item.Value, &k); err != nil {
		return nil, false, fmt.Errorf("zone of %s: %w", person, err)
	}
	loc, own = calendar.Zone(k.Zone)
	return loc, own, nil
}

// setZone keeps it; nil takes it away.
func (p *Plugin) setZone(ctx context.Context, person core.Path, loc *time.Location) error {
	if loc == nil {
		return remove(ctx, p.host.Items, person, keyZone)
	}
	return put(ctx, p.host.Items, person, keyZone, keptZone{loc.String()}, core.AnyVersion)
}
