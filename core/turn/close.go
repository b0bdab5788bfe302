package turn

import (
	"cmp"
	"context"
	"fmt"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/plan"
)

// close ends the turn with its last commit, and reports it.
func (t *turn) close(ctx context.Context, last core.Batch) error {
	if err := t.turns.store.Commit(ctx, &last); err != nil {
		t.worker.unreported = t
		return fmt.Errorf("%w: %w", core.ErrUnwritten, err)
	}
	t.report()
	return nil
}

// report tells observers how the turn ended, and updates the undo list and the attention.
func (t *turn) report() {
	if t.results.end.Aside {
		t.finish()
		return
	}
	sent, r := len(t.journal.sent), &t.results
	t.log.Info("turn over", "messages", len(t.messages), "sent", sent, "steps", len(r.all),
		"attempt", t.attempt, "intent", r.end.Intent, "confidence", r.end.Confidence)
	steps, person := t.snapshot.Lasting(r.all), t.person()
	if len(steps) > 0 && !person.IsZero() && t.setup.Store.Epoch() == t.journal.epoch { // else see Turns.Forget
		u := undoable{steps, t.journal.epoch, t.setup.Clock().Add(undoTime)}
		t.turns.undo.Put(undoKey{t.path, person}, u)
	}
	if !t.who.Private {
		r.updateAttention(sent > 0)
	}
	r.end.Answered = sent > 0
	t.finish()
}

// outcome returns the turn's last commit: what was sent joins the history, and the mark moves.
func (t *turn) outcome(ctx context.Context, p core.Progress) core.Batch {
	b := t.ending()
	later, sent := t.journal.unwritten()
	b.Journal = append(later, t.turnRecord(p))
	if p == core.ProgressDone {
		b.Closed = []core.TurnID{t.journal.id}
	}
	said, status := t.results.about, ""
	if t.results.hasLeft() {
		status, said.SlotsRequired = core.StatusCompleted, []string{}
	}
	if !said.IsZero() || t.input.parts.State.Status != status {
		state := plan.Merge(t.input.parts.State, t.input.lastSaid(), t.setup.Clock(), stateAge, said)
		state.Status = status
		b.States = map[core.Path]core.State{t.path: state}
	}
	for _, o := range t.decided {
		laterThere, sentThere := o.unwritten()
		b.Journal, sent = append(b.Journal, laterThere...), append(sent, sentThere...)
	}
	for _, s := range sent {
		b.Append = append(b.Append, t.logEntry(s))
	}
	if p == core.ProgressDone && t.results.did(action.Continue) && t.shouldContinue(ctx) {
		e := t.continuation()
		b.Append, t.results.end.GoesOn, t.worker.more = append(b.Append, e), e.Message.ID, true
	}
	return b
}

// ending returns a batch that marks the turn's entries as answered.
func (t *turn) ending() core.Batch {
	mark := []core.TurnID{{Path: t.path, Seq: t.last}}
	if t.worker.queue.commands {
		return core.Batch{Settled: mark, Finishing: true}
	}
	return core.Batch{Answered: mark, Finishing: true}
}

// logEntry returns the log entry of a sent message. As a quote, it names the user whom the
// turn answers, if that is one user: see answeredOnly.
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
	author, _ := t.who.Author()
	if s.Path == t.path && author.ID != "" && len(t.messages) > 0 {
		m := &t.messages[len(t.messages)-1].Message
		to = &core.Quote{ID: m.ID, From: core.Author{ID: author.ID}, Time: m.Time}
	}
	private := t.who.Private
	if s.Path != t.path {
		read := func(v core.View) (core.Head, error) { return v.Head(s.Path) }
		h, err := core.Read(context.Background(), t.turns.store, read)
		private = err != nil || h.Private
	}
	m := core.Message{
		Path: s.Path, ID: s.ID, Text: s.Text, Time: s.Time, Private: private, ReplyTo: to,
		Author: core.Author{Name: name, Bot: true, Rank: core.RankBot},
	}
	said := core.Event{Kind: kind, Data: cmp.Or(s.Data, t.results.data), Message: m}
	return core.Entry{Self: true, Strangers: t.results.strangers, Event: said}
}

// shouldContinue reports whether the model, which asked for it, may go on: nobody waits meanwhile.
func (t *turn) shouldContinue(ctx context.Context) bool {
	if t.who.Mute || len(t.who.Only) > 0 { // the next turn would not have these limits
		return false
	}
	read := func(v core.View) ([]core.Entry, error) { return v.Due(t.path, maxMerged+1) }
	waiting, err := core.Read(ctx, t.turns.store, read)
	return err == nil && (len(waiting) == 0 || waiting[len(waiting)-1].Message.Seq <= t.last)
}

// continuation returns the entry that lets the bot go on, with the rights of those who caused this turn.
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

func (t *turn) ids() []string {
	ids := make([]string, len(t.messages))
	for i := range t.messages {
		ids[i] = t.messages[i].Message.ID
	}
	return ids
}
