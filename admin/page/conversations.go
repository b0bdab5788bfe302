package page

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"synthbot/core"
	"synthbot/core/sorting"
)

const (
	maxPlaces  = 300
	maxEntries = 100
)

type placeRow struct {
	core.Head
	Private, Closed bool
}

func (p *Page) places(v *visit) error {
	var list []placeRow
	total := 0
	err := p.withPrivacy(v, func(view core.View, e *privacyFilter) error {
		heads, err := view.Places(core.Path{})
		sorting.SortStable(heads, func(a, b core.Head) int { return b.Time.Compare(a.Time) })
		total = len(heads)
		for _, h := range heads[:min(len(heads), maxPlaces)] {
			list = append(list, placeRow{h, e.isPrivate(h.Path), e.isClosed(h.Path)})
		}
		return err
	})
	if err != nil {
		return err
	}
	data := map[string]any{"Places": list, "Total": total, "More": total > len(list)}
	return p.show(v, "places", "Conversations", "/talk", data)
}

// formatDate returns a date and time in the bot's time zone; "" for the zero Time.
func (p *Page) formatDate(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(p.Clock().Location()).Format(time.DateTime)
}

type shownEntry struct {
	Time            time.Time
	Who, Text, Note string
	Self            bool
}

func (p *Page) talk(v *visit, place core.Path) error {
	var entries, former []core.Entry
	var private, closed bool
	err := p.withPrivacy(v, func(view core.View, e *privacyFilter) (err error) {
		private, closed = e.isPrivate(place), e.isClosed(place)
		if closed {
			return nil
		}
		entries, err = entriesBefore(view, place, v.URL.Query().Get("before"))
		if err == nil && len(entries) > 0 {
			former, err = entriesBelow(view, place, entries[0].Message.Seq)
		}
		return err
	})
	if err != nil {
		return err
	}
	var older uint64 // the entries before this number are on the next page; 0: there are none
	if len(former) > 0 {
		older = entries[0].Message.Seq
	}
	var lines []shownEntry
	for i := range entries {
		lines = append(lines, shownEntryOf(&entries[i]))
	}
	return p.show(v, "talk", "Conversation", "/talk", map[string]any{
		"Place": place, "Opening": core.TurnID{Path: place}, "Private": private,
		"Closed": closed, "Lines": lines, "Older": older, "Mutes": p.Bot.Knows("mute"),
	})
}

// entriesBefore returns the newest entries of a place; those before a number if it is not "".
func entriesBefore(view core.View, place core.Path, number string) ([]core.Entry, error) {
	if number == "" {
		return view.Last(place, maxEntries)
	}
	seq, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return nil, badRequest("There is no such part of the conversation.")
	}
	head, err := view.Head(place)
	if err != nil {
		return nil, err
	}
	return entriesBelow(view, place, min(seq, head.Last+1))
}

// entriesBelow returns the newest entries below a number. Where some were deleted, it looks back in growing steps.
func entriesBelow(view core.View, place core.Path, seq uint64) ([]core.Entry, error) {
	for width := uint64(maxEntries); ; width *= 2 {
		first := seq - min(seq, width+1)
		var list []core.Entry
		for at := first; ; at = list[len(list)-1].Message.Seq {
			next, err := view.After(place, at, maxEntries, nil)
			if err != nil {
				return nil, err
			}
			n := len(next)
			next = slices.DeleteFunc(next, func(e core.Entry) bool { return e.Message.Seq >= seq })
			list = append(list[max(len(list)-maxEntries, 0):], next...)
			if len(next) < n || n < maxEntries {
				break
			}
		}
		if len(list) > 0 || first == 0 {
			return list[max(len(list)-maxEntries, 0):], nil
		}
	}
}

func shownEntryOf(e *core.Entry) shownEntry {
	m := &e.Message
	l := shownEntry{Time: m.Time, Who: cmp.Or(m.Author.Name, m.Author.ID), Text: m.Transcript(), Self: e.Self}
	switch {
	case e.Deleted:
		l.Text, l.Note = "", "deleted"
	case e.Kind != core.KindMessage:
		l.Note = string(e.Kind)
	case e.Rev > 0:
		l.Note = "edited"
	case len(m.Attachments) > 0:
		l.Note = "with attachments"
	}
	return l
}
