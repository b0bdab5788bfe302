package reminders

import (
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

func days(d time.Duration) string { return fmt.Sprintf("%d days", d/(24*time.Hour)) }

// lateness says in the bot's language that something comes late.
func lateness(language, by string) string {
	first, _, _ := strings.Cut(strings.ToLower(language), "-")
	switch first {
	case "it":
		return "(in ritardo di " + by + ")"
	case "de":
		return "(" + by + " verspätet)"
	case "fr":
		return "(en retard de " + by + ")"
	case "es":
		return "(con " + by + " de retraso)"
	case "pt":
		return "(com " + by + " de atraso)"
	}
	return "(late by " + by + ")"
}
