package turn

import (
	"context"
	"fmt"
	"slices"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/plan"
)

// close ends the turn in one commit: what was sent joins the history, and the
// mark moves.
func (t *turn) close(ctx context.Context) error {
	return t.over(t.end(ctx, core.Done), func() {
		t.log.Info("turn over", "messages", len(t.messages), "sent", len(t.sent), "steps", len(t.finished),
			"attempt", t.attempt, "intent", t.intent, "confidence", t.confidence)
		t.spoke()
		t.finish(core.TurnEnd{Answered: len(t.sent) > 0, GoesOn: t.goes, Intent: t.intent, Confidence: t.confidence})
	})
}

// over tells of the turn's end if its last commit worked. If that reported a failure, the
// place tells when it finds that the turn waits no longer.
func (t *turn) over(err error, tell func()) error {
	if err != nil {
		t.untold = &untold{t, tell}
		return err
	}
	tell()
	return nil
}

// untold is the end of a turn of which nobody has been told.
type untold struct {
	turn *turn
	tell func()
}

// tellEnd tells of the end of the place's former turn, if next is another one, or nil.
func (p *place) tellEnd(with *setup, next *turn) {
	if u := p.untold; u != nil && (next == nil || next.id != u.turn.id) {
		u.turn.with = with
		u.tell()
	}
	p.untold = nil
}

// setAside gives the turn up, so that it blocks its place no longer.
func (t *turn) setAside(ctx context.Context) error {
	t.log.Error("turn set aside: it failed too often", "attempts", t.attempt-1, "messages", t.ids())
	return t.over(t.end(ctx, core.SetAside), func() { t.finish(core.TurnEnd{Aside: true}) })
}

// abandon ends a turn whose records can never be written, without writing any.
func (t *turn) abandon(ctx context.Context) error {
	t.log.Error("turn set aside: the store refuses its records", "messages", t.ids())
	b := t.ending()
	if err := t.store.Commit(ctx, &b); err != nil {
		return fmt.Errorf("%w: %w", core.ErrUnwritten, err)
	}
	t.finish(core.TurnEnd{Aside: true})
	return nil
}

// apologise is what is left when the turn failed too often: a word to the
// person, and an end.
func (t *turn) apologise(ctx context.Context) error {
	if err := t.execute(ctx, lastWordRound, t.say(lost)); err != nil {
		return err
	}
	return t.setAside(ctx)
}

// end writes the turn's last commit.
func (t *turn) end(ctx context.Context, p core.Progress) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.ending()
	b.Journal = append(t.later, t.opening(p))
	if p == core.Done {
		b.Closed = []core.TurnID{t.id}
	}
	if !t.about.IsZero() {
		b.States = map[core.Path]core.State{t.path: plan.Merge(t.parts.State, t.since(), t.clock(), stateAge, t.about)}
	}
	for _, s := range t.sent {
		b.Append = append(b.Append, t.own(s))
	}
	for _, o := range t.origins {
		b.Journal = append(b.Journal, o.later...)
		for _, s := range o.sent {
			b.Append = append(b.Append, t.own(s))
		}
	}
	if p == core.Done && t.goesOn(ctx) {
		next := t.sequel()
		b.Append, t.goes = append(b.Append, next), next.Message.ID
	}
	if err := t.store.Commit(ctx, &b); err != nil {
		return fmt.Errorf("%w: %w", core.ErrUnwritten, err)
	}
	return nil
}

// ending is the batch after which nothing waits for the turn.
func (t *turn) ending() core.Batch {
	mark := []core.TurnID{{Path: t.path, Seq: t.last}}
	if t.commands {
		return core.Batch{Settled: mark, Finishing: true}
	}
	return core.Batch{Answered: mark, Finishing: true}
}

// own is the entry of something that the bot said.
func (t *turn) own(s core.Sent) core.Entry {
	kind := core.KindMessage
	if t.command() {
		kind = core.KindCommand
	}
	name := t.parts.Persona.Name // as it was when the turn began: a command may change it meanwhile
	if s.Path != t.path || name == "" {
		name = t.with.Persona(s.Path, "").Name
	}
	var to *core.Quote
	if s.Path == t.path {
		to = t.replyTo()
	}
	return core.Entry{Self: true, Strangers: t.strangers, Event: core.Event{Kind: kind, Data: s.Data, Message: core.Message{
		Path: s.Path, ID: s.ID, Text: s.Text, Time: s.Time, Private: t.closed(s.Path), ReplyTo: to,
		Author: core.Author{Name: name, Bot: true, Rank: core.Bot},
	}}}
}

// closed reports whether what is said in the place is private.
func (t *turn) closed(place core.Path) bool {
	if place == t.path {
		return t.who.Private
	}
	shut := false
	err := t.store.View(context.Background(), func(v core.View) (err error) {
		shut, err = private(v, place)
		return err
	})
	return err != nil || shut
}

// goesOn reports whether the model asked to go on, and nobody waits meanwhile.
func (t *turn) goesOn(ctx context.Context) bool {
	asked := slices.ContainsFunc(t.finished, func(d action.Done) bool {
		return d.Action == action.Continue && d.Progress == core.Done
	})
	if !asked || t.who.Mute || len(t.who.Only) > 0 { // what goes on would be bound by nothing
		return false
	}
	free := false
	err := t.store.View(ctx, func(v core.View) error {
		waiting, err := v.Due(t.path, mergeMax+1)
		free = len(waiting) == 0 || waiting[len(waiting)-1].Message.Seq <= t.last
		return err
	})
	return err == nil && free
}

// sequel is the entry that makes the bot go on, with the rights of those who
// caused this turn.
func (t *turn) sequel() core.Entry {
	author := t.who.Authors[0]
	for _, a := range t.who.Authors[1:] {
		author = core.Author{Rank: min(author.Rank, a.Rank)}
	}
	n := t.who.Continued + 1
	return core.Entry{Due: true, Event: core.Event{Kind: core.KindContinue, Count: n, Message: core.Message{
		Path: t.path, ID: fmt.Sprintf("continue-%d-%d", t.id.Seq, n), Time: t.clock(), Author: author,
		Private: t.who.Private, Scopes: t.who.Scopes,
	}}}
}

// ids lists the platform ids of what the turn answers.
func (t *turn) ids() []string {
	ids := make([]string, len(t.messages))
	for i := range t.messages {
		ids[i] = t.messages[i].Message.ID
	}
	return ids
}
