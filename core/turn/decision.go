package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/watch"
)

// decision is a turn's answer to a question.
type decision struct {
	turn     *turn
	question question
	known    bool     // the log has the message whose button was pressed
	key      core.Key // of its step
	answer   action.Answer
	origin   *journal     // of the turn that asked
	held     *action.Held // the step that waits; nil: none does
	resumed  bool         // an earlier attempt of this process began to decide it
}

// decide confirms or cancels the step that a question is about. It returns false if the turn answers no question.
func (t *turn) decide(ctx context.Context) (decided bool, err error) {
	d := &decision{turn: t}
	found, err := d.find(ctx)
	if err != nil || !found {
		return false, err
	}
	press := t.messages[0].Kind == core.KindPress
	why := d.refusal()
	if why != "" {
		c := t.setup.Places.Chooser(t.path)
		if press && !t.messages[0].Self && c != nil {
			if err := c.Whisper(ctx, t.messages[0].Message, why); err != nil {
				t.log.Warn("whisper not sent", "err", err)
				return true, t.say(ctx, resultRound, why)
			}
		}
		return press, t.flush(ctx)
	}
	return true, d.run(ctx)
}

// find looks for the question that the turn answers: by a press of one of its buttons, by a reply to it, or by the
// next message of the user who was asked. A message confirms or cancels a step only if it is a plain yes or no.
func (d *decision) find(ctx context.Context) (found bool, err error) {
	t, e := d.turn, &d.turn.messages[0]
	press := e.Kind == core.KindPress
	agreed, plain := t.setup.yesOrNo(&e.Message)
	before, noted := t.journal.Find(core.Key{Turn: t.journal.id, Round: decisionRound}) // by an earlier attempt
	may := press || plain || noted || t.turns.attention.mayAsk(t.path, t.setup.Clock())
	if !press && (e.Kind != core.KindMessage || len(t.messages) > 1) || !may || e.Reply != "" {
		return false, nil
	}
	var known records // of the turn that asked
	asked := true
	err = t.turns.store.View(ctx, func(v core.View) (err error) {
		switch {
		case noted && !press:
			var text string
			err = json.Unmarshal(before.Data, &text)
			d.question, _, found = parseQuestion(text)
		case !press:
			d.question, err = t.setup.lookUp(v, e, plain)
			found = d.question != question{}
		default:
			d.question, _, found = parseQuestion(e.Data)
			if found && !e.Self { // a model may make buttons, too, with any data
				var said core.Entry
				said, d.known, err = v.Entry(t.path, e.Target)
				asked = said.Self && said.Data == d.question.String()
			}
		}
		if found && err == nil {
			known, err = v.Journal(d.question.key(t.path).Turn)
		}
		return err
	})
	if err != nil || !found {
		return false, err
	}
	if !press {
		r, _ := known.find(d.question.key(t.path))
		held, err := action.ReadHeld(r)
		waits := err == nil && (noted || r.Progress == core.ProgressPending && held.Asks == d.question.ask)
		if !waits || !plain && !noted && held.Form == nil {
			return false, nil
		}
		d.answer = action.Answer{Agreed: agreed, Ask: d.question.ask}
		if held.Form != nil {
			d.answer.Agreed, d.answer.Text = t.setup.formAnswer(held, &e.Message)
		}
		wordless := d.answer.Text == "" || e.Message.IsSticker() // a picture, a forward, a voice message without a text
		if held.Form != nil && wordless {
			return false, nil
		}
	}
	d.load(ctx, known, asked)
	return true, nil
}

// load reads the journal of the turn that asked. It also reads the step that waits there, if the turn really
// asked this question.
func (d *decision) load(ctx context.Context, known records, asked bool) {
	t := d.turn
	d.key = d.question.key(t.path)
	d.origin, d.resumed = t.worker.journalOf(ctx, t.setup, d.key.Turn, known)
	d.origin.begun, d.origin.people = true, t.journal.people // with this turn
	r, ok := d.origin.Find(d.key)
	if !asked { // the store does not find messages of the old place by their ids
		sent := d.sentQuestion()
		whileMoving := sent.ID == "" && !d.known
		asked = sent.Path != t.path && (whileMoving || sent.ID == t.messages[0].Target)
	}
	if !asked || !ok {
		return
	}
	held, err := action.ReadHeld(r)
	if err != nil {
		t.log.Error("question cannot be read", "id", d.question, "err", err)
		return
	}
	d.held = held
	for _, a := range held.Who.Authors {
		t.journal.addAskers([]string{a.ID})
	}
	d.origin.people = t.journal.people
}

// formAnswer reads a message as the answer to a form's question. agreed is false if it cancels the form.
func (s *setup) formAnswer(h *action.Held, m *core.Message) (agreed bool, text string) {
	yes, plain := s.yesOrNo(m)
	text = strings.TrimSpace(unmentioned(m))
	switch {
	case slices.Contains(cancelWords, s.bareText(m)):
		return false, text
	case plain && h.Form.IsYesOrNo() && yes:
		return true, action.FormYes
	case plain && h.Form.IsYesOrNo():
		return true, action.FormNo
	}
	return !plain || yes, text
}

