package reminders

import (
	"context"
	"errors"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/watch"
)

// Observe implements watch.Observer. It remembers the reminders that their places refused, such as deleted topics.
func (p *Plugin) Observe(end watch.TurnEnd) {
	isRefused := func(s watch.Step) bool {
		kind := s.Kind
		return s.Progress != core.ProgressDone && (kind == core.Forbidden || kind == core.Broken)
	}
	if end.Answered || end.Trace == nil || !slices.ContainsFunc(end.Trace.Steps, isRefused) {
		return
	}
	for _, id := range end.Messages {
		if strings.HasPrefix(id, eventPrefix) {
			p.agenda.refuse(refused{end, id}, 0)
		}
	}
}

// refused is a reminder that its place refused.
type refused struct {
	end watch.TurnEnd
	id  string // of its event
}

// tellRefused tells the authors of refused reminders in private. If that fails, the place above learns that there was
// a reminder, but not its text: others may read there. It returns those that must be tried again.
func tellRefused(ctx context.Context, h *core.Host, list []refused) (again []refused) {
	for _, r := range list {
		if r.end.Stale != nil && r.end.Stale() { // somebody was forgotten
			continue
		}
		at := r.end.Turn.Path
		read := func(v core.View) (core.Entry, error) {
			e, _, err := v.Entry(at, r.id)
			return e, err
		}
		e, err := core.Read(ctx, h.Reader, read)
		if err == nil && e.Message.Text == "" {
			continue
		}
		if err == nil {
			err = tellElsewhere(ctx, h.Messenger, &e.Message)
		}
		if errors.Is(err, core.ErrAway) || ctx.Err() != nil {
			again = append(again, r)
		} else if err != nil {
			h.Log.Error("reminder left out", "path", at, "err", err)
		}
	}
	return again
}

func tellElsewhere(ctx context.Context, to core.Messenger, m *core.Message) error {
	person, err := m.Path.Person(m.Author.ID)
	if err != nil {
		return err
	}
	err = to.Tell(ctx, person, "⏰ "+m.Text+
		"\n\nI can no longer write in the place where you set this reminder.")
	above := m.Path.Parent()
	if err == nil || errors.Is(err, core.ErrAway) || m.Private || above.Parent().IsZero() {
		return err
	}
	return to.Tell(ctx, above, "⏰ A reminder of "+m.Author.Name+
		" was due in a topic or thread here in which I can no longer write.")
}
