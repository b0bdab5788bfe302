package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/watch"
)

// decision is a turn's answer to a question.
type decision struct {
	turn     *turn
	question question
	agreed   bool
	origin   *journal     // of the turn that asked
	held     *action.Held // the step that waits; nil: none does
	resumed  bool         // an earlier attempt of this process has begun to decide it
}

// decide confirms or cancels the step that a question is about, if the turn answers
// one. It returns false if the turn is an ordinary one.
func (t *turn) decide(ctx context.Context) (decided bool, err error) {
	d := &decision{turn: t}
	found, err := d.find(ctx)
	if err != nil || !found {
		return false, err
	}
	press := t.messages[0].Kind == core.KindPress
	if err := d.load(ctx); err != nil {
		return press, err
	}
	why := d.refusal()
	if why != "" {
		if press && !t.messages[0].Self {
			d.whisper(ctx, why)
		}
		return press, t.flush(ctx)
	}
	return true, d.run(ctx)
}

// find looks for the question that the turn answers: by a press of one of its buttons,
// by a plain yes or no in reply to it, or by one that is the next message of the user
// who was asked.
func (d *decision) find(ctx context.Context) (found bool, err error) {
	t := d.turn
	e := &t.messages[0]
	if e.Kind == core.KindPress {
		var answer string
		d.question, answer, found = parseQuestion(e.Data)
		d.agreed = answer == "y"
		return found, nil
	}
	agreed, plain := t.setup.yesOrNo(&e.Message)
	if e.Kind != core.KindMessage || len(t.messages) > 1 || !plain {
		return false, nil
	}
	d.agreed = agreed
	r, noted := t.journal.Find(core.Key{Turn: t.journal.id, Round: decisionRound})
	if noted { // by an earlier attempt
		var text string
		err = json.Unmarshal(r.Data, &text)
		d.question, _, found = parseQuestion(text)
		return found, err
	}
	err = t.turns.store.View(ctx, func(v core.View) (err error) {
		to := e.Message.ReplyTo
		if to == nil {
			found, err = d.findLast(v, e)
			return err
		}
		asks, _, err := v.Entry(t.path, to.ID)
		if asks.Self {
			d.question, _, found = parseQuestion(asks.Data)
		}
		return err
	})
	return found, err
}

// findLast looks for the last question that the author of a message was asked, if the
// message is the next one of theirs, and can answer nothing else: not what others said
// among themselves, nor what the bot began by itself. Where nobody can reply to a message
// or press a button, other messages may be between, unless the bot asked something else.
func (d *decision) findLast(v core.View, e *core.Entry) (found bool, err error) {
	entries, err := v.Last(d.turn.path, questionDepth)
	if err != nil {
		return false, err
	}
	onlyWords := d.turn.who.Private && d.turn.setup.chooser(d.turn.path) == nil
	for _, before := range slices.Backward(entries) {
		q, _, asks := parseQuestion(before.Data)
		switch {
		case before.Message.Seq >= e.Message.Seq, before.Kind == core.KindCommand, before.Kind == core.KindMembership:
		case isOwnInitiative(before.Kind):
			return false, nil
		case before.Self && asks && before.Kind == core.KindMessage:
			d.question = q
			if mine, err := d.isForAuthor(v); mine || err != nil {
				return mine, err
			}
		case before.Self && onlyWords && strings.HasSuffix(strings.TrimSpace(before.Message.Text), "?"):
			return false, nil
		case before.Self, onlyWords:
		case before.Message.Author.ID == e.Message.Author.ID, !toUs(&e.Message):
			return false, nil
		}
	}
	return false, nil
}

// isForAuthor reports whether the question is put to the user whose turn it is.
func (d *decision) isForAuthor(v core.View) (bool, error) {
	r, err := d.question.record(v, d.turn.path)
	if err != nil {
		return false, err
	}
	h, err := action.ReadHeld(r)
	return err == nil && len(h.Who.Authors) == 1 && h.Who.Authors[0].ID == d.turn.who.Authors[0].ID, nil
}

