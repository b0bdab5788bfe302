package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/plan"
	"synthbot/core/prompt"
)

// lastRound is the round after which nothing is asked any more; it offers
// message actions only.
const lastRound = 3

// accepted is the record of a round's plan.
type accepted struct {
	core.Plan
	Read action.Reading `json:"read,omitzero"`
}

// plan returns the round's accepted plan: the journalled one, or what the model
// says now. It is accepted with the first record that is written after it.
func (t *turn) plan(ctx context.Context, round uint16) (core.Plan, error) {
	key := core.Key{Turn: t.id, Round: round}
	if r, _ := t.Find(key); r.Progress == core.Accepted {
		var a accepted
		if err := json.Unmarshal(r.Data, &a); err != nil {
			return a.Plan, fmt.Errorf("journalled plan of %s: %w", t.id, err)
		}
		t.reads(a.Read)
		return a.Plan, nil
	}
	asked := t.clock()
	p, ok, err := t.scripted(ctx)
	if err != nil {
		return p, err
	}
	var read action.Reading
	if !ok {
		if t.parts.Interface == "" {
			t.gather(ctx)
		}
		t.parts.Actions = t.offer(round)
		read = t.whatWasRead()
		if p, err = t.think(ctx, round); err != nil {
			return p, err
		}
	}
	t.reads(read)
	r := t.record(key, core.Accepted, accepted{p, read})
	r.Time = asked
	t.Later(r)
	t.trace.Plans = append(t.trace.Plans, p)
	return p, nil
}

// think asks for a plan; until one was accepted, a deletion of what is thought
// about ends it.
func (t *turn) think(ctx context.Context, round uint16) (core.Plan, error) {
	t.move(core.Thinking)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if round == 1 && len(t.origins) == 0 { // what was accepted is carried out, and told
		t.thinking(cancel)
		defer t.thinking(nil)
	}
	var p core.Plan
	err := ctx.Err()
	if err == nil {
		p, err = t.converse(ctx, round)
	}
	if context.Cause(ctx) == errWithdrawn {
		t.giveBack()
		return p, errWithdrawn
	}
	return p, err
}

// thinking says what may be withdrawn from now on; a nil cancel: nothing.
func (t *turn) thinking(cancel context.CancelCauseFunc) {
	t.turns.mu.Lock()
	defer t.turns.mu.Unlock()
	t.cancel = cancel
	t.asking = nil
	if cancel == nil {
		return
	}
	t.asking = make(map[string]bool, len(t.messages))
	for i := range t.messages {
		id := t.messages[i].Message.ID
		t.asking[id] = true
		if t.gone[id] {
			cancel(errWithdrawn)
		}
	}
}

// converse asks the model and lets it correct itself; it comes back with a plan
// that may run, in any case.
func (t *turn) converse(ctx context.Context, round uint16) (core.Plan, error) {
	c := conversation{turn: t, round: round}
	if round == 1 && !t.inPace(ctx) {
		return t.speechless(errTooFast), nil
	}
	err := c.ask(ctx, nil)
	for try := 0; err == nil && len(c.faults) > 0 && try < t.with.Config.Attempts; try++ {
		before := c.last
		if err = c.ask(ctx, c.correction()); c.insists(before) {
			break
		}
	}
	if ctx.Err() != nil {
		return core.Plan{}, ctx.Err()
	}
	if err != nil {
		t.log.Error("no engine answered", "err", err)
		if !c.usable() {
			return t.speechless(err), nil
		}
	}
	if len(c.faults) > 0 {
		t.log.Warn("plan still wrong", "faults", c.faults)
	}
	return t.anew(c.settle()), nil
}

// conversation is the exchange with the model in one round.
type conversation struct {
	*turn
	round   uint16
	dialect core.Dialect    // of the engine that was asked last
	calls   []core.ToolCall // of its last words
	first   string          // its first words
	last    string
	best    core.Plan // the latest plan of which something may run
	faults  []core.Fault
}

