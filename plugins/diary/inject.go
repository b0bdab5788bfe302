package diary

import (
	"context"
	"encoding/json"
	"slices"
	"sort"
	"time"

	"synthbot/core"
	"synthbot/core/sorting"
	"synthbot/core/txt"
)

const (
	placesMax = 16  // places whose diary is read
	noteMax   = 200 // characters of one entry
)

// shownNote is a day or an entry as a prompt shows it.
type shownNote struct {
	At       string   `json:"at"`
	Note     string   `json:"note"`
	Feelings []string `json:"feelings,omitempty"`
	Mood     string   `json:"mood,omitempty"`

	time time.Time
}

// Inject implements core.Injector: it returns the notes of the last days, the newest first, as many as fit.
func (p *Plugin) Inject(ctx context.Context, s core.Scene) (json.RawMessage, error) {
	if p.config.Days == 0 {
		return nil, nil
	}
	var notes []shownNote
	places := origins(s.Path, s.Sees)
	for back, full := 0, false; back < p.config.Days && !full; back++ {
		day := p.host.Clock().AddDate(0, 0, -back).Format(time.DateOnly)
		for _, place := range places {
			v, err := p.view(ctx, place, day)
			if err != nil {
				return nil, err
			}
			notes = append(notes, p.notes(&v)...)
		}
		size := 0 // about
		for i := range notes {
			size += len(notes[i].Note)
		}
		full = size > p.config.Bytes
	}
	sorting.SortStable(notes, func(a, b shownNote) int { return b.time.Compare(a.time) })
	n := sort.Search(len(notes), func(i int) bool { return len(core.JSON(notes[:i+1])) > p.config.Bytes })
	if n == 0 {
		return nil, nil
	}
	return core.JSON(notes[:n]), nil
}

// origins returns the places whose entries may be shown: place, those that it sees, and those above them.
func origins(place core.Path, sees []core.Path) []core.Path {
	all := []core.Path{place}
	for _, see := range append([]core.Path{place}, sees...) {
		for ; !see.IsZero() && !see.Parent().IsZero() && len(all) < placesMax; see = see.Parent() {
			if !slices.Contains(all, see) {
				all = append(all, see)
			}
		}
	}
	return all
}

// notes returns the digest of a day and the entries that are not in it.
func (p *Plugin) notes(v *view) (notes []shownNote) {
	rest := v.Entries
	d := v.Digest
	if d != nil {
		text := txt.ClipLine(d.Text, 2*noteMax)
		notes = append(notes, shownNote{At: v.day, Note: text, Mood: d.Mood, time: d.Time})
		rest = rest[min(d.N, len(rest)):]
	}
	for _, e := range rest {
		at := e.Time.In(p.host.Clock().Location()).Format("2006-01-02 15:04")
		notes = append(notes,
			shownNote{At: at, Note: txt.ClipLine(e.Summary, noteMax), Feelings: e.Feelings, time: e.Time})
	}
	return notes
}
