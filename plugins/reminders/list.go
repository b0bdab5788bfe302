package reminders

import (
	"context"
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
	Repeats       string    // how a recurring one repeats
}

// All lists the reminders of all users, the next one first. Those that cannot be read are left out, and in err.
func (p *Plugin) All(ctx context.Context) (list []Listed, err error) {
	all, err := p.of(ctx, core.Path{})
	sorting.Sort(all, byDue)
	for _, r := range all {
		list = append(list, Listed{r.ID, r.Text, r.Place, r.person, r.Due, repeats(r.Rule)})
	}
	return list, err
}

// repeats says in words how a rule repeats, if it is a simple one; else it is the rule (RFC 5545).
func repeats(rule string) string {
	units := map[string]string{"HOURLY": "hour", "DAILY": "day", "WEEKLY": "week", "MONTHLY": "month", "YEARLY": "year"}
	every, unit, on := "", "", ""
	for part := range strings.SplitSeq(rule, ";") {
		key, value, _ := strings.Cut(part, "=")
		switch key {
		case "FREQ":
			unit = units[value]
		case "INTERVAL":
			every = value
		case "BYDAY":
			on = weekdays(value)
		case "BYMONTHDAY":
			on = "day " + strings.ReplaceAll(value, ",", ", ")
		default:
			return rule
		}
	}
	switch {
	case unit == "" || on == "" && strings.Contains(rule, "BYDAY") || strings.Contains(on, "-"):
		return rule
	case every != "" && every != "1":
		unit = every + " " + unit + "s"
	}
	if on != "" {
		on = " on " + on
	}
	return "every " + unit + on
}

// weekdays are the names of days of the week; "" if some are not plain ones.
func weekdays(list string) string {
	names := map[string]string{"MO": "Monday", "TU": "Tuesday", "WE": "Wednesday", "TH": "Thursday", "FR": "Friday",
		"SA": "Saturday", "SU": "Sunday"}
	var days []string
	for day := range strings.SplitSeq(list, ",") {
		if names[day] == "" {
			return ""
		}
		days = append(days, names[day])
	}
	return strings.Join(days, ", ")
}
