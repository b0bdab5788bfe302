package reminders

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/sorting"
)

// Listed is a reminder as admins see it. Its text may come from a private place.
type Listed struct {
	ID, Text      string
	Place, Person core.Path
	Due           time.Time // when it comes next, in the zone of its user
	Rule          string    // of a recurring one (RFC 5545)
}

// All lists the reminders of all users, the next one first. Those that cannot be read are left out, and in err.
func (p *Plugin) All(ctx context.Context) (list []Listed, err error) {
	items, err := p.host.Items.List(ctx, core.Path{})
	if err != nil {
		return nil, fmt.Errorf("reminders: %w", err)
	}
	var faults []error
	for _, item := range items {
		if !item.Path.IsPerson() || !strings.HasPrefix(item.Key, keyReminder) {
			continue
		}
		r, err := p.read(item)
		if err != nil {
			faults = append(faults, fmt.Errorf("reminder %s of %s: %w", item.Key, item.Path, err))
			continue
		}
		list = append(list, Listed{r.ID, r.Text, r.Place, item.Path, r.Due, r.Rule})
	}
	sorting.Sort(list, func(a, b Listed) int { return cmp.Or(a.Due.Compare(b.Due), strings.Compare(a.ID, b.ID)) })
	return list, errors.Join(faults...)
}
