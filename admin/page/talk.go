package page

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"synthbot/core"
)

// Bounds of what is listed.
const (
	mostPlaces  = 300
	mostEntries = 100
	maxMemory   = 16 << 10 // bytes
)

// spot is a place in a list.
type spot struct {
	Place           string
	Entries         uint64
	Last            string
	Private, Closed bool
}

// places lists where the bot talks, the latest first.
func (p *Page) places(v *visit) error {
	var list []spot
	total := 0
	err := p.looking(v, func(view core.View, e *eyes) error {
		heads, err := view.Places(core.Path{})
		if err != nil {
			return err
		}
		slices.SortStableFunc(heads, func(a, b core.Head) int { return b.Time.Compare(a.Time) })
		total = len(heads)
		for _, h := range heads[:min(len(heads), mostPlaces)] {
			list = append(list, spot{h.Path.String(), h.Count, p.date(h.Time), e.private(h.Path), e.closed(h.Path)})
		}
		return nil
	})
	if err != nil {
		return err
	}
	return p.show(v, "places", "Conversations", "/talk", map[string]any{"Places": list, "Total": total, "More": total > len(list)})
}

// date is a time in the bot's zone.
func (p *Page) date(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(p.Clock().Location()).Format(time.DateTime)
}

// said is one line of a conversation.
type said struct {
	At, Who, Text, Note string
	Self                bool
}

// talk shows what was said in a place.
func (p *Page) talk(v *visit) error {
	place, err := v.place(v.URL.Query().Get("place"))
	if err != nil {
		return err
	}
	var entries, former []core.Entry
	var private, closed bool
	err = p.looking(v, func(view core.View, e *eyes) (err error) {
		if private, closed = e.private(place), e.closed(place); closed {
			return nil
		}
		if entries, err = shownOf(view, place, v.URL.Query().Get("before")); err == nil && len(entries) > 0 {
			former, err = before(view, place, entries[0].Message.Seq)
		}
		return err
	})
	if err != nil {
		return err
	}
	var older uint64 // where there are older ones, what they stand before
	if len(former) > 0 {
		older = entries[0].Message.Seq
	}
	var lines []said
	for i := range entries {
		lines = append(lines, p.line(&entries[i]))
	}
	return p.show(v, "talk", "Conversation", "/talk", map[string]any{
		"Place": place.String(), "Private": private, "Closed": closed, "Lines": lines, "Older": older,
	})
}

// shownOf are the newest entries of a place, or the newest before a number.
func shownOf(view core.View, place core.Path, number string) ([]core.Entry, error) {
	if number == "" {
		return view.Last(place, mostEntries)
	}
	seq, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return nil, wrong("That names no part of a conversation.")
	}
	head, err := view.Head(place)
	if err != nil {
		return nil, err
	}
	return before(view, place, min(seq, head.Last+1))
}

// after is what of a core.View it takes to go back.
type after interface {
	After(place core.Path, seq uint64, max int) ([]core.Entry, error)
}

// before returns the newest entries before a number. Where some were taken away,
// it looks further back, in ever wider steps.
func before(view after, place core.Path, seq uint64) ([]core.Entry, error) {
	for width := uint64(mostEntries); ; width *= 2 {
		first := seq - min(seq, width+1)
		var list []core.Entry
		for at := first; ; at = list[len(list)-1].Message.Seq {
			next, err := view.After(place, at, mostEntries)
			if err != nil {
				return nil, err
			}
			n := len(next)
			next = slices.DeleteFunc(next, func(e core.Entry) bool { return e.Message.Seq >= seq })
			list = append(list[max(len(list)-mostEntries, 0):], next...)
			if len(next) < n || n < mostEntries {
				break
			}
		}
		if len(list) > 0 || first == 0 {
			return list[max(len(list)-mostEntries, 0):], nil
		}
	}
}

