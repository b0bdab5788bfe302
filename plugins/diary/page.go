package diary

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"synthbot/core"
)

// page is a day of a place's diary, as it is kept.
type page struct {
	Entries []entry `json:"entries"`
	Digest  *digest `json:"digest,omitempty"`

	day     string
	place   core.Path
	version uint64
}

// entry is what the bot wrote at one time. Of a page as it is read for others,
// Thought is not there: see view.
type entry struct {
	open
	// The name hides it from exports.
	Thought string `json:"private_thought,omitempty"`
	Former  string `json:"thought,omitempty"` // what it was kept as before
}

// open is what may be shown of an entry.
type open struct {
	ID       string    `json:"id"` // the step that wrote it: the same step writes once
	Time     time.Time `json:"time"`
	Summary  string    `json:"summary"`
	Feelings []string  `json:"feelings,omitempty"`
	Tags     []string  `json:"tags,omitempty"`
	By       core.Path `json:"by,omitzero"` // who caused the turn
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
	N    int       `json:"n"` // how many entries it is made of
	Time time.Time `json:"time"`
}

// view is a page as others may see it: it has no place for thoughts.
type view struct {
	Entries []open  `json:"entries"`
	Digest  *digest `json:"digest,omitempty"`

	day   string
	place core.Path
}

const dayLayout = "2006-01-02"

// dayKey is the key of a day's page.
func dayKey(day string) string { return "day/" + day }

// isDay returns the day of a page's key.
func isDay(key string) (day string, ok bool) {
	if len(key) != len(dayKey(dayLayout)) || key[:len("day/")] != "day/" {
		return "", false
	}
	day = key[len("day/"):]
	_, err := time.Parse(dayLayout, day)
	return day, err == nil
}

// today is the day in the bot's time zone.
func (p *Plugin) today() string { return p.host.Clock().Format(dayLayout) }

// view reads what may be shown of a day. It is empty if nothing was written.
func (p *Plugin) view(ctx context.Context, place core.Path, day string) (view, error) {
	v := view{day: day, place: place}
	item, ok, err := p.host.Items.Get(ctx, place, dayKey(day))
	if err == nil && ok {
		err = json.Unmarshal(item.Value, &v)
	}
	if err != nil {
		return view{}, fmt.Errorf("diary of %s, %s: %w", place, day, err)
	}
	return v, nil
}

// page reads all of a day: for writing it, and for digests.
func (p *Plugin) page(ctx context.Context, place core.Path, day string) (page, error) {
	d := page{day: day, place: place}
	item, ok, err := p.host.Items.Get(ctx, place, dayKey(day))
	if err == nil && ok {
		err = json.Unmarshal(item.Value, &d)
	}
	if err != nil {
		return page{}, fmt.Errorf("diary of %s, %s: %w", place, day, err)
	}
	for i := range d.Entries {
		e := &d.Entries[i]
		e.Thought, e.Former = cmp.Or(e.Thought, e.Former), ""
	}
	d.version = item.Version
	return d, nil
}

// put keeps a page; one that is empty is taken away.
func (p *Plugin) put(ctx context.Context, d *page) error {
	item := core.Item{Path: d.place, Key: dayKey(d.day), Version: d.version}
	if len(d.Entries) > 0 || d.Digest != nil {
		value, err := json.Marshal(d)
		if err != nil {
			return fmt.Errorf("diary: %w", err)
		}
		item.Value = value
	}
	if _, err := p.host.Items.Put(ctx, item); err != nil {
		return fmt.Errorf("diary of %s, %s: %w", d.place, d.day, err)
	}
	return nil
}

const tries = 5 // at a page that others change at the same time

// edit changes a page; change may be called more than once.
func (p *Plugin) edit(ctx context.Context, place core.Path, day string, change func(*page) error) error {
	for range tries {
		d, err := p.page(ctx, place, day)
		if err != nil {
			return err
		}
		if err := change(&d); err != nil {
			return err
		}
		if err := p.put(ctx, &d); !errors.Is(err, core.ErrVersion) {
			return err
		}
	}
	return core.Errorf(core.Temporary, "too many write into the diary at once")
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
	slices.Sort(days)
	return days, nil
}

// expire takes away the pages of a place that are older than is kept.
func (p *Plugin) expire(ctx context.Context, place core.Path) error {
	days, err := p.days(ctx, place)
	if err != nil {
		return err
	}
	oldest := p.host.Clock().AddDate(0, 0, -p.config.Keep).Format(dayLayout)
	for _, day := range days {
		if day >= oldest {
			break
		}
		if _, err := p.host.Items.Put(ctx,
			core.Item{Path: place, Key: dayKey(day), Version: core.AnyVersion}); err != nil {
			return fmt.Errorf("diary of %s, %s: %w", place, day, err)
		}
	}
	return nil
}
