package reminders

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/sorting"
	"synthbot/core/timezone"
	"synthbot/core/txt"
	"synthbot/core/values"
	"synthbot/plugins/reminders/calendar"
)

// Commands implements command.Commander.
func (p *Plugin) Commands() []command.Command {
	return []command.Command{
		{Spec: command.Spec{
			Name: "remind", Brief: "Set, list or cancel reminders",
			Args: []command.Arg{
				{Name: "what", Brief: "add, list or cancel", Implied: "add",
					Choices: []string{"add", "list", "cancel"}},
				{Name: "text", Brief: "add: when and what (tomorrow at 9 call mum); cancel: its id or words of it",
					Rest: true},
			},
			Briefs: map[string]string{
				"it": "Imposta, elenca o annulla promemoria", "de": "Erinnerungen setzen, zeigen oder absagen",
				"fr": "Créer, lister ou annuler des rappels",
				"es": "Crear, listar o cancelar recordatorios", "pt": "Criar, listar ou cancelar lembretes",
			},
		}, Do: p.remind},
		{Spec: command.Spec{
			Name: "timezone", Idempotent: true, Brief: "Show or set your time zone",
			Args: []command.Arg{{Name: "zone", Brief: "for example Rome, Europe/Rome; off: use the bot's", Rest: true}},
			Briefs: map[string]string{
				"it": "Mostra o scegli il tuo fuso orario", "de": "Deine Zeitzone zeigen oder wählen",
				"fr": "Voir ou choisir votre fuseau horaire",
				"es": "Ver o elegir tu zona horaria", "pt": "Ver ou escolher o seu fuso horário",
			},
		}, Do: p.timezone},
	}
}

func (p *Plugin) remind(ctx context.Context, c command.Call) (string, error) {
	text := c.Args["text"]
	switch c.Args["what"] {
	case "add":
		return p.remindAdd(ctx, c, text)
	case "cancel":
		if text == "" {
			return "", core.Errorf(core.Invalid, "Which one? `/remind list` shows their ids.")
		}
		r, err := p.cancel(ctx, c, text)
		if err == nil {
			undo := core.JSON(values.New(r.person, keyReminder+r.ID, r))
			c.NoteDone(cancelName, cancelPayload{ID: r.shown()}, core.Result{Undo: undo})
		}
		return "Cancelled: " + txt.Line(r.shown()), err
	}
	return p.remindList(ctx, c)
}

func (p *Plugin) remindAdd(ctx context.Context, c command.Call, text string) (string, error) {
	z, err := p.zoneFor(ctx, c, "")
	if err != nil {
		return "", err
	}
	when, what, err := p.reader.Find(text, p.host.Clock().In(z.Location))
	if err != nil {
		return "", unreadable(err)
	}
	if what == "" {
		return "", core.Errorf(core.Invalid, "Of what? Write it like `/remind add tomorrow at 9 call mum`.")
	}
	w := wish{text: what, when: when, veiled: z.veiled}
	if when.Repeat != "" {
		if w.rule, err = calendar.ParseRule(when.Repeat); err != nil {
			return "", core.Errorf(core.Invalid, "A reminder can come at most once an hour.")
		}
	}
	r, err := p.set(ctx, c, w)
	if err != nil {
		return "", err
	}
	said := strings.TrimSpace(strings.Replace(text, what, "", 1))
	c.NoteDone(setName, setPayload{Text: r.Text, When: said}, core.Result{Undo: core.JSON(r.ID)})
	return "⏰ " + row(&r, p.config.MaxAhead), nil
}

func row(r *reminder, horizon time.Duration) string {
	s := fmt.Sprintf("%s: %s", formatTime(r.Due, r.Veiled), txt.Line(r.shown()))
	repeats := r.repeats(horizon)
	if repeats != "" {
		s += " · " + repeats
	}
	return s + " · `" + r.ID + "`"
}

