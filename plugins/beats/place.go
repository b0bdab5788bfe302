package beats

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"synthbot/core"
	"synthbot/core/sorting"
)

type place struct {
	path core.Path
	wants
	last time.Time // of its latest entry
}

// candidates lists the places in a time zone that want a beat, the most recently active first.
func (p *Plugin) candidates(ctx context.Context, b *beat, zone *time.Location, all map[core.Path]wants) ([]place,
	error) {
	var list []place
	for path, w := range all {
		if w.On && b.covers(path) && !b.silent() {
			list = append(list, place{path: path, wants: w})
		}
	}
	err := p.host.Reader.View(ctx, func(v core.View) error {
		for i := range list {
			head, err := v.Head(list[i].path)
			if err != nil {
				return err
			}
			list[i].last = head.Time
		}
		more, err := b.unsaid(v, all)
		list = append(list, more...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("beats: %w", err)
	}
	list = slices.DeleteFunc(list, func(at place) bool { return p.zone(at.wants).String() != zone.String() })
	sorting.Sort(list, func(x, y place) int {
		return cmp.Or(y.last.Compare(x.last), cmp.Compare(x.path.String(), y.path.String()))
	})
	return slices.CompactFunc(list, func(x, y place) bool { return x.path == y.path }), nil
}

// unsaid lists further places for a beat, which need no /beats on: those that the configuration lists; and, for a
// silent beat, all places below those, or all places if it lists none.
func (b *beat) unsaid(v core.View, all map[core.Path]wants) ([]place, error) {
	var list []place
	roots := b.Places
	if b.silent() && len(roots) == 0 {
		roots = []core.Path{{}}
	}
	for _, root := range roots {
		heads, err := v.Places(root)
		if err != nil {
			return nil, err
		}
		for _, h := range heads {
			w, said := all[h.Path]
			if h.Path == root && !said || b.silent() {
				w.On = true
				list = append(list, place{path: h.Path, wants: w, last: h.Time})
			}
		}
	}
	return list, nil
}

func (b *beat) covers(path core.Path) bool {
	return len(b.Places) == 0 || slices.ContainsFunc(b.Places, path.Within)
}

// scene is what the recent entries of a place tell.
type scene struct {
	talked  time.Time // when a user last wrote; zero: not lately
	who     string    // the id of the user of the latest entry
	gone    bool      // the bot was removed or blocked
	private bool
	locale  string
	scopes  []core.Path
}

const lookBack = 60

func (p *Plugin) look(ctx context.Context, at core.Path) (s scene, err error) {
	err = p.host.Reader.View(ctx, func(v core.View) error {
		entries, err := v.Last(at, lookBack)
		for i := range entries {
			s.see(&entries[i])
		}
		return err
	})
	if err != nil {
		return s, fmt.Errorf("beats: %w", err)
	}
	return s, nil
}

// see adds an entry. Entries must be added in order.
func (s *scene) see(e *core.Entry) {
	m := &e.Message
	if !e.Self && !m.Author.Bot && m.Author.ID != "" && !e.Deleted {
		s.who = m.Author.ID
	}
	switch {
	case e.Kind == core.KindMembership:
		s.gone = e.Data == "removed" || e.Data == "blocked"
	case e.Self || m.Author.Bot || !e.Spoken():
	default:
		s.talked, s.gone = m.SentAt(), false
		s.private, s.locale, s.scopes = m.Private, m.Locale, m.Scopes
	}
}
