package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/llm"
	"synthbot/core/plan"
	"synthbot/core/prompt"
	"synthbot/core/txt"
	"synthbot/core/watch"
)

// exchange holds the prompts to the model and its answers in one round.
type exchange struct {
	turn     *turn
	round    uint16
	dialect  llm.Dialect // of the engine that was asked last
	reviewed bool        // the reviewers were asked
	first    string      // the first answer
	last     llm.Answer
	best     core.Plan // the latest plan of which something may run
	faults   []core.Fault
}

// ask gathers what the prompt needs, asks the model for a plan, and lets it correct faults. Unless ctx ends, it
// always returns a plan that may run. In the first round, it ends if one of the messages is deleted. Meanwhile the
// interface shows the bot as typing.
func (t *turn) ask(ctx context.Context, round uint16) (a accepted, err error) {
	t.input.gather(ctx)
	t.input.parts.Actions = t.input.offer(round)
	a.Read = t.input.provenance()
	t.notify(watch.StageThinking)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if round == firstRound && len(t.decided) == 0 { // later, the results of steps must be reported
		t.worker.setAsking(t.messages, cancel)
		defer t.worker.setAsking(nil, nil)
	}
	if round == firstRound && !t.waitForLimit(ctx) && ctx.Err() == nil {
		a.Plan = t.fallbackReply(errTooFast)
		return a, nil
	}
	if !t.who.Mute {
		defer ShowTyping(ctx, t.setup.Places.Typing(t.path), t.path, t.log)()
	}
	c := exchange{turn: t, round: round}
	var correction *prompt.Correction
	err = ctx.Err()
	for try := 0; err == nil; try++ {
		var answer llm.Answer
		began, before, trace := time.Now(), c.last.Text, watch.Ask{Round: int(round)}
		answer, err = t.setup.Asker.Ask(ctx, core.Question{
			Path: t.path, People: t.causers(), Behind: t.worker.usersBehind, Unshown: t.who.Mute,
			Build: func(l llm.Limits) (llm.Request, error) { return c.request(l, correction, &trace) },
		})
		if err != nil {
			trace.Err = err.Error()
		} else {
			c.check(answer)
		}
		c.note(trace, answer, time.Since(began))
		_, prose := plan.Prose(answer.Text)
		insists := prose && answer.Text == before && len(answer.Calls) == 0 // on a text that users can read
		if len(c.faults) == 0 || insists || try == t.setup.Config.Attempts {
			break
		}
		correction = c.correction()
	}
	if ctx.Err() != nil {
		return a, context.Cause(ctx)
	}
	a.Plan = c.outcome(err)
	return a, nil
}

// note adds an answer to the trace of the turn.
func (c *exchange) note(trace watch.Ask, answer llm.Answer, took time.Duration) {
	if trace.Err == "" {
		for _, f := range c.faults {
			trace.Faults = append(trace.Faults, f.String())
		}
	}
	trace.Engine, trace.Took, trace.Usage, trace.Failed = answer.Engine, took, answer.Usage, answer.Failed
	c.turn.trace.Thought += took
	c.turn.trace.Asks = append(c.turn.trace.Asks, trace)
}

// outcome returns the plan to run. err is why no engine answered the last request; nil: one did.
func (c *exchange) outcome(err error) core.Plan {
	t := c.turn
	if err != nil {
		if !isLimit(err) {
			t.log.Error("no engine answered", "err", err)
		}
		if len(c.best.Steps) == 0 {
			return t.fallbackReply(err)
		}
	}
	if len(c.faults) > 0 {
		t.log.Warn("plan still wrong", "faults", c.faults)
		if len(c.best.Steps) == 0 {
			c.best = c.ownWords()
		}
	}
	if len(t.results.all) > 0 {
		c.best = t.results.dropRepeated(c.best)
	}
	for _, e := range t.setup.Plugins.Editors {
		guard(t.log, "edit", func() { c.best = e.Edit(t.who, c.best) })
	}
	return c.best
}

