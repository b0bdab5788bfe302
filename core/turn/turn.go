// Package turn receives what happens on platforms, decides whether to answer,
// and takes one turn at a time in each place. It is the journal's only writer.
//
// # The queue
//
// The log of a place is its queue. An entry waits if it was due when it was received and lies behind the place's
// answered mark. Each place with waiting entries has a goroutine. Order holds inside a place; places run in parallel.
//
// Chat commands are a queue of their own: they wait for the commands before them, and not for messages. A message
// waits for the commands before it. The end of a command settles only its own entry; the mark moves past it when the
// entries before it are answered.
//
// # One turn
//
// Method answer lists the steps: load (worker.go: what waits; the attempt is committed) → recheck (voice messages
// become text) → decide (an answer to a question) → gather (hints, injections, attachments) → ask and check (an
// engine answers; the corrector asks again) → execute (the accepted plan, journalled step by step) → follow up
// (outputs go back to the model) → deliver (nobody is left without a reply; a voice message is also answered by
// voice) → close (what was sent joins the history and the mark moves, in one commit). After a crash a turn continues
// where its journal ends.
//
// Retries of engines, streaming and budgets belong to the Asker or the catalogue, never to this package.
//
// The package is larger than most: intake, the journal and the turn together ensure that nothing is done twice.
package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/prompt"
	"synthbot/core/watch"
)

// turn is one turn of a place: what it answers, what the prompt holds, and its results.
type turn struct {
	turns    *Turns
	worker   *worker // runs it; nil in a preview
	path     core.Path
	setup    *setup
	snapshot *action.Snapshot
	log      *slog.Logger
	journal  *journal // nil in a preview
	attempt  int

	messages []core.Entry     // what it answers
	last     uint64           // the number of the last one
	who      action.Requester // who caused it
	input    input
	results  results
	decided  []*journal // of turns whose questions this one decided
	trace    *watch.Trace
}

func newTurn(turns *Turns, path core.Path, s *setup) *turn {
	t := &turn{
		turns: turns, path: path, setup: s, snapshot: s.Catalogue, log: s.Log,
		trace: &watch.Trace{Began: time.Now()},
	}
	t.input.turn, t.results.turn = t, t
	return t
}

// begin counts the attempt, unless it was counted with the first message.
func (t *turn) begin(ctx context.Context) error {
	// A user may have been forgotten since load read the log. The store knows of this turn
	// only after the commit, so stale is asked before and after it.
	if !t.journal.begun {
		if t.stale(ctx) {
			return errForgotten
		}
		t.attempt++
		if err := t.journal.Write(ctx, t.turnRecord(core.ProgressStarted)); err != nil {
			return err
		}
	}
	t.journal.begun = true
	if t.stale(ctx) {
		t.refundAttempt()
		return errForgotten
	}
	return nil
}

// answer runs the turn, step by step. Each step returns before the next begins. After too many tries,
// it only apologises.
func (t *turn) answer(ctx context.Context) error {
	tries := max(t.attempt-freeTries, t.worker.panics+1)
	if tries > maxTries {
		return t.giveUp(ctx, tries > maxTries+1)
	}
	if err := t.recheck(ctx); err != nil {
		return err
	}
	if len(t.messages) == 0 {
		return t.close(ctx, t.outcome(ctx, core.ProgressDone))
	}
	decided, err := t.decide(ctx)
	if err != nil {
		return err
	}
	more := true
	if decided {
		more, err = t.followUp(ctx)
	}
	hasRounds := more
	for round := uint16(firstRound); more && err == nil; round++ {
		var plan accepted
		plan, err = t.plan(ctx, round)
		if err == nil {
			err = t.execute(ctx, round, plan)
		}
		more = round < lastRound
		if more && err == nil {
			more, err = t.followUp(ctx)
		}
	}
	if hasRounds && err == nil {
		err = t.deliver(ctx)
	}
	if err == nil {
		err = t.askUser(ctx) // last, so that no answer comes while the turn goes on
	}
	if err != nil {
		return err
	}
	return t.close(ctx, t.outcome(ctx, core.ProgressDone))
}