func (p *Page) line(e *core.Entry) said {
	m := &e.Message
	l := said{At: p.date(m.Time), Who: m.Author.Name, Text: m.Transcript(), Self: e.Self}
	if l.Who == "" {
		l.Who = m.Author.ID
	}
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

// remembered is a memory for reading. What was said in private is not shown.
type remembered struct {
	core.Fact
	At, Place, Speaker string
	Hidden             bool
}

// memories lists what the bot knows, the newest first.
func (p *Page) memories(v *visit) error {
	q := v.URL.Query()
	var at core.Path
	if text := q.Get("place"); text != "" {
		var err error
		if at, err = v.place(text); err != nil {
			return err
		}
	}
	if p.Listing == nil {
		return p.found(v, nil, found{Note: "Nothing is kept here: there is no database."})
	}
	l := Listing{Before: q.Get("before"), N: 50}
	if at.IsPerson() {
		l.About = at
	} else {
		l.Below = at
	}
	facts, next, err := p.Listing(v.Context(), l)
	if err != nil {
		return wrong("There is no such page of memories.")
	}
	return p.found(v, facts, found{Next: next, At: at.String()})
}

// found is a list of memories.
type found struct {
	Facts          []remembered
	Next, At, Note string
	Words          string // that were looked for
}

func (p *Page) found(v *visit, facts []core.Fact, f found) error {
	err := p.looking(v, func(_ core.View, e *eyes) error {
		for i := range facts {
			f.Facts = append(f.Facts, p.remembered(e, facts[i]))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return p.show(v, "memories", "Memories", "/memories", f)
}

func (p *Page) remembered(e *eyes, f core.Fact) remembered {
	r := remembered{Fact: f, At: p.date(f.Time), Place: f.Origin.String(), Hidden: e.closed(f.Origin)}
	if r.Hidden {
		r.Fact = core.Fact{ID: f.ID, Origin: f.Origin}
	}
	return r
}

// search keeps the words to be found, which stand in the form and in no address,
// and sends the browser on: it could not come back to what a form has led to.
func (p *Page) search(v *visit) error {
	v.session.setWords(v.PostFormValue("words"))
	return v.to("/memories/found")
}

// foundOnes lists the memories that the session's words find.
func (p *Page) foundOnes(v *visit) error {
	words := v.session.sought()
	if words == "" {
		return v.to("/memories")
	}
	see, err := p.visible(v)
	if err != nil {
		return err
	}
	answers, err := p.Facts.Recall(v.Context(), core.FactQuery{See: see, Text: words, N: 50})
	if err != nil {
		return err
	}
	facts := make([]core.Fact, len(answers))
	for i := range answers {
		facts[i] = answers[i].Fact
	}
	return p.found(v, facts, found{Words: words, Note: "What was said in private is not searched, but where it is open."})
}

// visible are the latest places that are not closed.
func (p *Page) visible(v *visit) (see []core.Path, err error) {
	err = p.looking(v, func(view core.View, e *eyes) error {
		heads, err := view.Places(core.Path{})
		slices.SortStableFunc(heads, func(a, b core.Head) int { return b.Time.Compare(a.Time) })
		for _, h := range heads {
			if len(see) < mostPlaces && !e.closed(h.Path) {
				see = append(see, h.Path)
			}
		}
		return err
	})
	return see, err
}

// factOf finds the memory of a form or an address by its id and origin; it is
// core.ErrUnknown that it is not there, or closed.
func (p *Page) factOf(v *visit, id, origin string) (core.Fact, error) {
	var at core.Path
	if err := at.UnmarshalText([]byte(origin)); err != nil || p.Listing == nil {
		return core.Fact{}, wrong("That names no memory.")
	}
	closed := false
	if err := p.looking(v, func(_ core.View, e *eyes) error { closed = e.closed(at); return nil }); err != nil {
		return core.Fact{}, err
	}
	if closed {
		return core.Fact{}, told{403, "This was said in private. Open the conversation first."}
	}
	return p.byID(v.Context(), at, id)
}

func (p *Page) byID(ctx context.Context, at core.Path, id string) (core.Fact, error) {
	for l := (Listing{Below: at, N: 500}); ; {
		facts, next, err := p.Listing(ctx, l)
		if err != nil {
			return core.Fact{}, err
		}
		for i := range facts {
			if facts[i].ID == id && facts[i].Origin == at {
				return facts[i], nil
			}
		}
		if next == "" {
			return core.Fact{}, core.ErrUnknown
		}
		l.Before = next
	}
}

func (p *Page) memory(v *visit) error {
	q := v.URL.Query()
	f, err := p.factOf(v, q.Get("id"), q.Get("place"))
	if err != nil {
		return err
	}
	return p.show(v, "memory", "Memory", "/memories", remembered{Fact: f, At: p.date(f.Time), Place: f.Origin.String(), Speaker: f.By.String()})
}

// saveMemory changes what a memory says; what it said before is kept, and whose
// it is, so that it goes with him when he is forgotten.
func (p *Page) saveMemory(v *visit) error {
	ctx := core.WithEpoch(v.Context(), p.Facts.Epoch())
	f, err := p.factOf(v, v.PostFormValue("id"), v.PostFormValue("place"))
	if err != nil {
		return err
	}
	f.Text, f.Time = strings.TrimSpace(lines(v.PostFormValue("text"))), v.now
	switch {
	case f.Text == "":
		return wrong("A memory says something; forget it if it should not be there.")
	case len(f.Text) > maxMemory:
		return wrong("That is too long for a memory: go back, and make it shorter.")
	}
	if _, err := p.Facts.SaveFact(ctx, f); err != nil {
		return err
	}
	p.Log.Info("memory changed by an admin", "id", f.ID, "session", v.session.id)
	return v.to("/memories/one", "id", f.ID, "place", f.Origin.String())
}

// dropMemory forgets one.
func (p *Page) dropMemory(v *visit) error {
	f, err := p.factOf(v, v.PostFormValue("id"), v.PostFormValue("place"))
	if err != nil {
		return err
	}
	if err := p.Facts.DropFact(v.Context(), f.ID, f.Origin); err != nil {
		return err
	}
	p.Log.Info("memory forgotten by an admin", "id", f.ID, "session", v.session.id)
	return v.to("/memories")
}
