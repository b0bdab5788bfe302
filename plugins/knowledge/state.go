package knowledge

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/sorting"
	"synthbot/core/values"
)

// State is what the plugin knows and does not know. It is for admins: texts may come from private places.
type State struct {
	Reading string    // how far the reading of the sources is that goes on; "": none does
	Synced  time.Time // when they were last read; zero: not since the bot was started
	Sources []SourceState
	Entries []Entry // what users taught, the newest first
	Gaps    []Gap   // questions that nothing answered, the newest first
}

// SourceState is what is known of a source.
type SourceState struct {
	Name                string
	Places              []core.Path // where it may be cited; empty: everywhere
	Documents, Passages int
	Faults              []string // what cannot be read, and why
}

// Entry is what somebody taught.
type Entry struct {
	ID, Text string
	Question string    // that it answers; "": not known
	Group    core.Path // where it is seen; zero: everywhere
	Teacher  core.Path // zero: an admin on their page, or somebody who was forgotten
	Time     time.Time
}

// Gap is a question that nothing answered.
type Gap struct {
	ID, Question string
	Place, Asker core.Path // Asker is zero if nobody alone asked
	Time         time.Time // when it was asked last
	Times        int       // how often
}

// Editor is what admins do with the knowledge besides chat commands. Safe for concurrent use.
type Editor struct{ *Plugin }

// State returns the state.
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
	lessons, err := p.lessons(ctx)
	if err != nil {
		return s, err
	}
	for _, l := range lessons {
		e := Entry{l.id, l.entry.Text, l.entry.question, l.entry.Group, l.teacher, l.entry.Time}
		s.Entries = append(s.Entries, e)
	}
	sorting.SortStable(s.Entries, func(a, b Entry) int { return b.Time.Compare(a.Time) })
	gaps, err := escalation(p).open(ctx)
	for _, g := range gaps {
		one := Gap{ID: g.id, Question: g.Question, Place: g.Place, Time: g.Time, Times: max(g.Times, 1)}
		if g.owner.IsPerson() {
			one.Asker = g.owner
		}
		s.Gaps = append(s.Gaps, one)
	}
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

// setReading notes how far reading the sources is; "" says that it is over.
func (p *Plugin) setReading(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reading = line
	if line == "" {
		p.synced = p.host.Clock()
	}
}

// Reread lets Run read the sources again soon, with pages and feeds that are not due yet. It returns at once.
func (p Editor) Reread() {
	p.mu.Lock()
	clear(p.read)
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default: // it is requested already
	}
}

// Answer passes an answer by an admin on to the person who asked a question in a place, and keeps it as an
// entry. Errors of the kind core.Invalid are for the admin.
func (p Editor) Answer(ctx context.Context, place core.Path, id, text string) error {
	g, err := p.openGap(ctx, place, id)
	if err != nil {
		return err
	}
	text, err = entryText(text)
	if err != nil {
		return err
	}
	group, err := p.audience(ctx, place)
	if err == nil {
		err = escalation(p).tellAsker(ctx, &g, "An admin", text)
	}
	if err == nil {
		e := entry{Text: text, Group: group, Time: p.host.Clock(), question: g.Question}
		err = p.keep(ctx, lesson{id: g.id[:entryID], entry: e, place: place, asker: g.owner})
	}
	if err == nil {
		err = escalation(p).close(ctx, &g)
	}
	if err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}

// audience is where an answer is seen that is given in a place: in its group, or there alone if it is private.
func (p Editor) audience(ctx context.Context, place core.Path) (group core.Path, err error) {
	group = groupOf(place)
	err = p.host.Reader.View(ctx, func(v core.View) error {
		head, err := v.Head(place)
		if head.Private {
			group = place
		}
		return err
	})
	return group, err
}

// Dismiss drops a question that was asked in a place. Errors of the kind core.Invalid are for the admin.
func (p Editor) Dismiss(ctx context.Context, place core.Path, id string) error {
	g, err := p.openGap(ctx, place, id)
	if err != nil {
		return err
	}
	return escalation(p).close(ctx, &g)
}

func (p Editor) openGap(ctx context.Context, place core.Path, id string) (g gap, err error) {
	g, ok, err := escalation(p).gap(ctx, id)
	if err == nil && (!ok || g.Place != place || !g.Answered.IsZero()) {
		err = core.Errorf(core.Invalid, "That question is not open any more.")
	}
	return g, err
}

// EditEntry changes what an entry says that is seen in a group. Whose words it repeats stays as it was. Errors of
// the kind core.Invalid are for the admin.
func (p Editor) EditEntry(ctx context.Context, group core.Path, id, text string) error {
	text, err := entryText(text)
	if err != nil {
		return err
	}
	lessons, err := p.lessons(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(lessons, func(l lesson) bool { return l.id == id && l.entry.Group == group })
	if i < 0 {
		return core.Errorf(core.Invalid, "That entry is not there any more.")
	}
	l := &lessons[i]
	l.entry.Text, l.entry.Time = text, p.host.Clock()
	err = values.Edit(ctx, p.host.Items, l.owner, entryPrefix+id, func(known *entry) (bool, error) {
		if known.Time.IsZero() {
			return false, core.Errorf(core.Invalid, "That entry was taken back meanwhile.")
		}
		known.Text, known.Time = l.entry.Text, l.entry.Time
		return true, nil
	})
	if err != nil {
		return err
	}
	return p.index(ctx, id, l.entry)
}

// entryText is what an entry says, if that is neither nothing nor too much.
func entryText(text string) (string, error) {
	text = strings.TrimSpace(text)
	switch n := len([]rune(text)); {
	case n == 0:
		return "", core.Errorf(core.Invalid, "Write what to know.")
	case n > entryMax:
		return "", core.Errorf(core.Invalid, "That is too long; %d characters are the most.", entryMax)
	}
	return clean(text), nil
}
