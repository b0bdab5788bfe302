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
	_, err := fmt.Sscanf(where, "%d.%d.%d", &q.turn, &q.round, &q.step)
	return q, answer, err == nil
}

// inquire puts the questions of all steps that wait to be confirmed into the place.
func (t *turn) inquire(ctx context.Context, done []action.Done) error {
	for _, d := range done {
		if d.Progress != core.Pending || d.Held.Question == "" {
			continue
		}
		q := question{d.Key.Turn.Seq, d.Key.Round, d.Key.Step}
		err := t.put(ctx, d.Key, d.Held.Question, q)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, core.ErrAway) || errors.Is(err, core.ErrUnknownOutcome) {
			return fmt.Errorf("question: %w", err)
		}
		when := d.Held.Expires
		if err != nil {
			var e *core.Error
			if errors.As(err, &e) && e.Kind == core.Unsure {
				t.unsure = true
			} else {
				when = t.clock() // nobody can answer it
				d.Held.Refused(err)
				t.writes(d.Key).Later(t.record(d.Key, core.Pending, d.Held))
			}
			t.log.Error("question not asked", "action", d.Action, "err", err)
		}
		t.turns.expireAt(when, t.path, t.who.Private, q)
	}
	return nil
}

// expirePause is the first pause between two tries to let a question go.
const expirePause = 100 * time.Millisecond

