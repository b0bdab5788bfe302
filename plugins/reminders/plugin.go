// Package reminders reminds users, once or repeatedly, by their local time. The plugin stores
// reminders and makes an event when one is due; a turn then says it in the place where it was
// set. The packages spoken and calendar parse times and rules.
//
// A reminder is stored under its user's path, so it is shown to them and erased with them. Three
// kinds of items point to it: one under its place, for lists; one under the pseudo-place
// "@due/HOUR", for the due ones; and the hours themselves under "@hours". So only the next hour
// is read, however many reminders there are. A pointer to a missing reminder has no effect.
//
// A due reminder is received as an event of core.KindReminder. The event's id contains the
// reminder's and the time it was due, so that a crash before the next write does not remind twice.
//
// If its place refuses it, such as a topic that was deleted, its author gets it in private, unless the process
// ends just then.
package reminders

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/sorting"
	"synthbot/core/spoken"
	"synthbot/core/timezone"
	"synthbot/core/values"
	"synthbot/plugins/reminders/calendar"
)

// Plugin is the plugin. Safe for concurrent use.
type Plugin struct {
	core.Alone
	host   core.Host
	config Config
	reader *spoken.Reader
	agenda agenda
}

// New makes the plugin. Run fires the due reminders.
func New(h core.Host, c Config) (*Plugin, error) {
	return &Plugin{host: h, config: c, reader: spoken.New(h.Language, calendar.At),
		agenda: agenda{wake: make(chan struct{}, 1)}}, nil
}

func (p *Plugin) Name() string { return p.host.Name }

// asked converts the call of an action to one of a command. Reminders need an identified user.
func asked(c core.Call) (command.Call, error) {
	person, err := c.Path.Person(c.Author.ID)
	if err != nil {
		err = core.Errorf(core.Forbidden, "It is not clear whose reminder that is: one person must ask for it.")
	}
	return command.Call{Path: c.Path, Private: c.Private, Author: c.Author, Person: person, Sees: c.Sees}, err
}

// wish is a request for a reminder.
type wish struct {
	text   string
	when   spoken.When
	rule   calendar.Rule
	veiled bool      // the zone of when is not shown here
	seed   string    // identifies the call, so that it can be repeated; "" if unknown
	asked  time.Time // when it was requested: its time must be later; zero: now
}

// set stores a reminder. If there is an equal one, it returns that.
func (p *Plugin) set(ctx context.Context, c command.Call, w wish) (reminder, error) {
	now := p.host.Clock()
	if w.veiled && !w.when.Wall && w.rule.IsZero() { // "in an hour" needs no zone: the bot's hides the user's
		w.when.At, w.veiled = w.when.At.In(now.Location()), false
	}
	r := reminder{
		Text: strings.TrimSpace(w.text), Place: c.Path, Private: c.Private, Author: c.Author, Locale: c.Locale,
		Start: w.when.At.Truncate(time.Second), Rule: w.rule.String(), Veiled: w.veiled, Set: now, person: c.Person,
	}
	r.Due = r.Start
	zone := w.when.At.Location().String()
	if _, ok := timezone.Load(zone); ok { // else it cannot be loaded by its name
		r.Zone = zone
	}
	if !w.rule.IsZero() {
		from := r.Start
		if now.After(from) {
			from = now
		}
		next, ok := w.rule.Next(r.Start, from.Add(-time.Second), p.config.MaxAhead)
		if !ok {
			return r, core.Errorf(core.Invalid, "By the rule %s, the reminder never comes.", r.Rule)
		}
		r.Due = next
	}
	if !w.asked.IsZero() { // a reminder that was due since then comes at once
		now = w.asked
	}
	if err := p.config.check(&r, now); err != nil {
		return r, err
	}
	r.ID = identify(w.seed, &r)
	all, err := p.of(ctx, c.Person)
	if err != nil {
		return r, err
	}
	for _, known := range all {
		same := known.Place == r.Place && known.Text == r.Text && known.Rule == r.Rule &&
			known.Due.Sub(r.Due).Abs() < time.Minute
		if known.ID == r.ID || same {
			return known, nil
		}
	}
	if len(all) >= p.config.PerPerson {
		return r, core.Errorf(core.Forbidden, "%d reminders are set already; cancel one first.", len(all))
	}
	return r, p.keep(ctx, r)
}

func (c *Config) check(r *reminder, now time.Time) error {
	n := utf8.RuneCountInString(r.Text)
	switch {
	case n == 0:
		return core.Errorf(core.Invalid, "The reminder has no text.")
	case n > c.MaxText:
		return core.Errorf(core.Invalid, "The text has %d characters; at most %d are possible.", n, c.MaxText)
	case !r.Due.After(now):
		return core.Errorf(core.Invalid, "%s is past; it is %s now.", formatTime(r.Due, r.Veiled),
			formatTime(now.In(r.Due.Location()), r.Veiled))
	case r.Due.Sub(now) > c.MaxAhead:
		return core.Errorf(core.Invalid, "%s is too far ahead; at most %d days are possible.",
			formatTime(r.Due, r.Veiled), c.MaxAhead/(24*time.Hour))
	}
	return nil
}

