package turn

import (
	"context"
	"fmt"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/plan"
	"synthbot/core/watch"
)

// close ends the turn in one commit: what was sent joins the history, and the mark moves.
func (t *turn) close(ctx context.Context) error {
	next, err := t.end(ctx, core.ProgressDone)
	return t.reportEnd(err, func() {
		sent, r := len(t.journal.sent), &t.results
		t.log.Info("turn over", "messages", len(t.messages), "sent", sent, "steps", len(r.all),
			"attempt", t.attempt, "intent", r.intent, "confidence", r.confidence)
		t.rememberSteps()
		t.results.attend(sent > 0)
		t.finish(watch.TurnEnd{Answered: sent > 0, GoesOn: next, Intent: r.intent, Confidence: r.confidence})
	})
}

// reportEnd reports the turn's end if its last commit worked. If that returned an error, the
// worker reports it when it finds that the turn no longer waits.
func (t *turn) reportEnd(err error, tell func()) error {
	if err != nil {
		t.worker.unreported = &unreported{t, tell}
		return err
	}
	tell()
	return nil
}

// unreported is the end of a turn that observers do not know.
type unreported struct {
	turn *turn
	tell func()
}

// reportFormer reports the end of the worker's former turn if next is another one, or nil.
func (p *worker) reportFormer(s *setup, next *turn) {
	u := p.unreported
	if u != nil && (next == nil || next.journal.id != u.turn.journal.id) {
		u.turn.setup = s
		u.tell()
	}
	p.unreported = nil
}

// setAside gives the turn up, so that it blocks its place no longer.
func (t *turn) setAside(ctx context.Context) error {
	t.log.Error("turn set aside: it failed too often", "attempt", t.attempt-1, "ids", t.ids())
	_, err := t.end(ctx, core.ProgressAside)
	return t.reportEnd(err, func() { t.finish(watch.TurnEnd{Aside: true}) })
}

// abandon ends a turn whose records can never be written, without writing any.
func (t *turn) abandon(ctx context.Context) error {
	t.log.Error("turn set aside: the store refuses its records", "ids", t.ids())
	b := t.ending()
	if err := t.turns.store.Commit(ctx, &b); err != nil {
		return fmt.Errorf("%w: %w", core.ErrUnwritten, err)
	}
	t.finish(watch.TurnEnd{Aside: true})
	return nil
}

// end writes the turn's last commit. It returns the id of the entry with which the bot
// continues by itself, or "".
func (t *turn) end(ctx context.Context, p core.Progress) (next string, err error) {
	t.journal.mu.Lock()
	defer t.journal.mu.Unlock()
	b := t.ending()
	b.Journal = append(t.journal.later, t.opening(p))
	if p == core.ProgressDone {
		b.Closed = []core.TurnID{t.journal.id}
	}
	said, status := t.results.about, ""
	if t.results.leave() {
		status, said.SlotsRequired = core.StatusCompleted, []string{}
	}
	if !said.IsZero() || t.input.parts.State.Status != status {
		state := plan.Merge(t.input.parts.State, t.input.lastSaid(), t.setup.Clock(), stateAge, said)
		state.Status = status
		b.States = map[core.Path]core.State{t.path: state}
	}
	for _, s := range t.journal.sent {
		b.Append = append(b.Append, t.logEntry(s))
	}
	for _, o := range t.decided {
		b.Journal = append(b.Journal, o.later...)
		for _, s := range o.sent {
			b.Append = append(b.Append, t.logEntry(s))
		}
	}
	if p == core.ProgressDone && t.shouldContinue(ctx) {
		e := t.continuation()
		b.Append, next = append(b.Append, e), e.Message.ID
	}
	if err := t.turns.store.Commit(ctx, &b); err != nil {
		return "", fmt.Errorf("%w: %w", core.ErrUnwritten, err)
	}
	return next, nil
}

// ending is the batch after which nothing waits for the turn.
func (t *turn) ending() core.Batch {
	mark := []core.TurnID{{Path: t.path, Seq: t.last}}
	if t.worker.queue.commands {
		return core.Batch{Settled: mark, Finishing: true}
	}
	return core.Batch{Answered: mark, Finishing: true}
}

// logEntry is the entry of something that the bot said. It names the one user whom the
// turn answers, so that it is known later whom a message of the bot answered.
func (t *turn) logEntry(s core.Sent) core.Entry {
	kind := core.KindMessage
	if t.worker.queue.commands { // not for the model to read
		kind = core.KindCommand
	}
	name := t.input.parts.Persona.Name // as it was when the turn began: a command may change it meanwhile
	if s.Path != t.path || name == "" {
		name = t.setup.Prompt.Persona(s.Path, "").Name
	}
	var to *core.Quote
	if s.Path == t.path && len(t.who.Authors) == 1 && t.who.Authors[0].ID != "" && len(t.messages) > 0 {
		m := &t.messages[len(t.messages)-1].Message
		to = &core.Quote{ID: m.ID, From: core.Author{ID: t.who.Authors[0].ID}, Time: m.Time}
	}
	private := t.who.Private
	if s.Path != t.path {
		read := func(v core.View) (core.Head, error) { return v.Head(s.Path) }
		h, err := view(context.Background(), t.turns.store, read)
		private = err != nil || h.Private
	}
	m := core.Message{
		Path: s.Path, ID: s.ID, Text: s.Text, Time: s.Time, Private: private, ReplyTo: to,
		Author: core.Author{Name: name, Bot: true, Rank: core.RankBot},
	}
	return core.Entry{Self: true, Strangers: t.input.strangers, Event: core.Event{Kind: kind, Data: s.Data, Message: m}}
}

// shouldContinue reports whether the model asked to go on, and nobody waits meanwhile.
func (t *turn) shouldContinue(ctx context.Context) bool {
	if !t.results.did(action.Continue) || t.who.Mute || len(t.who.Only) > 0 { // what goes on would be bound by nothing
		return false
	}
	read := func(v core.View) ([]core.Entry, error) { return v.Due(t.path, maxMerged+1) }
	waiting, err := view(ctx, t.turns.store, read)
	return err == nil && (len(waiting) == 0 || waiting[len(waiting)-1].Message.Seq <= t.last)
}

// continuation is the entry that makes the bot go on, with the rights of those who
// caused this turn.
func (t *turn) continuation() core.Entry {
	author := t.who.Authors[0]
	for _, a := range t.who.Authors[1:] {
		author = core.Author{Rank: min(author.Rank, a.Rank)}
	}
	n := t.who.Continued + 1
	return core.Entry{Due: true, Event: core.Event{Kind: core.KindContinue, Count: n, Message: core.Message{
		Path: t.path, ID: fmt.Sprintf("continue-%d-%d", t.journal.id.Seq, n), Time: t.setup.Clock(), Author: author,
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
