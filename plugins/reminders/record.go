package reminders

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/timezone"
)

// reminder is what is kept of one.
type reminder struct {
	ID      string      `json:"id"`
	Text    string      `json:"text"`
	Place   core.Path   `json:"place"`
	Private bool        `json:"private,omitempty"`
	Author  core.Author `json:"author"` // as they were then
	Locale  string      `json:"locale,omitempty"`
	Zone    string      `json:"zone,omitempty"`   // whose wall clock counts; "": the bot's
	Veiled  bool        `json:"veiled,omitempty"` // the zone is not shown there
	Start   time.Time   `json:"start"`
	Rule    string      `json:"rule,omitempty"`
	Due     time.Time   `json:"due"`
	Told    int         `json:"told,omitempty"` // how often it fell due
	Set     time.Time   `json:"set"`
}

// pointer names a reminder, and where it is pointed to from.
type pointer struct {
	Person core.Path `json:"person"`
	ID     string    `json:"id"`
	Place  core.Path `json:"place"`
}

// Keys of items: a reminder under its person, and the pointer under its place.
const (
	keyReminder = "reminder/"
	keyHere     = "here/"
)

func (p pointer) hereKey() string { return keyHere + p.Person.String() + "/" + p.ID }

// read decodes a reminder; its times are in its zone.
func (p *Plugin) read(item core.Item) (reminder, error) {
	var r reminder
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

// get finds the reminder that a pointer names.
func (p *Plugin) get(ctx context.Context, at pointer) (r reminder, version uint64, ok bool, err error) {
	item, ok, err := p.host.Items.Get(ctx, at.Person, keyReminder+at.ID)
	if err != nil || !ok {
		return r, 0, false, err
	}
	r, err = p.read(item)
	return r, item.Version, err == nil, err
}

// keep writes a reminder and what points to it.
func (p *Plugin) keep(ctx context.Context, person core.Path, r reminder) error {
	at := pointer{person, r.ID, r.Place}
	return p.schedule(ctx, r.Due, at,
		core.NewItem(r.Place, at.hereKey(), at),
		core.NewItem(person, keyReminder+r.ID, r))
}

// drop takes a reminder away, and what points to it.
func (p *Plugin) drop(ctx context.Context, at pointer, due time.Time) error {
	e := entryOf(due, at)
	err := p.host.Items.PutAll(ctx, core.NewItem(at.Person, keyReminder+at.ID, nil),
		core.NewItem(at.Place, at.hereKey(), nil), core.NewItem(hourPath(e.hour()), e.key, nil))
	if err != nil {
		return fmt.Errorf("reminder %s of %s: %w", at.ID, at.Person, err)
	}
	return nil
}

// of lists a person's reminders.
func (p *Plugin) of(ctx context.Context, person core.Path) ([]reminder, error) {
	items, err := p.host.Items.List(ctx, person)
	if err != nil {
		return nil, fmt.Errorf("reminders of %s: %w", person, err)
	}
	var list []reminder
	var faults []error
	for _, item := range items {
		if !strings.HasPrefix(item.Key, keyReminder) {
			continue
		}
		r, err := p.read(item)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		list = append(list, r)
	}
	return list, errors.Join(faults...)
}

// here lists what one person set in the place, or, for all, what everybody did, the next one
// first. What was set elsewhere is nobody's business here.
func (p *Plugin) here(ctx context.Context, a asker, all bool) ([]reminder, error) {
	items, err := p.host.Items.List(ctx, a.place)
	if err != nil {
		return nil, fmt.Errorf("reminders in %s: %w", a.place, err)
	}
	var list []reminder
	for _, item := range items {
		var at pointer
		if item.Path != a.place || !strings.HasPrefix(item.Key, keyHere) || item.Decode(&at) != nil ||
			!all && at.Person != a.person {
			continue
		}
		r, _, ok, err := p.get(ctx, at)
		if err != nil {
			return nil, err
		}
		if ok {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b reminder) int { return cmp.Or(a.Due.Compare(b.Due), strings.Compare(a.ID, b.ID)) })
	return list, nil
}

// pick finds the one reminder here that is called so: by its id, or by words of
// its text. Moderators find everybody's.
func (p *Plugin) pick(ctx context.Context, a asker, called string) (reminder, error) {
	list, err := p.here(ctx, a, a.author.Rank >= core.RankModerator)
	if err != nil {
		return reminder{}, err
	}
	called = strings.ToLower(strings.Trim(strings.TrimSpace(called), "`\""))
	var found []reminder
	for _, r := range list {
		if r.ID == called {
			return r, nil
		}
		if called != "" && strings.Contains(strings.ToLower(r.Text), called) {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 0:
		return reminder{}, core.Errorf(core.Invalid, "There is no such reminder here.")
	case 1:
		return found[0], nil
	}
	return reminder{}, core.Errorf(core.Invalid, "There are %d such reminders here; say which by its id.", len(found))
}

// cancel takes one away that pick found.
func (p *Plugin) cancel(ctx context.Context, a asker, called string) (reminder, error) {
	r, err := p.pick(ctx, a, called)
	if err != nil {
		return r, err
	}
	person, err := r.Place.Person(r.Author.ID)
	if err != nil {
		return r, fmt.Errorf("reminder %s: %w", r.ID, err)
	}
	return r, p.drop(ctx, pointer{person, r.ID, r.Place}, r.Due)
}

// Kept implements core.DataKeeper: everything that is kept about a user lies under their path.
func (p *Plugin) Kept(context.Context, core.Path) ([]json.RawMessage, error) { return nil, nil }

// Erase implements core.DataKeeper: it removes what points to the user's reminders.
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
		pointing = append(pointing, core.NewItem(item.Path, item.Key, nil))
	}
	for some := range slices.Chunk(pointing, 1000) {
		if err := p.host.Items.PutAll(ctx, some...); err != nil {
			return fmt.Errorf("reminders: %w", err)
		}
	}
	return nil
}