// ask puts the prompt, or a correction of it, to the engines and reads the plan.
func (c *conversation) ask(ctx context.Context, correct func(*prompt.Prompt) core.Request) error {
	began := time.Now()
	var sections []core.Section
	answer, err := c.with.Asker.Ask(ctx, core.Question{
		Path: c.path, People: c.causers(), Unshown: c.who.Mute,
		Build: func(l core.Limits) (core.Request, error) {
			c.dialect = l.Dialect
			p, err := c.build(l)
			if err != nil {
				return core.Request{}, err
			}
			sections = p.Sections()
			if correct != nil {
				return correct(&p), nil
			}
			return p.Request(), nil
		},
	})
	if err == nil {
		c.hear(ctx, answer)
	}
	c.traced(time.Since(began), answer, sections, err)
	return err
}

// build makes the prompt for an engine. Where many waited and it has no room for all
// that they said, however shortened, it is told of the latest of them.
func (c *conversation) build(l core.Limits) (p prompt.Prompt, err error) {
	parts := c.parts
	for {
		p, err = prompt.Build(parts, l)
		var long *core.ModelError
		n := len(parts.Messages)
		if n <= mergeAbove || !errors.As(err, &long) || long.Kind != core.TooLong {
			return p, err
		}
		parts.Messages = parts.Messages[n/2:]
		parts.Standing = append(slices.Clip(c.parts.Standing), fmt.Sprintf(
			"There is no room for all that waited: %d earlier messages are not shown.", len(c.parts.Messages)-len(parts.Messages)))
	}
}

// insists reports whether the model said the same words again, which are fit for
// people: it will not say them as a plan.
func (c *conversation) insists(before string) bool {
	_, prose := plan.Prose(c.last)
	return prose && c.last == before && len(c.calls) == 0
}

// hear reads an answer: its plan is validated whole, and looked at by reviewers.
func (c *conversation) hear(ctx context.Context, a core.Answer) {
	p, faults := plan.Read(a, c.with.Keys...)
	if prose, ok := plan.Prose(a.Text); ok && c.dialect == core.DialectTools && len(a.Calls) == 0 && len(faults) > 0 {
		p, faults = core.Plan{Response: prose}, nil // in this dialect text is how one speaks
	}
	who := c.who
	who.State = c.parts.State
	checked, more := c.snapshot.Check(p, who)
	checked, late := c.inTime(checked)
	c.faults = slices.Concat(faults, more, late)
	if len(faults) > 0 && len(p.Steps) == 0 && p.Response == "" {
		c.faults = faults // an empty plan's own faults say nothing new
	}
	checked, more = c.snapshot.Review(ctx, c.who, checked, c.log)
	c.faults = append(c.faults, more...)
	if a.Truncated {
		c.faults = append(c.faults, core.Fault{Text: "the reply was cut off in the middle: it is too long; answer in fewer words"})
	}
	if len(checked.Steps) > 0 || len(c.faults) == 0 {
		c.best = checked
	}
	if len(more) > 0 {
		c.best.Steps = nil // it went back: nothing of it runs as it is
	}
	c.last, c.calls = a.Text, a.Calls
	if c.first == "" {
		c.first = a.Text
	}
	c.log.Debug("answer", "engine", a.Engine, "text", a.Text, "faults", c.faults)
}

// inTime leaves out of a plan what is no message when it is too late for it: nobody
// would tell what came of it any more.
func (c *conversation) inTime(p core.Plan) (core.Plan, []core.Fault) {
	if c.round < lastRound {
		return p, nil
	}
	var faults []core.Fault
	p.Steps = slices.DeleteFunc(p.Steps, func(s core.Step) bool {
		d, _ := c.snapshot.Resolve(s.Type) // it was checked
		_, control := action.Control(s.Type)
		late := !control && !d.IsMessage()
		if late {
			faults = append(faults, core.Fault{Field: "actions", Text: s.Type + " is not to be had any more: tell the person now what came of what was done"})
		}
		return late
	})
	return p, faults
}