// load reads the journal of the turn that asked, and the step that waits.
func (d *decision) load(ctx context.Context) error {
	t := d.turn
	id := core.TurnID{Path: t.path, Seq: d.question.turn}
	var records []core.Record
	asked := true
	err := t.turns.store.View(ctx, func(v core.View) (err error) {
		if asked, err = d.isUnderQuestion(v); err != nil {
			return err
		}
		records, err = v.Journal(id)
		return err
	})
	if err != nil {
		return err
	}
	d.origin, d.resumed = t.worker.journalOf(ctx, t.setup, id, records)
	d.origin.begun = true // with this turn
	if !d.resumed {
		d.origin.people = append(t.causers(), t.path)
	}
	r, ok := d.origin.Find(d.key())
	if !asked || !ok {
		return nil
	}
	if d.held, err = action.ReadHeld(r); err != nil {
		t.log.Error("question cannot be read", "id", d.question, "err", err)
		d.held = nil
		return nil
	}
	for _, a := range d.held.Who.Authors {
		d.origin.people = addPerson(d.origin.people, t.path, a.ID)
	}
	return nil
}

// key is the key of the step that waits.
func (d *decision) key() core.Key {
	return core.Key{Turn: d.origin.id, Round: d.question.round, Step: d.question.step}
}

// isUnderQuestion reports whether the button that was pressed is the question's own. A
// model may make buttons, too, and give them any data.
func (d *decision) isUnderQuestion(v core.View) (bool, error) {
	press := &d.turn.messages[0]
	if press.Kind != core.KindPress || press.Self {
		return true, nil
	}
	e, ok, err := v.Entry(d.turn.path, press.Target)
	return ok && e.Self && e.Data == d.question.String(), err
}

// refusal says why the question cannot be decided by the user who answers it; "" if it
// can.
func (d *decision) refusal() string {
	t := d.turn
	if d.held == nil {
		return "I no longer know what this was about."
	}
	if !t.messages[0].Self && !d.held.MayDecide(t.who.Authors[0]) {
		return "Only the person who asked for it can answer this."
	}
	r, _ := d.origin.Find(d.key())
	_, ours := t.journal.former[core.Key{Turn: t.journal.id, Round: decisionRound}]
	if r.Progress != core.ProgressPending && !ours {
		return "This was decided already."
	}
	return ""
}

// whisper tells the user who pressed.
func (d *decision) whisper(ctx context.Context, text string) {
	c := d.turn.setup.chooser(d.turn.path)
	if c == nil {
		return
	}
	if err := c.Whisper(ctx, d.turn.messages[0].Message, text); err != nil {
		d.turn.log.Warn("whisper not sent", "err", err)
	}
}

// run confirms or cancels the step, and shows what became of it.
func (d *decision) run(ctx context.Context) error {
	t := d.turn
	if err := d.note(ctx); err != nil {
		return err
	}
	job := action.Job{
		Snapshot: t.snapshot, Turn: d.origin.id, Round: d.question.round, Journal: d.origin,
		Attaches: t.setup.carrier(t.path) != nil, Guard: t.guardRewrite,
		Message: t.messages[0].Message, Answers: t.ids(), State: t.input.parts.State,
	}
	if len(d.held.Who.Authors) == 1 && d.held.Who.Authors[0].ID == t.who.Authors[0].ID {
		job.Who = t.who
	}
	t.notify(watch.StageActing)
	done, err := t.setup.Runtime.Resume(ctx, job, d.question.step, d.agreed)
	t.decided = append(t.decided, d.origin)
	if err != nil {
		return fmt.Errorf("confirmed step: %w", err)
	}
	t.input.strangers = t.input.strangers || d.held.Read.Strangers
	t.results.add(core.Plan{}, done)
	if err := d.show(ctx); err != nil {
		return err
	}
	if !d.agreed && !t.messages[0].Self { // who cancels it sees that, and needs no words of the model
		t.results.latest = nil
	}
	return t.askUser(ctx, done)
}

