package diary

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/values"
)

// page is a day of a place's diary, as it is stored.
type page struct {
	Entries []entry `json:"entries"`
	Digest  *digest `json:"digest,omitempty"`

	day   string
	place core.Path
}

// entry is one entry of the diary. Others read it without Thought, see view.
type entry struct {
	open
	// Exports leave out this key.
	Thought string `json:"private_thought,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler. Older versions have another key for thoughts.
func (e *entry) UnmarshalJSON(data []byte) error {
	var kept struct {
		open
		Thought string `json:"private_thought"`
		Former  string `json:"thought"`
	}
	err := json.Unmarshal(data, &kept)
	*e = entry{kept.open, cmp.Or(kept.Thought, kept.Former)}
	return err
}

// open is the part of an entry that may be shown.
type open struct {
	ID       string    `json:"id"` // of the step that wrote it, which is repeated after a crash
	Time     time.Time `json:"time"`
	Summary  string    `json:"summary"`
	Feelings []string  `json:"feelings,omitempty"`
	Tags     []string  `json:"tags,omitempty"`
	By       core.Path `json:"by,omitzero"` // the author of the turn
	People   []someone `json:"people,omitempty"`
}

// someone is a person whom an entry is about.
type someone struct {
	Path core.Path `json:"path"`
	Name string    `json:"name"`
	Tag  string    `json:"tag,omitempty"`
}

// digest is a day in a few sentences.
type digest struct {
	Text string    `json:"text"`
	Mood string    `json:"mood,omitempty"`
	N    int       `json:"n"` // how many entries it covers, from the first
	Time time.Time `json:"time"`
}

// view is a page as others may see it, without thoughts.
type view struct {
	Entries []open  `json:"entries"`
	Digest  *digest `json:"digest,omitempty"`

	day string
}

func dayKey(day string) string { return "day/" + day }

func isDay(key string) (day string, ok bool) {
	day, ok = strings.CutPrefix(key, "day/")
	_, err := time.Parse(time.DateOnly, day)
	return day, ok && err == nil
}

func (p *Plugin) today() string { return p.host.Clock().Format(time.DateOnly) }

// view reads the part of a day that may be shown. It is empty if there is no page.
func (p *Plugin) view(ctx context.Context, place core.Path, day string) (view, error) {
	v, _, err := values.Get[view](ctx, p.host.Items, place, dayKey(day))
	v.day = day
	return v, err
}

// page reads all of a day, for digests.
func (p *Plugin) page(ctx context.Context, place core.Path, day string) (page, error) {
	d, _, err := values.Get[page](ctx, p.host.Items, place, dayKey(day))
	d.day, d.place = day, place
	return d, err
}

// edit changes a page, and removes it if it is empty afterwards. change may be called more than once.
func (p *Plugin) edit(ctx context.Context, place core.Path, day string, change func(*page) error) error {
	return values.Edit(ctx, p.host.Items, place, dayKey(day), func(d *page) (keep bool, err error) {
		err = change(d)
		return len(d.Entries) > 0 || d.Digest != nil, err
	})
}

// days lists the days of a place that have a page, oldest first.
func (p *Plugin) days(ctx context.Context, place core.Path) ([]string, error) {
	items, err := p.host.Items.List(ctx, place)
	if err != nil {
		return nil, fmt.Errorf("diary of %s: %w", place, err)
	}
	var days []string
	for _, item := range items {
		if day, ok := isDay(item.Key); ok && item.Path == place {
			days = append(days, day)
		}
	}
	return days, nil
}

func (p *Plugin) expire(ctx context.Context, place core.Path) error {
	days, err := p.days(ctx, place)
	if err != nil {
		return err
	}
	oldest := p.host.Clock().AddDate(0, 0, -p.config.Keep).Format(time.DateOnly)
	for _, day := range days {
		if day >= oldest {
			break
		}
		if err := values.Put(ctx, p.host.Items, place, dayKey(day), nil); err != nil {
			return err
		}
	}
	return nil
}

// shown is an entry as a user whom it concerns sees it.
type shown struct {
	Place core.Path `json:"place"`
	Day   string    `json:"day"`
	open
}

// Kept implements core.DataKeeper: it returns the entries that concern a user, without
// private thoughts and the paths of other users.
func (p *Plugin) Kept(ctx context.Context, person core.Path) ([]json.RawMessage, error) {
	items, err := p.pages(ctx)
	if err != nil {
		return nil, err
	}
	var kept []json.RawMessage
	for _, item := range items {
		var v view
		if err := item.Decode(&v); err != nil {
			return nil, err
		}
		day, _ := isDay(item.Key)
		for _, e := range v.Entries {
			if !e.concerns(person) {
				continue
			}
			e.By, e.People = core.Path{}, nil
			kept = append(kept, core.JSON(shown{item.Path, day, e}))
		}
	}
	return kept, nil
}

func (p *Plugin) pages(ctx context.Context) ([]core.Item, error) {
	items, err := p.host.Items.List(ctx, core.Path{})
	if err != nil {
		return nil, fmt.Errorf("diary: %w", err)
	}
	return slices.DeleteFunc(items, func(i core.Item) bool { _, ok := isDay(i.Key); return !ok }), nil
}

// concerns reports whether a user caused the entry, or is named in it.
func (e *open) concerns(person core.Path) bool {
	return e.By == person || slices.ContainsFunc(e.People, func(s someone) bool { return s.Path == person })
}

// Erase implements core.DataKeeper. It deletes entries about the user alone, removes their name
// from the others, and deletes the digests of these days.
func (p *Plugin) Erase(ctx context.Context, person core.Path) error {
	items, err := p.pages(ctx)
	if err != nil {
		return err
	}
	for _, item := range items {
		var d page
		if err := item.Decode(&d); err != nil {
			return err
		}
		if !d.erase(person) {
			continue
		}
		day, _ := isDay(item.Key)
		if err := p.edit(ctx, item.Path, day, func(d *page) error { d.erase(person); return nil }); err != nil {
			return err
		}
	}
	return nil
}

// erase removes a user from a page, and reports whether they were in it.
func (d *page) erase(person core.Path) (found bool) {
	var names []someone // of the user
	d.Entries = slices.DeleteFunc(d.Entries, func(e entry) bool {
		if !e.concerns(person) {
			return false
		}
		found = true
		others := !e.By.IsZero() && e.By != person
		for _, s := range e.People {
			if s.Path == person {
				names = append(names, s)
			} else {
				others = true
			}
		}
		return !others
	})
	for i := range d.Entries {
		e := &d.Entries[i]
		if e.concerns(person) {
			e.without(person, names)
		}
	}
	if found {
		d.Digest = nil
	}
	return found
}

func (e *entry) without(person core.Path, names []someone) {
	e.People = slices.DeleteFunc(e.People, func(s someone) bool { return s.Path == person })
	if e.By == person {
		e.By = core.Path{}
	}
	for _, s := range names {
		e.Summary, e.Thought = s.without(e.Summary), s.without(e.Thought)
		for i := range e.Tags {
			e.Tags[i] = s.without(e.Tags[i])
		}
		for i := range e.Feelings {
			e.Feelings[i] = s.without(e.Feelings[i])
		}
	}
}
