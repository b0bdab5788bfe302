package knowledge

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/loop"
	"synthbot/core/sorting"
	"synthbot/core/values"
)

// State is the content of the plugin. It is only for admins, because texts may come from private places.
type State struct {
	Reading string    // progress of the present reading of the sources; "": none is in progress
	Synced  time.Time // when they were last read; zero: not since the start
	Sources []SourceState
	Entries []Entry // what users taught, the newest first
	Gaps    []Gap   // unanswered questions, the newest first
}

// SourceState is the state of a configured source.
type SourceState struct {
	Name                string
	Places              []core.Path // where it may be cited; empty: everywhere
	Documents, Passages int
	Faults              []string // documents that cannot be read, and why
}

// Editor is for admins who edit the knowledge on their page. Safe for concurrent use.
type Editor struct{ *Plugin }

// State returns the present state. It reads all entries and questions from the store.
func (p Editor) State(ctx context.Context) (s State, err error) {
	p.mu.Lock()
	s.Reading, s.Synced = p.reading, p.synced
	p.mu.Unlock()
	for i := range p.config.Sources {
		source, err := p.sourceState(ctx, &p.config.Sources[i])
		if err != nil {
			return s, err
		}
		s.Sources = append(s.Sources, source)
	}
	s.Entries, err = p.entries(ctx)
	if err != nil {
		return s, err
	}
	sorting.SortStable(s.Entries, func(a, b Entry) int { return b.Time.Compare(a.Time) })
	s.Gaps, err = escalation(p).open(ctx)
	return s, err
}

func (p Editor) sourceState(ctx context.Context, source *Source) (s SourceState, err error) {
	documents, err := p.host.Passages.Documents(ctx, source.Name)
	s = SourceState{Name: source.Name, Places: source.Places, Documents: len(documents)}
	for _, d := range documents {
		s.Passages += d.Count
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(p.logged)) {
		if name, ok := strings.CutPrefix(key, source.Name+"/"); ok {
			s.Faults = append(s.Faults, strings.TrimPrefix(name+": "+p.logged[key], ": "))
		}
	}
	return s, err
}

// setReading sets the progress of reading the sources; "" means that it has ended.
func (p *Plugin) setReading(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reading = line
	if line == "" {
		p.synced = p.host.Clock()
	}
}

// Reread makes Run read the sources again soon, including pages and feeds that are not due yet. It does not block.
func (p Editor) Reread() {
	p.mu.Lock()
	clear(p.read)
	p.mu.Unlock()
	loop.Notify(p.wake)
}

// Answer passes an admin's answer on to the user who asked a question in a place, and keeps it as an entry. An
// error of kind core.Invalid has a text for the admin.
func (p Editor) Answer(ctx context.Context, place core.Path, id, text string) error {
	g, err := p.openGap(ctx, place, id)
	if err != nil {
		return err
	}
	text, err = entryText(text)
	if err != nil {
		return err
	}
	group := place.Group() // it is visible there; in a private place, only in that
	private, err := p.isPrivate(ctx, place)
	if private {
		group = place
	}
	if err == nil {
		err = escalation(p).sendAnswer(ctx, &g, "An admin", text)
	}
	if err == nil {
		err = p.keep(ctx, Entry{
			ID: g.ID[:entryID], Text: text, Question: g.Question, Group: group, Time: p.host.Clock(), asker: g.Owner,
		}, place)
	}
	if err == nil {
		err = escalation(p).close(ctx, &g)
	}
	if err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}

// Dismiss drops a question that was asked in a place. An error of kind core.Invalid has a text for the admin.
func (p Editor) Dismiss(ctx context.Context, place core.Path, id string) error {
	g, err := p.openGap(ctx, place, id)
	if err != nil {
		return err
	}
	return escalation(p).close(ctx, &g)
}

func (p Editor) openGap(ctx context.Context, place core.Path, id string) (g Gap, err error) {
	g, ok, err := escalation(p).gap(ctx, id)
	if err == nil && (!ok || g.Place != place || !g.Answered.IsZero()) {
		err = core.Errorf(core.Invalid, "That question is no longer open.")
	}
	return g, err
}

// EditEntry changes the text of an entry that is visible in a group. The entry still belongs to the user whose
// words it repeated. An error of kind core.Invalid has a text for the admin.
func (p Editor) EditEntry(ctx context.Context, group core.Path, id, text string) error {
	text, err := entryText(text)
	if err != nil {
		return err
	}
	entries, err := p.entries(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(entries, func(e Entry) bool { return e.ID == id && e.Group == group })
	if i < 0 {
		return core.Errorf(core.Invalid, "That entry no longer exists.")
	}
	e := entries[i]
	e.Text, e.Time = text, p.host.Clock()
	err = values.Edit(ctx, p.host.Items, e.owner, entryPrefix+id, func(known *Entry) (bool, error) {
		if known.Time.IsZero() {
			return false, core.Errorf(core.Invalid, "That entry was taken back meanwhile.")
		}
		known.Text, known.Time = e.Text, e.Time
		return true, nil
	})
	if err != nil {
		return err
	}
	return p.index(ctx, e)
}

// entryText cleans the text of an entry. It returns an error for users if the text is empty or too long.
func entryText(text string) (string, error) {
	text = strings.TrimSpace(text)
	switch n := len([]rune(text)); {
	case n == 0:
		return "", core.Errorf(core.Invalid, "Write what to know.")
	case n > entryMax:
		return "", core.Errorf(core.Invalid, "That is too long; at most %d characters are possible.", entryMax)
	}
	return clean(text), nil
}