// note keeps in the turn's own journal that it decides the question. A former attempt
// that did so may have sent something already.
func (d *decision) note(ctx context.Context) error {
	t := d.turn
	key := core.Key{Turn: t.journal.id, Round: decisionRound}
	before, ok := t.journal.Find(key)
	switch {
	case !ok:
		return t.journal.Write(ctx, t.journal.record(key, core.ProgressAccepted, d.question.String()))
	case d.resumed:
		return nil
	}
	read := func(v core.View) ([]core.Record, error) { return v.Journal(d.origin.id) }
	records, err := view(ctx, t.turns.store, read)
	d.origin.recall(records, before.Time)
	return err
}

// show tells what became of the question: on itself, or, where it cannot be changed any
// more, in a message of its own. What was never asked is not shown.
func (d *decision) show(ctx context.Context) error {
	if d.held.Unasked != "" {
		return nil
	}
	t := d.turn
	fate := d.fate()
	c := t.setup.chooser(t.path)
	if c == nil {
		if err := t.flush(ctx); err != nil { // after a crash, the same is said
			return err
		}
		latest := t.results.latest
		err := t.execute(ctx, fateRound, t.planText(fate))
		t.results.latest = latest
		return err
	}
	text := d.held.Question
	if len(text) > action.MaxQuestion {
		text = brief(text)
	}
	m := core.Sent{Path: t.path, ID: t.messages[0].Target, Text: text + "\n\n" + fate}
	if m.ID == "" {
		m.ID = d.questionID()
	}
	if err := c.Settle(ctx, m); err != nil && !errors.Is(err, context.Canceled) {
		t.log.Warn("question not settled", "err", err)
	}
	return nil
}

// questionID is the platform's id of the question. The turn that asked may have closed
// after this one was received: then no history holds the question yet.
func (d *decision) questionID() string {
	key := d.key()
	key.Part = questionPart + 1
	r, ok := d.origin.Find(key)
	var what core.Sent
	if ok && json.Unmarshal(r.Data, &what) == nil {
		return what.ID
	}
	return ""
}

// fate words what became of the step, and of each that it asked for.
func (d *decision) fate() string {
	latest := d.turn.results.latest
	step := &latest[0] // what follows from it comes behind it
	def, ok := d.turn.snapshot.Resolve(step.Action)
	switch {
	case step.Progress == core.ProgressDone && ok && def.Then != nil && len(latest) > 1:
		return d.outcomes(def.Then(d.held.Step.Payload), latest[1:])
	case step.Progress == core.ProgressDone:
		return "✓ Done."
	case d.held.Expired(d.turn.setup.Clock()) && (d.agreed || d.turn.messages[0].Self):
		return "⌛ The question has expired."
	case !d.agreed:
		return "✗ Cancelled."
	case step.Outcome.Text != "":
		return "✗ " + action.OutcomeText(step.Outcome.Text)
	}
	return "✗ It did not work."
}

// outcomes words what became of each of the steps that followed.
func (d *decision) outcomes(steps []core.Step, results []action.StepResult) string {
	lines := make([]string, len(steps))
	results = slices.Clone(results)
	for i, s := range steps {
		name := s.Type
		def, ok := d.turn.snapshot.Resolve(name)
		if ok {
			name = def.Name
			lines[i] = "✗ " + action.OutcomeText(def.Title())
		}
		k := slices.IndexFunc(results, func(r action.StepResult) bool { return r.Action == name })
		if k < 0 {
			continue // it was never tried
		}
		r := results[k]
		results = slices.Delete(results, k, k+1)
		switch r.Progress {
		case core.ProgressDone:
			lines[i] = "✓ " + action.OutcomeText(def.Title())
		case core.ProgressPending:
			lines[i] = "… " + action.OutcomeText(def.Title())
		default:
			lines[i] += ": " + action.OutcomeText(cmp.Or(r.Outcome.Text, "it did not work"))
		}
	}
	return strings.Join(lines, "\n")
}