func (p *Plugin) remindList(ctx context.Context, c command.Call) (string, error) {
	all := c.Author.Rank >= core.RankModerator && !c.Private
	list, err := p.here(ctx, c, all)
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		return "No reminders are set here. Write `/remind add tomorrow at 9 call mum` to set one.", nil
	}
	b := strings.Builder{}
	for i := range list[:min(len(list), shownMax)] {
		b.WriteString("- " + row(&list[i], p.config.MaxAhead))
		if all && list[i].Author.Name != "" {
			b.WriteString(" · " + txt.Line(list[i].Author.Name))
		}
		b.WriteString("\n")
	}
	more := len(list) - shownMax
	if more > 0 {
		fmt.Fprintf(&b, "… and %d more", more)
	}
	return strings.TrimSpace(b.String()), nil
}

const shownMax = 20 // how many reminders the command shows at once

func (p *Plugin) timezone(ctx context.Context, c command.Call) (string, error) {
	name := c.Args["zone"]
	now := p.host.Clock()
	switch strings.ToLower(name) {
	case "":
		z, err := p.zoneFor(ctx, c, "")
		switch {
		case err != nil:
			return "", err
		case z.veiled:
			return "You set it elsewhere; I show it there, and in private.", nil
		}
		return "For you it is " + formatTime(now.In(z.Location), false) + ".", nil
	case "off":
		err := timezone.Keep(ctx, p.host.Zones, c.Person, timezone.Zone{})
		return "For you I use my own time zone now: " + formatTime(now, false) + ".", err
	}
	loc, ok := timezone.Load(name)
	if !ok {
		return "", core.Errorf(core.Invalid, "There is no such time zone; write one like Europe/Rome or New York.")
	}
	zone := timezone.Zone{Name: loc.String(), Origin: c.Path}
	err := timezone.Keep(ctx, p.host.Zones, c.Person, zone)
	return "For you it is " + formatTime(now.In(loc), false) + ". Reminders that are already set do not change.", err
}

// zone is the time zone of a reminder.
type zone struct {
	*time.Location
	// veiled says that the user set it in another place: it is used, but not shown.
	veiled bool
}

// zoneFor returns the time zone with a name or, without one, the user's, else the bot's.
func (p *Plugin) zoneFor(ctx context.Context, c command.Call, named string) (zone, error) {
	if named != "" {
		if loc, ok := timezone.Load(named); ok {
			return zone{loc, false}, nil
		}
		return zone{}, core.Errorf(core.Invalid, "There is no such time zone; write one like Europe/Rome.")
	}
	z, err := timezone.Of(ctx, p.host.Zones, c.Person)
	if err != nil {
		return zone{}, err
	}
	loc, ok := timezone.Load(z.Name)
	if !ok {
		return zone{p.host.Clock().Location(), false}, nil
	}
	shows := func(at core.Path) bool { return at.Within(z.Origin) }
	return zone{loc, !c.Private && !shows(c.Path) && !slices.ContainsFunc(c.Sees, shows)}, nil
}

// Inject implements core.Injector: the user's local time, if it differs from the bot's and may be shown.
func (p *Plugin) Inject(ctx context.Context, s core.Scene) (json.RawMessage, error) {
	person, err := s.Path.Person(s.Author.ID)
	if err != nil || s.Author.Bot {
		return nil, nil // no single user
	}
	z, err := p.zoneFor(ctx, command.Call{Path: s.Path, Private: s.Private, Person: person, Sees: s.Sees}, "")
	now := p.host.Clock()
	if err != nil || z.veiled || z.String() == now.Location().String() {
		return nil, err
	}
	local := now.In(z.Location).Format(wallForm)
	return core.JSON(map[string]string{"person_zone": z.String(), "person_time": local}), nil
}

// wallForm is the layout of a local time without its zone.
const wallForm = "2006-01-02T15:04"

func stamp(t time.Time, veiled bool) string {
	if veiled {
		return t.Format(wallForm)
	}
	return t.Format(time.RFC3339)
}

func formatTime(t time.Time, veiled bool) string {
	s := t.Format("Monday 2 January 2006, 15:04")
	name := t.Location().String()
	if name != "Local" && name != "" && !veiled {
		s += " (" + name + ")"
	}
	return s
}

// formatSpan formats a duration in at most two units: 45m, 2h, 3d 4h.
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

// lateWords contains the remark that a reminder is late, by language; %s is the delay.
var lateWords = map[string]string{
	"it": "(in ritardo di %s)", "de": "(%s verspätet)", "fr": "(en retard de %s)", "es": "(con %s de retraso)",
	"pt": "(com %s de atraso)",
}

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
