package reminders

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// formatTime writes a time for users.
func formatTime(t time.Time, veiled bool) string {
	s := t.Format("Monday 2 January 2006, 15:04")
	name := t.Location().String()
	if name != "Local" && name != "" && !veiled {
		s += " (" + name + ")"
	}
	return s
}

// formatSpan writes a duration as short as sense allows: 45m, 2h, 3d 4h.
func formatSpan(d time.Duration) string {
	d = d.Round(time.Second)
	day := 24 * time.Hour
	switch {
	case d >= 2*day:
		return strings.TrimSuffix(fmt.Sprintf("%dd %dh", d/day, d%day/time.Hour), " 0h")
	case d >= time.Hour:
		return strings.TrimSuffix(fmt.Sprintf("%dh %dm", d/time.Hour, d%time.Hour/time.Minute), " 0m")
	case d >= time.Minute:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// lateWords say by language that something is late; %s is by how much.
var lateWords = map[string]string{
	"it": "(in ritardo di %s)", "de": "(%s verspätet)", "fr": "(en retard de %s)", "es": "(con %s de retraso)",
	"pt": "(com %s de atraso)",
}

// lateness says in the bot's language that something is late.
func lateness(language, by string) string {
	first, _, _ := strings.Cut(strings.ToLower(language), "-")
	return fmt.Sprintf(cmp.Or(lateWords[first], "(late by %s)"), by)
}
