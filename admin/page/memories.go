package page

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/epochs"
	"synthbot/core/sorting"
)

const (
	maxMemory = 16 << 10 // bytes of a memory
	maxOthers = 30       // memories that are offered for a merge
)

type memoryPages struct{ *Page }

// memoryRow is a memory in the list. A memory of a closed place is hidden.
type memoryRow struct {
	core.Fact
	Topics []string // its topic and its tags
	Hidden bool
}

func (p memoryPages) memories(v *visit, at core.Path) error {
	l := core.FactPage{Before: v.FormValue("before"), N: 50}
	if at.IsPerson() {
		l.About = at
	} else {
		l.Below = at
	}
	facts, next, err := p.Bot.Listing(v.Context(), l)
	if err != nil {
		return badRequest("This page of memories is no longer available.")
	}
	return p.showMemories(v, facts, memoryList{Next: next, At: at})
}

type memoryList struct {
	Facts      []memoryRow
	Next, Note string
	Words, Tag string    // of the search
	At         core.Path // the place or user of all listed memories; zero: of any
}

func (p memoryPages) showMemories(v *visit, facts []core.Fact, f memoryList) error {
	err := p.withPrivacy(v, func(_ core.View, e *privacyFilter) error {
		for i := range facts {
			r := memoryRow{Fact: facts[i]}
			if e.isClosed(r.Origin) {
				r.Hidden, r.Fact = true, core.Fact{ID: r.ID, Origin: r.Origin}
			}
			if r.Topic != "" {
				r.Topics = []string{r.Topic}
			}
			r.Topics = union(r.Topics, r.Tags)
			f.Facts = append(f.Facts, r)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return p.show(v, "memories", "Memories", "/memories", f)
}

// search keeps the words in the session and redirects, so that no URL has them and the browser can go back.
func (p memoryPages) search(v *visit) error {
	words, tag := v.PostFormValue("words"), v.PostFormValue("tag")
	v.session.locked(func() { v.session.words, v.session.tag = words, tag })
	return v.redirect("/memories/found")
}

func (p memoryPages) searchResults(v *visit) error {
	var words, tag string
	v.session.locked(func() { words, tag = v.session.words, v.session.tag })
	if words == "" && tag == "" {
		return v.redirect("/memories")
	}
	see, err := p.visible(v)
	if err != nil {
		return err
	}
	q := core.FactQuery{See: see, Text: words, N: 50}
	if tag != "" {
		q.Tags = []string{tag}
	}
	facts, err := p.Facts.Recall(v.Context(), q)
	if err != nil {
		return err
	}
	const note = "Private conversations are not searched, except open ones."
	return p.showMemories(v, facts, memoryList{Words: words, Tag: tag, Note: note})
}

// visible returns the latest places that are not closed, at most maxPlaces.
func (p memoryPages) visible(v *visit) (see []core.Path, err error) {
	err = p.withPrivacy(v, func(view core.View, e *privacyFilter) error {
		heads, err := view.Places(core.Path{})
		sorting.SortStable(heads, func(a, b core.Head) int { return b.Time.Compare(a.Time) })
		for _, h := range heads {
			if len(see) < maxPlaces && !e.isClosed(h.Path) {
				see = append(see, h.Path)
			}
		}
		return err
	})
	return see, err
}

// withFact calls h with the memory of a visit, whose origin must not be closed, and with a context of the epoch before
// the memory was read.
func (p memoryPages) withFact(h func(ctx context.Context, v *visit, f core.Fact) error) handler {
	return func(v *visit) error {
		ctx := epochs.With(v.Context(), p.Facts.Epoch())
		var at core.Path
		if err := at.UnmarshalText([]byte(v.FormValue("place"))); err != nil {
			return badRequest("There is no such memory.")
		}
		if err := p.mustBeOpen(v, at); err != nil {
			return err
		}
		for l := (core.FactPage{Below: at, N: 500}); ; {
			facts, next, err := p.Bot.Listing(ctx, l)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(facts, func(f core.Fact) bool { return f.ID == v.FormValue("id") && f.Origin == at })
			switch {
			case i >= 0:
				return h(ctx, v, facts[i])
			case next == "":
				return core.ErrUnknown
			}
			l.Before = next
		}
	}
}

func (p memoryPages) memory(_ context.Context, v *visit, f core.Fact) error {
	return p.edit(v, &f, f.Text, "")
}

// edit shows the form of a memory. text may differ from the saved one; then fault says why it was not saved.
func (p memoryPages) edit(v *visit, f *core.Fact, text, fault string) error {
	others, err := p.mergeable(v.Context(), f)
	if err != nil {
		return err
	}
	data := map[string]any{"One": f, "Others": others, "Text": text, "Fault": fault}
	return p.show(v, "memory", "Memory", "/memories", data)
}

// mergeable returns the newest memories that can be merged into one: those from the same place and user, so that
// they are forgotten together.
func (p memoryPages) mergeable(ctx context.Context, f *core.Fact) (others []core.Fact, err error) {
	facts, _, err := p.Bot.Listing(ctx, core.FactPage{Below: f.Origin, N: 500})
	for i := range facts {
		o := &facts[i]
		if o.ID != f.ID && o.Origin == f.Origin && o.By == f.By && len(others) < maxOthers {
			others = append(others, *o)
		}
	}
	return others, err
}

// mergeMemory appends another memory to one, which keeps its former text, and deletes the other.
func (p memoryPages) mergeMemory(ctx context.Context, v *visit, f core.Fact) error {
	others, err := p.mergeable(ctx, &f)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(others, func(o core.Fact) bool { return o.ID == v.PostFormValue("other") })
	if i < 0 {
		return badRequest("That memory is no longer there, or was said by somebody else.")
	}
	o := &others[i]
	f.Text, f.Time = f.Text+"\n"+o.Text, v.now
	if len(f.Text) > maxMemory {
		v.note("Not merged: together they are too long for a memory.")
		return v.redirect("/memories/one", "id", f.ID, "place", f.Origin.String())
	}
	f.Topic, f.Tags, f.About = cmp.Or(f.Topic, o.Topic), union(f.Tags, o.Tags), union(f.About, o.About)
	f.Importance = max(f.Importance, o.Importance)
	if _, err := p.Facts.SaveFact(ctx, f); err != nil {
		return err
	}
	if err := p.Facts.DropFact(ctx, o.ID, o.Origin); err != nil {
		return err
	}
	p.Log.Info("memories merged by an admin", "id", f.ID, "session", v.session.id)
	return v.redirect("/memories/one", "id", f.ID, "place", f.Origin.String())
}

func union[T comparable](a, b []T) []T {
	all := slices.Clone(a)
	for _, value := range b {
		if !slices.Contains(all, value) {
			all = append(all, value)
		}
	}
	return all
}

// saveMemory changes a memory's text. It keeps the former text, and its user, with whose data it is deleted.
func (p memoryPages) saveMemory(ctx context.Context, v *visit, f core.Fact) error {
	text := strings.TrimSpace(normalizeLines(v.PostFormValue("text")))
	switch {
	case text == "":
		return p.edit(v, &f, text, "A memory needs a text. To delete it, use Forget it.")
	case len(text) > maxMemory:
		return p.edit(v, &f, text, "That is too long for a memory: make it shorter.")
	}
	f.Text, f.Time = text, v.now
	if _, err := p.Facts.SaveFact(ctx, f); err != nil {
		return err
	}
	p.Log.Info("memory changed by an admin", "id", f.ID, "session", v.session.id)
	return v.redirect("/memories/one", "id", f.ID, "place", f.Origin.String())
}

func (p memoryPages) dropMemory(ctx context.Context, v *visit, f core.Fact) error {
	if err := p.Facts.DropFact(ctx, f.ID, f.Origin); err != nil {
		return err
	}
	p.Log.Info("memory forgotten by an admin", "id", f.ID, "session", v.session.id)
	return v.redirect("/memories")
}
