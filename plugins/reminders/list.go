package reminders

import (
	"context"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/sorting"
	"synthbot/plugins/reminders/calendar"
)

// Listed is a reminder as admins see it. Its text may come from a private place.
type Listed struct {
	ID, Text      string
	Place, Person core.Path
	Due           time.Time // when it is due next, in the time zone of its user
	Repeats       string    // how it repeats, see reminder.repeats
}

// All lists the reminders of all users, the next one first. It leaves out those that cannot be read, and returns their
// errors.
func (p *Plugin) All(ctx context.Context) (list []Listed, err error) {
	all, err := p.of(ctx, core.Path{})
	sorting.Sort(all, byDue)
	for _, r := range all {
		list = append(list, Listed{r.ID, r.Text, r.Place, r.person, r.Due, r.repeats(p.config.MaxAhead)})
	}
	return list, err
}

// repeats describes how a reminder repeats: in words, with the time in the rule's zone if Due is in another one, or by
// the next times within the horizon. It returns "" for a reminder that does not.
func (r *reminder) repeats(horizon time.Duration) string {
	words := inWords(r.Rule)
	own := r.Start.Location().String()
	if words != "" && own != r.Due.Location().String() {
		words += r.Start.Format(", 15:04 (") + strings.Replace(own, "Local", "my time zone", 1) + ")"
	}
	if words != "" {
		return words
	}
	rule, err := calendar.ParseRule(r.Rule)
	if err != nil {
		return ""
	}
	var next []string
	for at := range rule.After(r.Start, r.Due, horizon) {
		if len(next) == 3 {
			next = append(next, "…")
			break
		}
		next = append(next, at.In(r.Due.Location()).Format("2 Jan 2006 15:04"))
	}
	if next == nil {
		return ""
	}
	return "on " + strings.Join(next, ", ")
}

// inWords describes a simple rule. It returns "" for others.
func inWords(rule string) string {
	units := map[string]string{"HOURLY": "hour", "DAILY": "day", "WEEKLY": "week", "MONTHLY": "month", "YEARLY": "year"}
	every, unit, on, end := "", "", "", ""
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
		case "UNTIL":
			last, err := time.Parse("20060102", value)
			if err != nil {
				return ""
			}
			end = last.Format(" until 2 January 2006")
		default:
			return ""
		}
	}
	switch {
	case unit == "" || on == "" && strings.Contains(rule, "BYDAY") || strings.Contains(on, "-"):
		return ""
	case every != "" && every != "1":
		unit = every + " " + unit + "s"
	}
	if on != "" {
		on = " on " + on
	}
	return "every " + unit + on + end
}

// weekdays returns the names of days such as MO,TU. It returns "" if others are among them.
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
