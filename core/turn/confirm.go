package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/action"
)

// question is what the log keeps with a message that asks for a confirmation:
// which step waits for it.
type question struct {
	turn  uint64
	round uint16
	step  uint16
}

const questionMark = "confirm:"

func (q question) String() string {
	return fmt.Sprintf("%s%d.%d.%d", questionMark, q.turn, q.round, q.step)
}

// parseQuestion reads a question, and the answer behind it if there is one.
func parseQuestion(s string) (q question, answer string, ok bool) {
	rest, ok := strings.CutPrefix(s, questionMark)
	if !ok {
		return q, "", false
	}
	where, answer, _ := strings.Cut(rest, ":")
	n, err := fmt.Sscanf(where, "%d.%d.%d", &q.turn, &q.round, &q.step)
	return q, answer, err == nil && n == 3
}

// inquire puts the questions of all steps that wait to be confirmed into the place.
func (t *turn) inquire(ctx context.Context, done []action.Done) error {
	for _, d := range done {
		if d.Progress != core.Pending || d.Held == nil || d.Held.Question == "" {
			continue
		}
		q := question{d.Key.Turn.Seq, d.Key.Round, d.Key.Step}
		err := t.put(ctx, d.Key, core.Sent{Path: t.path, Text: d.Held.Question, Data: q.String()}, []core.Choice{
			{Label: "Confirm", Data: q.String() + ":y"}, {Label: "Cancel", Data: q.String() + ":n"},
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, core.ErrAway) {
			return fmt.Errorf("question: %w", err)
		}
		if err != nil {
			t.log.Error("question not asked", "action", d.Action, "err", err)
			continue
		}
		t.turns.expireAt(d.Held.Expires, t.path, t.who.Private, q)
	}
	return nil
}

// expireAt lets the question go at that time, if nobody answered it.
func (t *Turns) expireAt(when time.Time, place core.Path, private bool, q question) {
	time.AfterFunc(when.Sub(t.setup.Load().Clock()), func() { t.expire(place, private, q) })
}

// Where questions of a former life are looked for: in places where something
// was said not long ago, among what was said last. A bot may have been stopped for
// some days.
const (
	questionAge   = 7 * 24 * time.Hour
	questionDepth = 50
)

// rearm lets the questions of a former life expire, too.
func (t *Turns) rearm(v core.View) error {
	heads, err := v.Places(core.Path{})
	if err != nil {
		return err
	}
	now := t.setup.Load().Clock()
	for _, h := range heads {
		if now.Sub(h.Time) > questionAge {
			continue
		}
		entries, err := v.Last(h.Path, questionDepth)
		if err != nil {
			return err
		}
		for i := range entries {
			if err := t.rearmOne(v, &entries[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// rearmOne looks at one entry: is it a question that still waits?
func (t *Turns) rearmOne(v core.View, e *core.Entry) error {
	q, _, ok := parseQuestion(e.Data)
	if !ok || !e.Self || e.Kind != core.KindMessage {
		return nil
	}
	id := core.TurnID{Path: e.Message.Path, Seq: q.turn}
	records, err := v.Journal(id)
	if err != nil {
		return err
	}
	for _, r := range records {
		if r.Key != (core.Key{Turn: id, Round: q.round, Step: q.step}) || r.Progress != core.Pending {
			continue
		}
		if h, err := action.ReadHeld(r); err == nil {
			t.expireAt(h.Expires, id.Path, e.Message.Private, q)
		}
	}
	return nil
}

// expire lets a question go that nobody answered in time. Where it was decided, or
// forgotten with who was asked, nothing is left to be written of it.
func (t *Turns) expire(place core.Path, private bool, q question) {
	ctx, waits := context.Background(), false
	err := t.store.View(ctx, func(v core.View) error {
		records, err := v.Journal(core.TurnID{Path: place, Seq: q.turn})
		waits = slices.ContainsFunc(records, func(r core.Record) bool {
			return r.Key.Round == q.round && r.Key.Step == q.step && r.Key.Part == 0 && r.Progress == core.Pending
		})
		return err
	})
	b := core.Batch{Append: []core.Entry{{Due: true, Self: true, Event: core.Event{
		Kind: core.KindPress, Data: q.String() + ":n", Message: core.Message{
			Path: place, ID: "expired-" + q.String(), Time: t.setup.Load().Clock(), Private: private,
		},
	}}}}
	if err == nil && waits {
		err = t.store.Commit(ctx, &b)
	}
	if err != nil {
		t.setup.Load().Log.Warn("question not expired", "path", place, "err", err)
	}
	if err == nil && waits {
		t.wake(place)
	}
}

// put sends a message of our own, with buttons where the interface has them.
func (t *turn) put(ctx context.Context, step core.Key, what core.Sent, choices []core.Choice) error {
	if c := t.with.chooser(t.path); c != nil {
		return c.Choose(ctx, asking{t.Parts(step), what.Data}, what, choices)
	}
	d, ok := t.snapshot.Message(t.path.Interface())
	if !ok {
		return core.Errorf(core.Broken, "%s has no message action", t.path.Interface())
	}
	payload, err := json.Marshal(map[string]string{"text": what.Text + " (yes/no)"})
	if err != nil {
		return err
	}
	_, err = d.Do(ctx, core.Call{
		Key: step, Path: t.path, Private: t.who.Private, Author: t.who.Authors[0], Payload: payload,
		Parts: asking{t.Parts(step), what.Data},
	})
	return err
}

// asking are the parts of a question, told apart from those of the step that it
// is about. The log keeps data with them.
type asking struct {
	core.Parts
	data string
}

const askingFrom = 10_000

// Send implements core.Parts.
func (p asking) Send(ctx context.Context, n int, what core.Sent, do func(context.Context, string) (string, error)) error {
	what.Data = p.data
	return p.Parts.Send(ctx, askingFrom+n, what, do)
}

// Since implements core.Parts.
func (p asking) Since(n int) time.Time { return p.Parts.Since(askingFrom + n) }

func (s *setup) chooser(place core.Path) core.Chooser {
	if s.Chooser == nil {
		return nil
	}
	return s.Chooser(place)
}

// decision returns the question that the turn answers, if it is a press of one
// of its buttons, or a plain yes or no right behind it.
func (t *turn) decision() (q question, agreed, ok bool) {
	e := &t.messages[0]
	switch {
	case e.Kind == core.KindPress:
		q, answer, ok := parseQuestion(e.Data)
		return q, answer == "y", ok
	case e.Kind != core.KindMessage || len(t.messages) > 1:
		return q, false, false
	}
	agreed, plain := yesOrNo(e.Message.Text)
	if !plain {
		return q, false, false
	}
	for _, before := range slices.Backward(t.parts.History) {
		switch {
		case before.Message.Seq > e.Message.Seq: // he could not know of it
		case before.Self:
			q, _, ok := parseQuestion(before.Data)
			to := e.Message.ReplyTo
			return q, agreed, ok && (to == nil || to.ID == before.Message.ID)
		case before.Message.Author.ID != e.Message.Author.ID && !toUs(&e.Message):
			return q, false, false // it may answer him
		}
	}
	return q, false, false
}

// toUs reports whether a message is meant for the bot and nobody else.
func toUs(m *core.Message) bool {
	return m.Private || m.Addressed != core.NotAddressed && m.Addressed != core.Overheard
}

// yesOrNo reads an answer that is nothing else, in the languages of the house.
func yesOrNo(text string) (yes, plain bool) {
	switch strings.ToLower(strings.Trim(strings.TrimSpace(text), ".!")) {
	case "yes", "y", "ok", "okay", "confirm", "ja", "sì", "si", "sí", "oui":
		return true, true
	case "no", "n", "cancel", "nein", "non", "annulla", "cancelar", "annuler", "abbrechen":
		return false, true
	}
	return false, false
}

// decided is the round of a turn's journal that notes that it decides a question.
const decided = lastRound + 2

// decide takes up the step that waited, or lets it go. taken is false where the
// question is none that this person could decide now; then the turn is an
// ordinary one, unless it is a press.
func (t *turn) decide(ctx context.Context, q question, agreed bool) (taken bool, err error) {
	press := t.messages[0].Kind == core.KindPress
	origin, held, err := t.origin(ctx, q)
	if err != nil {
		return press, err
	}
	if text := t.refuse(origin, held, q); text != "" {
		if press && !t.messages[0].Self {
			t.whisper(ctx, text)
		}
		return press, nil
	}
	if err := t.note(ctx, origin, q); err != nil {
		return true, err
	}
	job := action.Job{
		Snapshot: t.snapshot, Turn: origin.id, Round: q.round, Journal: origin, Message: t.messages[0].Message, State: t.parts.State,
	}
	if len(held.Who.Authors) == 1 && held.Who.Authors[0].ID == t.who.Authors[0].ID {
		job.Who = t.who
	}
	t.move(core.Acting)
	done, err := t.with.Runtime.Resume(ctx, job, q.step, agreed)
	t.origins = append(t.origins, origin)
	if err != nil {
		return true, fmt.Errorf("confirmed step: %w", err)
	}
	t.outcome = done
	t.finished = append(t.finished, done...)
	if err := t.settle(ctx, origin, q, held, agreed); err != nil {
		return true, err
	}
	return true, t.inquire(ctx, done)
}

// note keeps in the turn's own journal that it decides the question; a former
// attempt that did so may have sent something already.
func (t *turn) note(ctx context.Context, origin *journal, q question) error {
	key := core.Key{Turn: t.id, Round: decided}
	if before, ok := t.Find(key); ok {
		var records []core.Record
		err := t.store.View(ctx, func(v core.View) (err error) {
			records, err = v.Journal(origin.id)
			return err
		})
		if err != nil {
			return err
		}
		origin.recall(records, before.Time)
		return nil
	}
	return t.Write(ctx, t.record(key, core.Accepted, q.String()))
}

// origin returns the journal of the turn that asked, and the step that waits;
// nil where there is none.
func (t *turn) origin(ctx context.Context, q question) (j *journal, h *action.Held, err error) {
	id := core.TurnID{Path: t.path, Seq: q.turn}
	var records []core.Record
	asked := true
	err = t.store.View(ctx, func(v core.View) (err error) {
		if asked, err = t.under(v, q); err != nil {
			return err
		}
		records, err = v.Journal(id)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	j = newJournal(t.with, id, records)
	if !asked {
		return j, nil, nil
	}
	r, ok := j.Find(core.Key{Turn: id, Round: q.round, Step: q.step})
	if !ok {
		return j, nil, nil
	}
	if h, err = action.ReadHeld(r); err != nil {
		t.log.Error("question cannot be read", "question", q, "err", err)
		return j, nil, nil
	}
	return j, h, nil
}

// under reports whether the button that was pressed stands under the question
// itself: a model may make buttons, too, and give them any data.
func (t *turn) under(v core.View, q question) (bool, error) {
	press := &t.messages[0]
	if press.Kind != core.KindPress || press.Self {
		return true, nil
	}
	e, ok, err := v.Entry(t.path, press.Target)
	return ok && e.Self && e.Data == q.String(), err
}

// refuse says why the question cannot be decided by who answers it; "" if it can.
func (t *turn) refuse(j *journal, h *action.Held, q question) string {
	if h == nil {
		return "I no longer know what this was about."
	}
	if !t.messages[0].Self && !h.May(t.who.Authors[0]) {
		return "Only the person who asked for it can answer this."
	}
	r, _ := j.Find(core.Key{Turn: j.id, Round: q.round, Step: q.step})
	_, ours := t.former[core.Key{Turn: t.id, Round: decided}]
	if r.Progress != core.Pending && !ours {
		return "This was decided already."
	}
	return ""
}

// whisper tells the one who pressed.
func (t *turn) whisper(ctx context.Context, text string) {
	c := t.with.chooser(t.path)
	if c == nil {
		return
	}
	if err := c.Whisper(ctx, t.messages[0].Message, text); err != nil {
		t.log.Warn("whisper not sent", "err", err)
	}
}

// settle shows what became of the question: on itself, or, where it cannot be
// changed any more, in a message of its own.
func (t *turn) settle(ctx context.Context, origin *journal, q question, h *action.Held, agreed bool) error {
	fate := t.fate(h, q, agreed)
	c := t.with.chooser(t.path)
	if c == nil {
		done := t.outcome
		err := t.execute(ctx, decided+1, t.say(fate))
		t.outcome = done
		return err
	}
	m := core.Sent{Path: t.path, ID: t.messages[0].Target, Text: h.Question + "\n\n" + fate}
	if m.ID == "" {
		m.ID = t.asked(origin, q)
	}
	if err := c.Settle(ctx, m); err != nil && !errors.Is(err, context.Canceled) {
		t.log.Warn("question not settled", "err", err)
	}
	return nil
}

// asked is the platform's id of the question. The turn that asked may have closed
// after this one was received: then the question stands in no history yet.
func (t *turn) asked(origin *journal, q question) string {
	r, ok := origin.Find(core.Key{Turn: origin.id, Round: q.round, Step: q.step, Part: askingFrom + 1})
	var what core.Sent
	if ok && json.Unmarshal(r.Data, &what) == nil && what.ID != "" {
		return what.ID
	}
	for _, e := range t.parts.History {
		if e.Self && e.Data == q.String() {
			return e.Message.ID
		}
	}
	return ""
}

// fate words what became of the step.
func (t *turn) fate(h *action.Held, q question, agreed bool) string {
	i := slices.IndexFunc(t.outcome, func(d action.Done) bool { return d.Step == int(q.step) })
	switch {
	case h.Expired(t.clock()) && (agreed || t.messages[0].Self):
		return "⌛ The question has expired."
	case !agreed:
		return "✗ Cancelled."
	case i >= 0 && t.outcome[i].Progress == core.Done:
		return "✓ Done."
	case i >= 0 && t.outcome[i].Outcome.Text != "":
		return "✗ " + t.outcome[i].Outcome.Text
	}
	return "✗ It did not work."
}