// giveUp sets the turn aside, and apologises unless that failed before.
func (t *turn) giveUp(ctx context.Context, silently bool) error {
	round, last := uint16(lastWordRound), lostText
	if t.journal.mayHaveAnswered() {
		round, last = doubtRound, doubtText
	}
	if !silently {
		if err := t.say(ctx, round, last); err != nil {
			return err
		}
	}
	t.log.Error("turn set aside: it failed too often", "attempt", t.attempt-1, "ids", t.ids())
	t.results.end = watch.TurnEnd{Aside: true}
	return t.close(ctx, t.outcome(ctx, core.ProgressAside))
}

// interrupted refunds the attempt of a turn that ended through no fault of its own. It returns nil if the remaining
// messages are a new turn.
func (t *turn) interrupted(ctx context.Context, err error) error {
	if errors.Is(err, errWithdrawn) {
		t.refundAttempt()
		t.worker.more = true // messages may remain
		return nil
	}
	unwritten, away := errors.Is(err, core.ErrUnwritten), errors.Is(err, core.ErrAway)
	if unwritten || away || errors.Is(err, core.ErrUnknownOutcome) || ctx.Err() != nil {
		t.refundAttempt()
	}
	return err
}

// accepted is the record of a round's plan.
type accepted struct {
	core.Plan
	Read action.Provenance `json:"read,omitzero"`
	Data string            `json:"data,omitempty"` // of a plugin, stored with the message
}

// plan returns the plan of a round: the one that an earlier attempt accepted, a fixed reply, the answer of a command
// or plugin, or else the model's. It journals a new plan.
func (t *turn) plan(ctx context.Context, round uint16) (a accepted, err error) {
	key := core.Key{Turn: t.journal.id, Round: round}
	before, _ := t.journal.Find(key)
	if before.Progress == core.ProgressAccepted {
		if err := json.Unmarshal(before.Data, &a); err != nil {
			return a, fmt.Errorf("journalled plan of %s: %w", t.journal.id, err)
		}
		return a, nil
	}
	began := t.setup.Clock()
	first := &t.messages[0]
	switch {
	case first.Reply != "":
		a.Plan = t.planText(first.Reply)
		if first.Kind == core.KindReminder {
			a.Data, a.Read.Strangers = first.Data, true
		}
	case first.Kind == core.KindCommand && first.Command != nil:
		c := commandCall{turn: t, entry: first}
		var text string
		text, err = c.run(ctx)
		if err == nil {
			a.Plan = t.planText(text)
		}
	default:
		a, err = t.input.follow(ctx)
		if err == nil && len(a.Steps) == 0 {
			began = t.setup.Clock()
			a, err = t.ask(ctx, round)
		}
	}
	if err != nil {
		return a, err
	}
	r := t.journal.record(key, core.ProgressAccepted, a)
	r.Time = began
	t.journal.Later(r) // with the next record
	t.trace.Plans = append(t.trace.Plans, a.Plan)
	return a, nil
}

// execute carries out the plan of a round.
func (t *turn) execute(ctx context.Context, round uint16, a accepted) error {
	t.notify(watch.StageActing)
	t.results.strangers = t.results.strangers || a.Read.Strangers
	t.results.data = cmp.Or(a.Data, t.results.data)
	done, err := t.setup.Runtime.Execute(ctx, action.Job{
		Snapshot: t.snapshot, Turn: t.journal.id, Round: round, Plan: a.Plan, Read: a.Read, Who: t.who,
		Journal: t.journal, Attaches: t.setup.Places.Carrier(t.path) != nil, Guard: t.guardRewrite,
		Message: &t.messages[len(t.messages)-1].Message, Answers: t.ids(), State: t.input.parts.State,
	})
	if err != nil {
		return fmt.Errorf("round %d: %w", round, err)
	}
	t.results.add(a.Plan, done)
	return nil
}

// say sends a text to the place without asking the model.
func (t *turn) say(ctx context.Context, round uint16, text string) error {
	return t.execute(ctx, round, accepted{Plan: t.planText(text)})
}