// identify returns the id of a reminder. It is the same if the same call is made again.
func identify(seed string, r *reminder) string {
	sum := sha256.Sum256([]byte(seed + "\x00" + r.Place.String() + "\x00" + r.Author.ID + "\x00" + r.Text + "\x00" +
		r.Rule))
	if seed == "" {
		sum = sha256.Sum256(append(sum[:], r.Due.UTC().Format(time.RFC3339)...))
	}
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:5]))
}

// unreadable returns the error for users about a time that was not understood. It does not contain
// their words, because it is logged.
func unreadable(err error) error {
	switch {
	case errors.Is(err, spoken.ErrNever):
		return core.Errorf(core.Invalid, "There is no such day.")
	case errors.Is(err, spoken.ErrPast):
		return core.Errorf(core.Invalid, "That time is past.")
	case errors.Is(err, spoken.ErrPartly):
		return core.Errorf(core.Invalid, "I understand only a part of that time. Write it like “tomorrow at 9”,"+
			" “every monday at 9 until 31 january” or 2027-01-31T09:00.")
	}
	return core.Errorf(core.Invalid,
		"I find no time that I understand. Write it like “in 10 minutes”, “tomorrow at 9” or 2027-01-31T09:00.")
}

// Config is the table [plugins.reminders].
type Config struct {
	PerPerson int           `toml:"per_person" default:"50" min:"1" max:"10000" doc:"How many pending reminders one user may have."`
	MaxText   int           `toml:"max_text" default:"500" min:"10" max:"4000" doc:"The maximum length of a reminder, in characters."`
	MaxAhead  time.Duration `toml:"max_ahead" default:"43920h" min:"24h" max:"438000h" doc:"How far ahead a reminder may be, and the longest interval of a recurring one."`
	Late      time.Duration `toml:"late" default:"2m" min:"1s" max:"24h" doc:"A reminder that is delayed by this much or more says so."`
}

type reminder struct {
	ID      string      `json:"id"`
	Text    string      `json:"text"`
	Place   core.Path   `json:"place"`
	Private bool        `json:"private,omitempty"`
	Author  core.Author `json:"author"` // as when it was set
	Locale  string      `json:"locale,omitempty"`
	Zone    string      `json:"zone,omitempty"`   // the time zone of Start and Due; "": the bot's
	Veiled  bool        `json:"veiled,omitempty"` // the zone is not shown in Place
	Start   time.Time   `json:"start"`
	Rule    string      `json:"rule,omitempty"`
	Due     time.Time   `json:"due"`
	Told    int         `json:"told,omitempty"` // how often it was fired
	Set     time.Time   `json:"set"`

	person core.Path // the user under whose path it is stored
	below  bool      // it is shown above its place
}

// shown returns its text, if everybody where it is shown may read it: a thread may have fewer readers.
func (r *reminder) shown() string {
	if r.below {
		return "(set in a topic or thread of this place)"
	}
	return r.Text
}

func (r *reminder) pointer() pointer { return pointer{r.person, r.ID, r.Place} }

func byDue(a, b reminder) int { return cmp.Or(a.Due.Compare(b.Due), strings.Compare(a.ID, b.ID)) }

type pointer struct {
	Person core.Path `json:"person"`
	ID     string    `json:"id"`
	Place  core.Path `json:"place"`
}

// Prefixes of keys: of a reminder under its user's path, and of the pointer under its place.
const (
	keyReminder = "reminder/"
	keyHere     = "here/"
)

func (p pointer) hereKey() string { return keyHere + p.Person.String() + "/" + p.ID }

// CheckItem returns an error for an item of the plugin that is a reminder and cannot be read.
func CheckItem(item core.Item) error {
	if !strings.HasPrefix(item.Key, keyReminder) {
		return nil
	}
	return item.Decode(new(reminder))
}

// read decodes a reminder; its times are in its zone.
func (p *Plugin) read(item core.Item) (reminder, error) {
	r := reminder{person: item.Path}
	if err := item.Decode(&r); err != nil {
		return r, err
	}
	loc, ok := timezone.Load(r.Zone)
	if !ok {
		loc = p.host.Clock().Location()
	}
	r.Start, r.Due = r.Start.In(loc), r.Due.In(loc)
	return r, nil
}

func (p *Plugin) get(ctx context.Context, at pointer) (r reminder, version uint64, ok bool, err error) {
	item, ok, err := p.host.Items.Get(ctx, at.Person, keyReminder+at.ID)
	if err != nil || !ok {
		return r, 0, false, err
	}
	r, err = p.read(item)
	return r, item.Version, err == nil, err
}