// request returns the request to an engine: the prompt, shortened if it is too long, or a correction. It adds its
// contents to the trace.
func (c *exchange) request(l llm.Limits, correction *prompt.Correction, trace *watch.Ask) (r llm.Request, err error) {
	t := c.turn
	c.dialect = l.Dialect
	parts := &t.input.parts
	p, err := prompt.Build(parts, l)
	for isTooLong(err) && (!parts.Lite || len(parts.Messages) > mergeAbove) {
		parts = t.input.fewerParts(parts)
		p, err = prompt.Build(parts, l)
	}
	if err != nil {
		return r, err
	}
	trace.Sections = p.Sections()
	r = p.Request()
	if correction != nil {
		correction.Prompt = new(p)
		r = correction.Request()
	}
	if len(t.setup.Plugins.Watchers) > 0 {
		trace.Prompt = promptParts(&r)
	}
	switch {
	case l.Dialect == llm.DialectTools:
	case l.Schemas == llm.StructureNone:
		r.Schema = json.RawMessage("{}")
	default:
		r.Schema = t.snapshot.ReplySchema(p.Offered, t.setup.Plugins.Keys, l.Schemas == llm.StructureStrict)
	}
	return r, nil
}

func isTooLong(err error) bool {
	e, ok := errors.AsType[*llm.Error](err)
	return ok && e.Kind == llm.ErrorTooLong
}

// fewerParts returns the parts of a shorter prompt: essential actions only, then only the latest half of the messages.
func (in *input) fewerParts(parts *prompt.Parts) *prompt.Parts {
	fewer := new(*parts)
	if parts.Lite {
		fewer.Messages = parts.Messages[len(parts.Messages)/2:]
		fewer.Standing = append(slices.Clip(in.parts.Standing), fmt.Sprintf(
			"There is no room for all that waited: %d earlier messages are not shown.",
			len(in.parts.Messages)-len(fewer.Messages)))
	}
	fewer.Lite = true
	return fewer
}

// check reads an answer and validates its whole plan.
func (c *exchange) check(a llm.Answer) {
	p, faults := plan.Read(a, c.turn.setup.Plugins.Keys...)
	if len(faults) > 0 && len(a.Calls) == 0 && c.dialect == llm.DialectTools {
		if prose, ok := plan.Prose(a.Text); ok { // in this dialect text alone is an answer
			p, faults = core.Plan{Response: prose}, nil
		}
	}
	if a.Truncated && p.Response != "" {
		p.Response += "…" // in case it is sent
	}
	t := c.turn
	who := t.who
	who.State = t.input.parts.State
	checked, more := t.snapshot.Check(p, who)
	c.faults = slices.Concat(faults, more)
	if c.round == lastRound {
		checked = c.dropLateSteps(checked)
	}
	if len(c.faults) == 0 && len(t.results.all) > 0 && t.results.repeatedBy(checked) {
		c.faults = []core.Fault{{
			Field: "actions",
			Text:  "all of it was done already, and the outputs are above: tell the user now what matters of them",
		}}
	}
	if len(faults) > 0 && len(p.Steps) == 0 && p.Response == "" {
		c.faults = faults // an empty plan's own faults say nothing new
	}
	if len(c.faults) == 0 && !c.reviewed { // once: the model may insist on its plan
		c.reviewed = true
		d := action.Draft{Who: t.who, Plan: checked}
		for _, done := range t.results.all {
			d.Done = append(d.Done, done.Action)
		}
		for _, r := range t.setup.Plugins.Reviewers {
			guard(t.log, "review", func() { c.faults = append(c.faults, r.Review(d)...) })
		}
	}
	if a.Truncated {
		c.faults = append(c.faults, core.Fault{
			Text: "the reply was cut off in the middle: it is too long; answer in fewer words",
		})
	}
	if len(checked.Steps) > 0 || len(c.faults) == 0 {
		c.best = checked
	}
	c.last, c.first = a, cmp.Or(c.first, a.Text)
	t.log.Debug("answer", "engine", a.Engine, "text", a.Text, "faults", c.faults)
}

// dropLateSteps leaves only messages in the plan of the last round: the model could not report other results.
func (c *exchange) dropLateSteps(p core.Plan) core.Plan {
	p.Steps = slices.DeleteFunc(p.Steps, func(s core.Step) bool {
		d, _ := c.turn.snapshot.Resolve(s.Type) // it was checked
		_, control := action.Control(s.Type)
		late := !control && !d.IsMessage()
		if late {
			c.faults = append(c.faults, core.Fault{
				Field: "actions",
				Text:  s.Type + " is no longer available: tell the user now about the results so far",
			})
		}
		return late
	})
	return p
}