func (c *conversation) usable() bool { return len(c.best.Steps) > 0 }

// settle takes what may run; where that is nothing, the model's own words if
// they are fit for people, else an apology.
func (c *conversation) settle() core.Plan {
	if c.usable() || len(c.faults) == 0 {
		return c.best
	}
	for _, text := range []string{c.last, c.first} {
		if prose, ok := plan.Prose(text); ok {
			return c.say(prose)
		}
	}
	if c.unasked() {
		return core.Plan{}
	}
	return c.say(lost)
}

// correction words what was wrong with the last reply.
func (c *conversation) correction() func(*prompt.Prompt) core.Request {
	x := prompt.Correction{Faults: c.faults, Reply: c.last, Calls: c.calls}
	for _, d := range c.snapshot.Concerned(c.faults) {
		x.Actions = append(x.Actions, prompt.CorrectionAction{Name: d.Name, Brief: d.Brief, Schema: d.Minified, Examples: d.Examples})
	}
	return func(p *prompt.Prompt) core.Request {
		x.Prompt = p
		return x.Request()
	}
}

// say is a plan of one message to the place.
func (t *turn) say(text string) core.Plan {
	p, faults := t.snapshot.Check(core.Plan{Response: text}, t.who)
	if len(faults) > 0 {
		t.log.Error("no way to say it", "faults", faults)
	}
	return p
}

// causers are those who caused the turn; none: the bot itself.
func (t *turn) causers() (all []core.Path) {
	for _, a := range t.who.Authors {
		all = t.with.person(all, t.path, a.ID)
	}
	return all
}

// person is who caused the turn; the zero Path where that is nobody or many.
func (t *turn) person() core.Path {
	if len(t.who.Authors) != 1 {
		return core.Path{}
	}
	p, err := t.path.Person(t.who.Authors[0].ID)
	if err != nil {
		return core.Path{}
	}
	return p
}

// Lines of our own, for when no model has any.
const done = "Done."
const doubt = "I lost the connection while I was answering: a message of mine may be missing, or be there more than once."
const lost = "Sorry, I lost my thread there. Could you say that again, maybe in other words?"

// trouble words an engine's failure for people: kind, short, and with a code
// that the log explains.
func trouble(err error) string {
	var said *core.Error
	if errors.As(err, &said) && said.Text != "" {
		return said.Text // a budget's, written for people
	}
	code := "E-ENGINE"
	var m *core.ModelError
	if errors.As(err, &m) {
		switch m.Kind {
		case core.TooLong:
			return "Sorry, that is more than I can read at once. Could you say it in fewer words? (E-LONG)"
		case core.RetryLater:
			code = "E-BUSY"
		case core.Refused:
			code = "E-REFUSED"
		}
	}
	return "Sorry, I can't think straight just now. Please try again in a little while. (" + code + ")"
}

// execute carries the round's plan out.
func (t *turn) execute(ctx context.Context, round uint16, p core.Plan) error {
	t.move(core.Acting)
	done, err := t.with.Runtime.Execute(ctx, action.Job{
		Snapshot: t.snapshot, Turn: t.id, Round: round, Plan: p, Read: t.reading, Who: t.who, Journal: t.journal,
		Attaches: t.with.carrier(t.path) != nil, Guard: t.guard,
		Message: t.messages[len(t.messages)-1].Message, Answers: t.ids(), State: t.parts.State,
	})
	if err != nil {
		return fmt.Errorf("round %d: %w", round, err)
	}
	t.outcome = done
	t.finished = append(t.finished, done...)
	if p.Intent != "" {
		t.intent, t.confidence = p.Intent, 0
	}
	if p.Confidence != nil {
		t.confidence = *p.Confidence
	}
	t.about = plan.Merge(t.about, t.clock(), t.clock(), 0, p.Context)
	return t.inquire(ctx, done)
}