// followUp prepares the prompt that gives the outputs of the latest steps back to the model. more is false if there is
// nothing to give back.
func (t *turn) followUp(ctx context.Context) (more bool, err error) {
	if t.worker.queue.commands || t.messages[0].Reply != "" { // no model is asked
		return false, nil
	}
	outputs := t.results.outputs()
	if len(outputs) == 0 || t.results.cannotWrite() {
		return false, nil
	}
	t.input.parts.Kind = prompt.Delivery
	t.input.parts.Outputs = append(t.input.parts.Outputs, outputs...)
	// The questions are asked when the turn ends; the model is not to ask them again.
	t.input.parts.Said = t.journal.texts()
	for i := range t.results.all {
		d := &t.results.all[i]
		if d.Progress == core.ProgressPending && d.Held.Question != "" {
			t.input.parts.Said = append(t.input.parts.Said, d.Held.Question)
		}
	}
	return true, t.flush(ctx) // the model may think for long
}

// deliver ensures that nobody is left without a reply: it says so if the turn had no result, or if
// the answer may not have arrived whole. A voice message is also answered by voice.
func (t *turn) deliver(ctx context.Context) (err error) {
	switch {
	case t.unasked():
	case t.results.inDoubt():
		err = t.say(ctx, doubtRound, doubtText)
	case len(t.journal.texts()) > 0:
	case !t.results.worked():
		err = t.say(ctx, lastWordRound, lostText)
	case t.results.needsAcknowledgement():
		err = t.say(ctx, lastWordRound, t.results.summary())
	}
	if err == nil && t.setup.Prompt.Speech.Speak != nil {
		t.setup.Prompt.Speech.answerAloud(ctx, t)
	}
	return err
}

// firstRound and lastRound are the rounds in which the model is asked. The last one offers message actions only.
const (
	firstRound = 1
	lastRound  = 3
)

const _ = uint(lastModelRound - lastRound) // does not compile if a round has no number

// stale reports whether the place or somebody whom the turn answers was forgotten since load, or is being forgotten.
func (t *turn) stale(ctx context.Context) bool {
	return t.setup.Store.Forgotten(ctx, t.journal.people...)
}

// turnRecord returns the record of the turn itself.
func (t *turn) turnRecord(p core.Progress) core.Record {
	r := core.TurnRecord{Last: t.last, Attempts: t.attempt, Askers: t.journal.askers}
	return t.journal.record(core.Key{Turn: t.journal.id}, p, r)
}

// refundAttempt takes back the count of the current attempt.
func (t *turn) refundAttempt() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.turns.work), time.Second)
	defer cancel()
	t.attempt--
	t.journal.Later(t.turnRecord(core.ProgressStarted))
	if err := t.flush(ctx); err != nil {
		t.log.Warn("refund of the attempt not written yet", "err", err)
	}
}

// flush writes the records that wait, before something that may take long.
func (t *turn) flush(ctx context.Context) error {
	for _, o := range t.decided {
		if err := o.Write(ctx); err != nil {
			return err
		}
	}
	return t.journal.Write(ctx)
}

// recheck removes messages that are not to be answered any more, transcribes voice messages, and looks up the ranks of
// the authors again.
func (t *turn) recheck(ctx context.Context) (err error) {
	t.input.dropUnwanted()
	if err := t.setup.Prompt.Speech.hear(ctx, t); err != nil {
		return err
	}
	for i := range t.messages {
		e := &t.messages[i]
		if e.Self || e.Kind == core.KindBeat || e.Kind == core.KindContinue { // nobody wrote it
			continue
		}
		t.setup.raiseRank(&e.Message)
		if e.Kind == core.KindPress {
			if e.Message.Author.Rank, err = t.pressRank(ctx, e); err != nil {
				return err
			}
		}
	}
	if len(t.messages) > 0 {
		before := t.who
		t.who = whoCaused(t.messages)
		t.who.Sees, t.who.Private, t.who.Continued = before.Sees, before.Private, before.Continued
		if t.messages[0].Kind == core.KindBeat {
			t.readBeat()
		}
	}
	return nil
}

// whoCaused returns who caused a turn, and where.
func whoCaused(messages []core.Entry) action.Requester {
	first := &messages[0].Message
	w := action.Requester{Path: first.Path, Private: first.Private, Scopes: first.Scopes, Continued: messages[0].Count}
	for i := range messages {
		author := messages[i].Message.Author
		if !slices.ContainsFunc(w.Authors, func(a core.Author) bool { return a.ID == author.ID }) {
			w.Authors = append(w.Authors, author)
		}
	}
	return w
}
