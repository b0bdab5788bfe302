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

// page is a day of a place's diary, as it is kept.
type page struct {
	Entries []entry `json:"entries"`
	Digest  *digest `json:"digest,omitempty"`

	day   string
	place core.Path
}

// entry is what the bot wrote at one time. Of a page as it is read for others,
// Thought is not there: see view.
type entry struct {
	open
	// The name hides it from exports.
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

	day string
}

const dayLayout = "2006-01-02"

// dayKey is the key of a day's page.
func dayKey(day string) string { return "day/" + day }

// isDay returns the day of a page's key.
func isDay(key string) (day string, ok bool) {
	day, ok = strings.CutPrefix(key, "day/")
	_, err := time.Parse(dayLayout, day)
	return day, ok && err == nil
}

// today is the day in the bot's time zone.
func (p *Plugin) today() string { return p.host.Clock().Format(dayLayout) }

// view reads what may be shown of a day. It is empty if nothing was written.
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

// edit changes a page, and removes one that is empty then; change may be called more than
// once.
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
		if err := values.Put(ctx, p.host.Items, place, dayKey(day), nil); err != nil {
			return err
		}
	}
	return nil
}