// lookUp returns the question that a message answers; the zero question if there is none.
func (s *setup) lookUp(v core.View, e *core.Entry, plain bool) (q question, err error) {
	if e.Message.ReplyTo == nil {
		return s.findLast(v, e, plain)
	}
	asks, _, err := v.Entry(e.Message.Path, e.Message.ReplyTo.ID)
	if asks.Self {
		q, _, _ = parseQuestion(asks.Data)
	}
	return q, err
}

// findLast returns the last question to the author of a message, if the message can answer nothing else. It must be the
// author's next message. Between them, the bot must not have written on its own initiative, nor others if the message
// is not for the bot, nor, before a plain yes or no, the author a command. In a private place without buttons, other
// messages may be between, unless the bot asked something else.
func (s *setup) findLast(v core.View, e *core.Entry, plain bool) (question, error) {
	m := &e.Message
	entries, err := v.Last(m.Path, questionDepth)
	if err != nil {
		return question{}, err
	}
	isForBot := m.Private || m.Addressed != "" && m.Addressed != core.AddressedOverheard
	onlyWords := m.Private && s.Places.Chooser(m.Path) == nil
	for _, before := range slices.Backward(entries) {
		q, _, asks := parseQuestion(before.Data)
		own := !before.Self && before.Message.Author.ID == m.Author.ID
		switch {
		case m.Seq > 0 && before.Message.Seq >= m.Seq, before.Kind == core.KindMembership:
		case before.Kind == core.KindBeat, before.Kind == core.KindContinue, before.Kind == core.KindReminder:
			return question{}, nil // on the bot's own initiative
		case before.Kind == core.KindCommand:
			if own && plain {
				return question{}, nil // it may answer the command's reply
			}
		case before.Self && asks && before.Kind == core.KindMessage:
			h, err := q.waiting(v, m.Path)
			if err != nil || h != nil && len(h.Who.Authors) == 1 && h.Who.Authors[0].ID == m.Author.ID {
				return q, err
			}
		case before.Self && onlyWords && strings.HasSuffix(strings.TrimSpace(before.Message.Text), "?"):
			return question{}, nil
		case before.Self, onlyWords:
		case own, !isForBot:
			return question{}, nil
		}
	}
	return question{}, nil
}

// refusal says why the user cannot answer the question; "" if they can.
func (d *decision) refusal() string {
	t := d.turn
	if d.held == nil {
		return "I no longer know what this was about."
	}
	switch {
	case t.messages[0].Self || d.held.MayDecide(t.who.Authors[0]):
	case d.held.AskedByPlace():
		return "This was asked in the name of this chat. Only its admins can answer it."
	default:
		return "Only the person who asked for it can answer this."
	}
	r, _ := d.origin.Find(d.key)
	_, ours := t.journal.former.find(core.Key{Turn: t.journal.id, Round: decisionRound})
	waits := r.Progress == core.ProgressPending && d.held.Asks == d.question.ask
	if !waits && !ours {
		return "This was decided already."
	}
	return ""
}

// run confirms or cancels the step, and shows the result.
func (d *decision) run(ctx context.Context) error {
	t := d.turn
	if err := d.journalDecision(ctx); err != nil {
		return err
	}
	job := action.Job{
		Snapshot: t.snapshot, Turn: d.origin.id, Round: d.question.round, Journal: d.origin,
		Attaches: t.setup.Places.Carrier(t.path) != nil, Guard: t.guardRewrite,
		Message: &t.messages[0].Message, Answers: t.ids(), State: t.input.parts.State,
	}
	if len(d.held.Who.Authors) == 1 && d.held.Who.Authors[0].ID == t.who.Authors[0].ID {
		job.Who = t.who
	}
	t.notify(watch.StageActing)
	if t.messages[0].Kind == core.KindPress {
		d.readPress()
	}
	done, err := t.setup.Runtime.Resume(ctx, job, d.question.step, d.answer)
	t.decided = append(t.decided, d.origin)
	if err != nil {
		return fmt.Errorf("confirmed step: %w", err)
	}
	t.results.strangers = t.results.strangers || d.held.Read.Strangers
	t.results.add(core.Plan{Context: d.filled(done)}, done)
	err = d.show(ctx)
	if err == nil && !d.answer.Agreed && !t.messages[0].Self { // show is enough for a user who cancels
		t.results.latest = nil
	}
	return err
}