// expireAt lets the question go at that time, if nobody answered it.
func (t *Turns) expireAt(when time.Time, place core.Path, private bool, q question) {
	time.AfterFunc(when.Sub(t.setup.Load().Clock()), func() { t.expire(place, private, q, expirePause) })
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
	if !ok || e.Kind != core.KindMessage {
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

// expire lets a question go that nobody answered in time, and tries until that is
// written. Where it was decided, or forgotten with who was asked, nothing is left to
// be written of it.
func (t *Turns) expire(place core.Path, private bool, q question, pause time.Duration) {
	err := t.expired(place, private, q)
	if err == nil || errors.Is(err, core.ErrClosed) {
		return
	}
	t.setup.Load().Log.Warn("question not expired, trying again", "path", place, "in", pause, "err", err)
	time.AfterFunc(pause, func() { t.expire(place, private, q, min(2*pause, maxPause)) })
}

// expired writes that the time of a question is over.
func (t *Turns) expired(place core.Path, private bool, q question) error {
	ctx, waits := context.Background(), false
	err := t.store.View(ctx, func(v core.View) error {
		records, err := v.Journal(core.TurnID{Path: place, Seq: q.turn})
		waits = slices.ContainsFunc(records, func(r core.Record) bool {
			return r.Key.Round == q.round && r.Key.Step == q.step && r.Progress == core.Pending
		})
		return err
	})
	if err != nil || !waits {
		return err
	}
	b := core.Batch{Append: []core.Entry{{Due: true, Self: true, Event: core.Event{
		Kind: core.KindPress, Data: q.String() + ":n", Message: core.Message{
			Path: place, ID: "expired-" + q.String(), Time: t.setup.Load().Clock(), Private: private,
		},
	}}}}
	if err := t.store.Commit(ctx, &b); err != nil {
		return err
	}
	t.wake(lane{path: place})
	return nil
}

// put asks a question, with buttons where the interface has them. One that is too
// long for a message is attached whole, before it is asked.
func (t *turn) put(ctx context.Context, step core.Key, text string, q question) error {
	parts := asking{t.writes(step).Parts(step), q.String()}
	if len(text) > action.MaxQuestion {
		file := core.Upload{Name: attachedName, MIME: "text/plain; charset=utf-8", Data: []byte(text + "\n"), Kind: core.File}
		if err := t.with.carrier(t.path).Carry(ctx, parts, 2, core.Sent{Path: t.path}, file); err != nil {
			return err
		}
		text = brief(text)
	}
	what := core.Sent{Path: t.path, Text: text, Data: q.String()}
	if c := t.with.chooser(t.path); c != nil {
		return c.Choose(ctx, parts, what, []core.Choice{
			{Label: "Confirm", Data: q.String() + ":y"}, {Label: "Cancel", Data: q.String() + ":n"},
		})
	}
	d, ok := t.snapshot.Message(t.path.Interface())
	if !ok {
		return core.Errorf(core.Broken, "%s has no message action", t.path.Interface())
	}
	payload, err := json.Marshal(map[string]string{"text": core.Literal(text) + " (yes/no)"})
	if err != nil {
		return err
	}
	_, err = d.Do(ctx, core.Call{
		Key: step, Path: t.path, Private: t.who.Private, Author: t.who.Authors[0], Answers: t.ids(),
		Payload: payload, Parts: parts,
	})
	return err
}

// attachedName is what the file is called that holds a long question.
const attachedName = "question.txt"

// brief is a question whose whole text is attached: its first lines, and where the
// rest is.
func brief(text string) string {
	const most = 300
	var b strings.Builder
	for line := range strings.Lines(text) {
		if b.Len()+len(line) > most {
			break
		}
		b.WriteString(line)
	}
	return b.String() + "…\nWhat will be done is too long for a message. The file " + attachedName + " shows all of it."
}

// writes returns the journal that holds the step: this turn's, or that of a turn
// whose question it decides.
func (t *turn) writes(step core.Key) *journal {
	for _, o := range t.origins {
		if o.id == step.Turn {
			return o
		}
	}
	return t.journal
}

// asking are the parts of a question, told apart from those of the step that it
// is about. The log keeps data with them.
type asking struct {
	core.Parts
	data string
}

// Send implements core.Parts.
func (p asking) Send(ctx context.Context, n int, what core.Sent, do func(context.Context, string) (string, error)) error {
	what.Data = p.data
	return p.Parts.Send(ctx, questionPart+n, what, do)
}

// Since implements core.Parts.
func (p asking) Since(n int) time.Time { return p.Parts.Since(questionPart + n) }

func (s *setup) carrier(place core.Path) core.Carrier {
	if s.Carrier == nil {
		return nil
	}
	return s.Carrier(place)
}

func (s *setup) chooser(place core.Path) core.Chooser {
	if s.Chooser == nil {
		return nil
	}
	return s.Chooser(place)
}

// decision returns the question that the turn answers: by a press of one of its
// buttons, by a plain yes or no in reply to it, or by one that is the next message
// of the person who was asked.
func (t *turn) decision(ctx context.Context) (q question, agreed, ok bool, err error) {
	e := &t.messages[0]
	if e.Kind == core.KindPress {
		q, answer, ok := parseQuestion(e.Data)
		return q, answer == "y", ok, nil
	}
	agreed, plain := yesOrNo(e.Message.Text)
	if e.Kind != core.KindMessage || len(t.messages) > 1 || !plain {
		return q, false, false, nil
	}
	if r, before := t.Find(core.Key{Turn: t.id, Round: decisionRound}); before {
		var text string
		err = json.Unmarshal(r.Data, &text)
		q, _, ok = parseQuestion(text)
		return q, agreed, ok, err
	}
	err = t.store.View(ctx, func(v core.View) (err error) {
		if to := e.Message.ReplyTo; to != nil {
			asks, _, err := v.Entry(t.path, to.ID)
			if asks.Self {
				q, _, ok = parseQuestion(asks.Data)
			}
			return err
		}
		q, ok, err = t.lastQuestion(v, e)
		return err
	})
	return q, agreed, ok, err
}

// lastQuestion returns the last question that the author of a message was asked, if
// the message is the next one of theirs, and can answer nothing else: not what
// others said among themselves, nor what the bot began by itself.
func (t *turn) lastQuestion(v core.View, e *core.Entry) (q question, ok bool, err error) {
	entries, err := v.Last(t.path, questionDepth)
	if err != nil {
		return q, false, err
	}
	for _, before := range slices.Backward(entries) {
		q, _, asks := parseQuestion(before.Data)
		switch {
		case before.Message.Seq >= e.Message.Seq, before.Kind == core.KindCommand, before.Kind == core.KindMembership:
		case impulsive(before.Kind):
			return q, false, nil
		case before.Self && asks && before.Kind == core.KindMessage:
			if mine, err := t.wasAsked(v, q); mine || err != nil {
				return q, mine, err
			}
		case before.Self:
		case before.Message.Author.ID == e.Message.Author.ID, !toUs(&e.Message):
			return q, false, nil
		}
	}
	return q, false, nil
}

// wasAsked reports whether the question is put to the person whose turn it is.
func (t *turn) wasAsked(v core.View, q question) (bool, error) {
	records, err := v.Journal(core.TurnID{Path: t.path, Seq: q.turn})
	for _, r := range records {
		if r.Key.Round != q.round || r.Key.Step != q.step || r.Key.Part != 0 {
			continue
		}
		h, err := action.ReadHeld(r)
		return err == nil && len(h.Who.Authors) == 1 && h.Who.Authors[0].ID == t.who.Authors[0].ID, nil
	}
	return false, err
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
		Snapshot: t.snapshot, Turn: origin.id, Round: q.round, Journal: origin,
		Attaches: t.with.carrier(t.path) != nil, Guard: t.guard,
		Message: t.messages[0].Message, Answers: t.ids(), State: t.parts.State,
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
	t.strangers = t.strangers || held.Read.Strangers
	t.finished = append(t.finished, done...)
	if err := t.settle(ctx, origin, q, held, agreed); err != nil {
		return true, err
	}
	return true, t.inquire(ctx, done)
}

// note keeps in the turn's own journal that it decides the question; a former
// attempt that did so may have sent something already.
func (t *turn) note(ctx context.Context, origin *journal, q question) error {
	key := core.Key{Turn: t.id, Round: decisionRound}
	before, ok := t.Find(key)
	switch {
	case ok && t.resumed:
		return nil
	case ok:
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
	j, t.resumed = t.place.journalOf(ctx, t.with, id, records)
	j.begun = true // with this turn
	if !t.resumed {
		j.people = append(t.causers(), t.path)
	}
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
	for _, a := range h.Who.Authors {
		j.people = t.with.person(j.people, t.path, a.ID)
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
	_, ours := t.former[core.Key{Turn: t.id, Round: decisionRound}]
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
// changed any more, in a message of its own. What was never asked is not shown.
func (t *turn) settle(ctx context.Context, origin *journal, q question, h *action.Held, agreed bool) error {
	if h.Unasked != "" {
		return nil
	}
	fate := t.fate(h, agreed)
	c := t.with.chooser(t.path)
	if c == nil {
		done := t.outcome
		err := t.execute(ctx, fateRound, t.say(fate))
		t.outcome = done
		return err
	}
	text := h.Question
	if len(text) > action.MaxQuestion {
		text = brief(text)
	}
	m := core.Sent{Path: t.path, ID: t.messages[0].Target, Text: text + "\n\n" + fate}
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
	r, ok := origin.Find(core.Key{Turn: origin.id, Round: q.round, Step: q.step, Part: questionPart + 1})
	var what core.Sent
	if ok && json.Unmarshal(r.Data, &what) == nil && what.ID != "" {
		return what.ID
	}
	return ""
}

// fate words what became of the step.
func (t *turn) fate(h *action.Held, agreed bool) string {
	step := &t.outcome[0] // what follows from it comes behind it
	switch {
	case step.Progress == core.Done:
		return "✓ Done."
	case h.Expired(t.clock()) && (agreed || t.messages[0].Self):
		return "⌛ The question has expired."
	case !agreed:
		return "✗ Cancelled."
	case step.Outcome.Text != "":
		return "✗ " + action.Shown(step.Outcome.Text)
	}
	return "✗ It did not work."
}