func (p *Plugin) keep(ctx context.Context, r reminder) error {
	at := r.pointer()
	return p.schedule(ctx, r.Due, at, values.New(r.Place, at.hereKey(), at), values.New(r.person, keyReminder+r.ID, r))
}

func (p *Plugin) drop(ctx context.Context, at pointer, due time.Time) error {
	e := entryOf(due, at)
	err := p.host.Items.PutAll(ctx, values.New(at.Person, keyReminder+at.ID, nil),
		values.New(at.Place, at.hereKey(), nil), values.New(hourPath(e.hour()), e.key, nil))
	if err != nil {
		return fmt.Errorf("reminder %s of %s: %w", at.ID, at.Person, err)
	}
	return nil
}

// of lists the reminders of a user, or of all users for the zero Path. It leaves out those that cannot be read, and
// returns their errors.
func (p *Plugin) of(ctx context.Context, person core.Path) (list []reminder, err error) {
	items, err := p.host.Items.List(ctx, person)
	if err != nil {
		return nil, fmt.Errorf("reminders of %s: %w", person, err)
	}
	for _, item := range items {
		if !item.Path.IsPerson() || !strings.HasPrefix(item.Key, keyReminder) {
			continue
		}
		r, fault := p.read(item)
		if fault != nil {
			err = errors.Join(err, fault)
			continue
		}
		list = append(list, r)
	}
	return list, err
}

// here lists the reminders that the caller, or with all everybody, set in the place of the call or below it, such as in
// its topics, the next one first. Due is in the caller's time zone, unless one of the zones is veiled.
func (p *Plugin) here(ctx context.Context, c command.Call, all bool) ([]reminder, error) {
	z, err := p.zoneFor(ctx, c, "")
	if err != nil {
		return nil, err
	}
	items, err := p.host.Items.List(ctx, c.Path)
	if err != nil {
		return nil, fmt.Errorf("reminders in %s: %w", c.Path, err)
	}
	var list []reminder
	for _, item := range items {
		var at pointer
		if !strings.HasPrefix(item.Key, keyHere) || item.Decode(&at) != nil || !all && at.Person != c.Person {
			continue
		}
		r, _, ok, err := p.get(ctx, at)
		if err != nil {
			return nil, err
		}
		r.below = r.Place != c.Path
		if !ok || r.below && r.Private && !c.Private {
			continue
		}
		r.Veiled = r.Veiled || r.below
		if !z.veiled && !r.Veiled {
			r.Due = r.Due.In(z.Location)
		}
		list = append(list, r)
	}
	sorting.Sort(list, byDue)
	return list, nil
}

// pick returns the reminder here with that id, or the only one whose text contains
// those words. Moderators find everybody's.
func (p *Plugin) pick(ctx context.Context, c command.Call, called string) (reminder, error) {
	list, err := p.here(ctx, c, c.Author.Rank >= core.RankModerator)
	if err != nil {
		return reminder{}, err
	}
	called = strings.ToLower(strings.Trim(strings.TrimSpace(called), "`\""))
	var found []reminder
	for _, r := range list {
		if r.ID == called {
			return r, nil
		}
		if called != "" && strings.Contains(strings.ToLower(r.shown()), called) {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 0:
		return reminder{}, core.Errorf(core.Invalid, "There is no such reminder here.")
	case 1:
		return found[0], nil
	}
	return reminder{}, core.Errorf(core.Invalid, "There are %d such reminders here; give the id of one.", len(found))
}

func (p *Plugin) cancel(ctx context.Context, c command.Call, called string) (reminder, error) {
	r, err := p.pick(ctx, c, called)
	if err != nil {
		return r, err
	}
	return r, p.drop(ctx, r.pointer(), r.Due)
}

// Kept implements core.DataKeeper. All reminders of a user are under their path already.
func (p *Plugin) Kept(context.Context, core.Path) ([]json.RawMessage, error) { return nil, nil }

// Erase implements core.DataKeeper: it removes the pointers to the user's reminders.
func (p *Plugin) Erase(ctx context.Context, person core.Path) error {
	items, err := p.host.Items.List(ctx, core.Path{})
	if err != nil {
		return fmt.Errorf("reminders: %w", err)
	}
	var pointing []core.Item
	for _, item := range items {
		var at pointer
		if item.Path == person || item.Decode(&at) != nil || at.Person != person {
			continue
		}
		pointing = append(pointing, values.New(item.Path, item.Key, nil))
	}
	for some := range slices.Chunk(pointing, 1000) {
		if err := p.host.Items.PutAll(ctx, some...); err != nil {
			return fmt.Errorf("reminders: %w", err)
		}
	}
	return nil
}