// readPress reads the pressed button as an answer to a confirmation or a form.
func (d *decision) readPress() {
	press := &d.turn.messages[0]
	_, answer, _ := parseQuestion(press.Data)
	d.answer = action.Answer{Agreed: answer != answerNo, Ask: d.question.ask, Text: answer}
	if d.held.Form == nil {
		d.answer.Agreed = answer == answerYes
		return
	}
	if answer == answerWords {
		d.answer.Text = press.Message.Text
	}
	n, err := strconv.Atoi(answer)
	if err == nil && 0 < n && n <= len(d.held.Form.Choices) {
		d.answer.Text = d.held.Form.Choices[n-1]
	}
}

// journalDecision journals that this turn decides the question. If an earlier attempt did so, it may have
// sent messages, which are recalled.
func (d *decision) journalDecision(ctx context.Context) error {
	t := d.turn
	key := core.Key{Turn: t.journal.id, Round: decisionRound}
	before, ok := t.journal.Find(key)
	switch {
	case !ok:
		accepted := t.journal.record(key, core.ProgressAccepted, d.question.String())
		err := t.journal.Write(ctx, t.turnRecord(core.ProgressStarted), accepted)
		if err == nil && t.stale(ctx) { // see begin
			err = errForgotten
		}
		return err
	case d.resumed:
		return nil
	}
	read := func(v core.View) ([]core.Record, error) { return v.Journal(d.origin.id) }
	records, err := core.Read(ctx, t.turns.store, read)
	d.origin.recall(records, before.Time)
	return err
}

// show edits the question to show the result, or sends that as a message: if there are no buttons, or the edit of a
// question that a user answered fails. For a question that could not be sent, it does nothing.
func (d *decision) show(ctx context.Context) error {
	if d.held.Unasked != "" {
		return nil
	}
	t := d.turn
	c := t.setup.Places.Chooser(t.path)
	if c == nil {
		return d.say(ctx)
	}
	text := d.held.Question
	if len(text) > action.MaxQuestion {
		text = brief(text)
	}
	m := d.sentQuestion()
	if m.ID == "" { // the place moved while it was sent
		m.Path = t.path
	}
	m.ID, m.Text = cmp.Or(t.messages[0].Target, m.ID), text+"\n\n"+d.resultText()
	err := c.Settle(ctx, m)
	if err == nil || errors.Is(err, context.Canceled) {
		return nil
	}
	t.log.Warn("question not settled", "err", err)
	if t.messages[0].Self { // nobody waits for it
		return nil
	}
	return d.say(ctx)
}

// say sends the result as a message, unless the next question follows.
func (d *decision) say(ctx context.Context) error {
	t := d.turn
	text, latest := d.resultText(), t.results.latest
	if latest[0].Progress == core.ProgressPending {
		return nil
	}
	if err := t.flush(ctx); err != nil { // so that the text is the same after a crash
		return err
	}
	err := t.say(ctx, resultRound, text)
	t.results.latest = latest
	return err
}

// sentQuestion returns the question from the journal: an answer may be received before the turn that asked
// closes and the question joins the history. If the place moved since, the message is at the old path.
func (d *decision) sentQuestion() core.Sent {
	key := d.key
	key.Part = uint16(d.question.part(1))
	r, ok := d.origin.Find(key)
	var what core.Sent
	if !ok || json.Unmarshal(r.Data, &what) != nil {
		return core.Sent{Path: d.turn.path}
	}
	return what
}

// filled returns the slot that a form's answer filled, if the conversation requires it.
func (d *decision) filled(done []action.StepResult) (s core.State) {
	if d.held.Form == nil || !d.answer.Agreed || len(d.held.Step.Missing) == 0 {
		return s
	}
	name := d.held.Step.Missing[0]
	if !slices.Contains(d.turn.input.parts.State.SlotsRequired, name) {
		return s
	}
	var payload map[string]json.RawMessage
	if json.Unmarshal(done[0].Call.Payload, &payload) == nil && payload[name] != nil {
		s.SlotsFilled = map[string]json.RawMessage{name: payload[name]}
	}
	return s
}

// resultText returns the result of the step, and of each that followed from it, as a text for users.
func (d *decision) resultText() string {
	latest := d.turn.results.latest
	step := &latest[0] // those that followed from it come after it
	def, ok := d.turn.snapshot.Resolve(step.Action)
	switch {
	case step.Progress == core.ProgressPending: // the next question says what is wrong with the answer
		return "→ " + action.OutcomeText(d.answer.Text)
	case step.Progress == core.ProgressDone && ok && def.Then != nil && len(latest) > 1:
		return d.resultLines(def.Then(d.held.Step.Payload), latest[1:])
	case step.Progress == core.ProgressDone:
		return "✓ Done."
	case d.held.Expired(d.turn.setup.Clock()) && (d.answer.Agreed || d.turn.messages[0].Self):
		return "⌛ The question has expired."
	case !d.answer.Agreed:
		return "✗ Cancelled."
	case step.Outcome.Text != "":
		return "✗ " + action.OutcomeText(step.Outcome.Text)
	}
	return "✗ It did not work."
}

// resultLines returns a line for each of the steps that followed.
func (d *decision) resultLines(steps []core.Step, results []action.StepResult) string {
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