// ownWords returns the plan if no step may run: the model's text if users can read it, what was done, or an apology.
func (c *exchange) ownWords() core.Plan {
	for _, text := range []string{c.last.Text, c.first} {
		if prose, ok := plan.Prose(text); ok {
			return c.turn.planText(prose)
		}
	}
	if c.turn.unasked() {
		return core.Plan{}
	}
	return c.turn.planText(cmp.Or(c.turn.results.report(), lostText))
}

// correction returns the message to the model about the faults of its last reply.
func (c *exchange) correction() *prompt.Correction {
	x := &prompt.Correction{Faults: c.faults, Reply: c.last.Text, Calls: c.last.Calls}
	for _, d := range c.turn.snapshot.Concerned(c.faults) {
		x.Actions = append(x.Actions, prompt.CorrectionAction{
			Name: d.Name, Brief: d.Brief, Schema: d.CorrectionSchema(), Examples: d.Examples,
		})
	}
	return x
}

// fallbackReply returns the plan if no engine answered: a reminder in its own words, or for users what was done before,
// and an excuse. Overheard messages and beats get nothing. Limits are mentioned once in a while only.
func (t *turn) fallbackReply(err error) core.Plan {
	e, done := &t.messages[0], t.results.report()
	switch {
	case t.unasked():
		return core.Plan{}
	case e.Kind == core.KindReminder && e.Message.Text != "":
		text := e.Message.Text
		waited, late := t.setup.waited(e), lateBy(e)
		if waited >= remindedLate {
			end := strings.LastIndex(text, " (")
			if late > 0 && end > 0 { // the delay until it was received
				text = text[:end]
			}
			text += " (late by " + txt.SpanWords((late + waited).Round(time.Minute)) + ")"
		}
		return t.planText(paragraphs("⏰ "+text, done))
	}
	excuse := failureText(err, done != "")
	if isLimit(err) && !t.turns.limiter.claimNotice(t.causers(), t.setup.Clock()) {
		excuse = ""
	}
	if done == "" && excuse == "" {
		p, _ := t.snapshot.Check(core.Plan{Steps: []core.Step{{Type: action.Ignore}}}, t.who)
		return p
	}
	return t.planText(paragraphs(done, excuse))
}

// paragraphs returns two texts as one. Each may be empty.
func paragraphs(a, b string) string { return strings.TrimSpace(a + "\n\n" + b) }

// planText is a plan of one message to the place.
func (t *turn) planText(text string, suggestions ...string) core.Plan {
	p, faults := t.snapshot.Check(core.Plan{Response: text, Suggestions: suggestions}, t.who)
	if len(faults) > 0 {
		t.log.Error("text cannot be sent", "faults", faults)
	}
	return p
}

// causers returns the users who caused the turn; none if the bot did.
func (t *turn) causers() (all []core.Path) {
	for _, a := range t.who.Authors {
		all = addPerson(all, t.path, a.ID)
	}
	return all
}

// person returns the user who caused the turn; the zero Path if nobody or several did.
func (t *turn) person() core.Path {
	author, _ := t.who.Author()
	p, _ := t.path.Person(author.ID)
	return p
}

// Replies if the model has none.
const (
	doneText  = "Done."
	doubtText = "I lost the connection while I was answering: " +
		"a message of mine may be missing, or be there more than once."
	lostText = "Sorry, I lost my thread there. Could you say that again, maybe in other words?"
)

// failureText returns the text for users about an engine's failure, with a code for its kind. done says that they read
// what was done, and need not ask for it again.
func failureText(err error, done bool) string {
	if said, ok := errors.AsType[*core.Error](err); ok && said.Text != "" {
		return said.Text // of a budget
	}
	code := "E-ENGINE"
	if m, ok := errors.AsType[*llm.Error](err); ok {
		codes := map[llm.ErrorKind]string{
			llm.ErrorTooLong: "E-LONG", llm.ErrorRetryLater: "E-BUSY", llm.ErrorRefused: "E-REFUSED",
		}
		code = cmp.Or(codes[m.Kind], code)
	}
	switch {
	case done:
		return "I can't say more about it just now. (" + code + ")"
	case code == "E-LONG":
		return "Sorry, that is more than I can read at once. Could you say it in fewer words? (E-LONG)"
	case code == "E-REFUSED":
		return "Sorry, my language model does not answer this. (E-REFUSED)"
	}
	return "Sorry, I can't think straight just now. Please try again in a little while. (" + code + ")"
}
