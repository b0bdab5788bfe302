package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/schema"
	"synthbot/core/txt"
)

// Held is the journal's data of a step that waits, or waited, for a user: for a confirmation, or for a value of its
// payload. It has all that is needed to do the step later. Its JSON can also be read as an Outcome.
type Held struct {
	core.Outcome
	Step     core.Step  `json:"step,omitzero"`
	Who      Requester  `json:"who,omitzero"` // who asked for it, and where
	Context  core.State `json:"context,omitzero"`
	Read     Provenance `json:"read,omitzero"`
	Way      []string   `json:"way,omitempty"`
	Question string     `json:"question,omitempty"` // what the user is asked
	Asked    time.Time  `json:"asked,omitzero"`
	Expires  time.Time  `json:"expires,omitzero"`
	Asks     int        `json:"asks,omitempty"`    // how many questions the step had before this one
	Form     *Form      `json:"form,omitempty"`    // if the question asks for a value, not for a confirmation
	On       uint16     `json:"on,omitempty"`      // the step whose question it waits for; 0: its own
	Unasked  string     `json:"unasked,omitempty"` // why the user could not be asked
	Undone   bool       `json:"undone,omitempty"`  // it was done and then undone
}

// ReadHeld reads the data of a step's record.
func ReadHeld(r core.Record) (*Held, error) {
	var h Held
	if err := json.Unmarshal(r.Data, &h); err != nil {
		return nil, fmt.Errorf("held step of %s: %w", r.Key.Turn, err)
	}
	return &h, nil
}

// MayDecide reports whether a user may confirm or cancel the step: the one who asked for it,
// and admins. Moderators may decide what was asked in the name of their place.
func (h *Held) MayDecide(a core.Author) bool {
	who, _ := h.Who.Author()
	return a.Rank >= core.RankAdmin || a.ID != "" && a.ID == who.ID || h.AskedByPlace() && a.Rank >= who.Rank
}

// AskedByPlace reports whether a moderator asked for the step in the name of the place. Platforms do not say which
// one, and presses of buttons come from the moderator's own account.
func (h *Held) AskedByPlace() bool {
	who, _ := h.Who.Author()
	return who.Channel == core.ChannelLinked && who.Rank >= core.RankModerator
}

// Expired reports whether it is too late to confirm the step.
func (h *Held) Expired(now time.Time) bool { return !h.Expires.IsZero() && !now.Before(h.Expires) }

// holdForConfirmation makes a step wait for its confirmation. why comes from confirmReason.
func (e *execution) holdForConfirmation(t task, d *Definition, why string) StepResult {
	text, whole := e.Snapshot.question(d, &t.step, why)
	refused := ""
	switch {
	case t.unit:
		refused = "must be confirmed, which is not possible inside of a unit"
	case !e.Who.canConfirm():
		refused = unconfirmable
	case !whole || len(text) > maxAttached || len(text) > MaxQuestion && !e.Attaches:
		refused = "must be confirmed, and cannot be shown completely"
	}
	if refused != "" {
		return skipped(t, core.Errorf(core.Forbidden, "%s %s", d.Name, refused))
	}
	r := e.holdFor(t, d, 0)
	e.setQuestion(r.Held, t.held, text)
	return r
}

// setQuestion sets the question of a step. before is the step with its previous question, or nil.
func (r *Runtime) setQuestion(h, before *Held, question string) {
	if before != nil {
		h.Asks = before.Asks + 1
	}
	now := r.Clock()
	h.Question, h.Asked, h.Expires = question, now, now.Add(r.Expire)
}

// holdFor makes a step wait for the question of step on; 0: for its own.
func (e *execution) holdFor(t task, d *Definition, on uint16) StepResult {
	h := &Held{Outcome: core.Outcome{Action: d.Name}, Step: t.step, Who: e.Who, Read: e.Read, Way: t.way, On: on}
	if len(t.step.Conditions) > 0 {
		h.Context = e.Plan.Context
	}
	return pending(h)
}

// data returns what a step's record holds: a Held if the step waited for a user.
func (t *task) data(o core.Outcome) any {
	if t.held == nil {
		return o
	}
	h := *t.held
	h.Outcome = o
	return h
}

var errNotHeld = errors.New("no step waits there")

// Resume continues the step that waits under that number of the job's round, and the steps that depend on it, after a
// user answered its question. A form that is not complete waits for the answer to its next question. Permission,
// conditions and Check are asked again, with the job's Who or, if that names nobody, with the user who asked for the
// step. The caller has checked MayDecide. Results, errors and crashes are as with Execute.
func (r *Runtime) Resume(ctx context.Context, j Job, step uint16, a Answer) ([]StepResult, error) {
	record, ok := j.Journal.Find(core.Key{Turn: j.Turn, Round: j.Round, Step: step})
	h, err := ReadHeld(record)
	switch {
	case !ok, err == nil && h.Step.Type == "":
		return nil, fmt.Errorf("%s: %w", j.Turn, errNotHeld)
	case err != nil:
		return nil, err
	}
	if len(j.Who.Authors) == 0 {
		j.Who = h.Who
	}
	j.Plan.Context, j.Read = h.Context, h.Read
	e := r.begin(j, 0)
	isPending := record.Progress == core.ProgressPending
	agreed := a.Agreed && !(isPending && h.Expired(r.Clock()))
	waits := isPending && a.Ask != h.Asks // an earlier attempt took the answer
	if isPending && agreed && !waits && h.Form != nil {
		agreed, waits = e.fill(h, a.Text)
	}
	tasks := []task{{number: step, step: h.Step, way: h.Way, agreed: h.Form == nil, held: h}}
	tasks = append(tasks, e.readRound(step)...)
	switch {
	case waits:
		e.report(tasks[0], pending(h))
		return e.results, j.Journal.Write(ctx, e.record(step, core.ProgressPending, h))
	case !agreed && (isPending || record.Progress == core.ProgressTaken):
		why := h.cancelReason(r.Clock())
		for _, t := range tasks {
			e.report(t, e.journalResult(t, skipped(t, why)))
		}
		return e.results, nil
	case isPending:
		if err := j.Journal.Write(ctx, e.record(step, core.ProgressTaken, h)); err != nil {
			return nil, err
		}
	}
	for _, t := range tasks {
		if _, err := e.perform(ctx, t); err != nil {
			return e.results, err
		}
	}
	return e.results, nil
}

// cancelReason says why a step that was not confirmed is skipped.
func (h *Held) cancelReason(now time.Time) error {
	switch {
	case h.Unasked != "":
		return core.Errorf(core.Forbidden, "the question could not be asked: %s", h.Unasked)
	case h.Form != nil && h.Form.Misfits >= maxMisfits:
		return core.Errorf(core.Invalid, "no answer to the question was valid")
	case h.Expired(now):
		return core.Errorf(core.Forbidden, "nobody answered in time")
	}
	return core.Errorf(core.Forbidden, "it was cancelled")
}

// readRound reads what the round has done so far, and returns the tasks that wait for the step.
func (e *execution) readRound(step uint16) []task {
	var waiting []task
	for n := uint16(1); n <= maxNumber; n++ {
		r, ok := e.Journal.Find(e.key(n))
		if !ok {
			continue
		}
		e.last = n
		h, err := ReadHeld(r)
		switch {
		case err != nil:
		case h.On == step:
			waiting = append(waiting, task{number: n, step: h.Step, way: h.Way, held: h})
		case r.Progress == core.ProgressDone:
			e.outputs[h.Action] = h.Result.Output
		}
	}
	return waiting
}

// Bounds of a form.
const (
	maxChoices     = 24  // that are shown
	maxChoice      = 60  // bytes of each
	maxDescription = 300 // bytes of what a schema says about a property
	maxMisfits     = 3   // invalid answers to one question; then the form ends
)

// Form describes the question of a step that waits for values. Held.Step.Missing lists them; the
// question asks for the first one.
type Form struct {
	Choices []string `json:"choices,omitempty"` // of the value; nil: any text
	Misfits int      `json:"misfits,omitempty"` // invalid answers to this question
}

// Answer is a user's answer to the question of a step that waits.
type Answer struct {
	Agreed bool   // false: the step is cancelled
	Ask    int    // the Held.Asks of the question
	Text   string // to a form: the value, or the number of a choice
}

// missing returns the required properties that the user is to be asked for, in the schema's order, and removes them
// from the payload. If another one is missing, it returns nil: no answer could make the payload valid.
func (c *checker) missing(d *Definition, payload map[string]any) []string {
	d.input.FillDefaults(payload)
	var names []string
	for _, name := range d.required {
		v, there := payload[name]
		isNamed := func(slot string) bool { return Normal(slot) == Normal(name) }
		named := slices.ContainsFunc(c.context.SlotsRequired, isNamed)
		switch {
		case there && v != nil && (v != "" || !named):
		case !slices.Contains(d.askable, name), !there && !named:
			return nil
		default:
			names = append(names, name)
		}
	}
	for _, name := range names {
		delete(payload, name)
	}
	return names
}

func (d *Definition) property(name string) map[string]any {
	p := d.properties[name]
	if ref, ok := p["$ref"].(string); ok {
		p, _ = schema.Resolve(d.input.Root, ref).(map[string]any)
	}
	return p
}

// The choices of a boolean.
const (
	FormYes = "Yes"
	FormNo  = "No"
)

// IsYesOrNo reports whether the question is answered by yes or no.
func (f *Form) IsYesOrNo() bool { return slices.Equal(f.Choices, []string{FormYes, FormNo}) }

// choices returns the labels of the values that users choose from for a property; nil if they write the value.
func (d *Definition) choices(name string) (labels []string) {
	p := d.property(name)
	if p["type"] == "boolean" {
		return []string{FormYes, FormNo}
	}
	values, _ := p["enum"].([]any)
	for _, v := range values {
		label, ok := v.(string)
		if !ok {
			label = string(core.JSON(v))
		}
		if len(label) > maxChoice || shown(label) != label {
			return nil
		}
		labels = append(labels, label)
	}
	if len(labels) > maxChoices {
		return nil
	}
	return labels
}

// askForValue makes a step wait for a value of its payload. One form is filled in at a time: later ones wait for it.
func (e *execution) askForValue(t task, d *Definition) StepResult {
	if t.unit || !e.Who.canConfirm() {
		return skipped(t, core.Errorf(core.Invalid, "%s needs %s, and nobody can be asked for it",
			d.Name, strings.Join(t.step.Missing, ", ")))
	}
	if e.form != 0 {
		return e.holdFor(t, d, e.form)
	}
	e.form = t.number
	r := e.holdFor(t, d, 0)
	r.Held.Form = new(Form)
	e.askFor(r.Held, t.held, d, "")
	return r
}

// askFor sets the question for the first missing value. problem says why the previous answer was refused.
func (r *Runtime) askFor(h, before *Held, d *Definition, problem string) {
	name := h.Step.Missing[0]
	about, _ := d.property(name)["description"].(string)
	lines := []string{shown(d.Title()) + " – " + shown(d.label(name)) + "?"}
	if problem != "" {
		lines = slices.Insert(lines, 0, shown(txt.Clip(problem, maxDescription)))
	}
	if about != "" {
		lines = append(lines, shown(txt.Clip(strings.Join(strings.Fields(about), " "), maxDescription)))
	}
	r.setQuestion(h, before, strings.Join(lines, "\n"))
	h.Form.Choices = d.choices(name)
}

// fill sets the value that a form asks for to an answer. waits says that the form has another
// question; agreed is false if the form ends because no answer was valid.
func (e *execution) fill(h *Held, answer string) (agreed, waits bool) {
	d, ok := e.Snapshot.Resolve(h.Step.Type)
	if !ok {
		return true, false // checkBefore skips the step
	}
	name := h.Step.Missing[0]
	payload := decodePayload(h.Step.Payload)
	payload[name] = d.value(name, answer)
	for _, f := range d.input.Accept(payload) {
		if f.Field() != "."+name {
			continue
		}
		h.Form.Misfits++
		if h.Form.Misfits == maxMisfits {
			return false, false
		}
		e.askFor(h, h, d, "“"+txt.Clip(answer, maxChoice)+"” "+misfitText(f, answer, h.Form.Choices))
		return true, true
	}
	h.Step.Payload, h.Step.Missing, h.Form.Misfits = core.JSON(payload), h.Step.Missing[1:], 0
	e.Read.AddWords(answer)
	h.Read = e.Read
	if len(h.Step.Missing) > 0 {
		e.askFor(h, h, d, "")
	}
	return true, len(h.Step.Missing) > 0
}

// misfitText says what is wrong with an answer, as the end of a sentence.
func misfitText(f schema.Violation, answer string, choices []string) string {
	switch {
	case choices != nil:
		return "is not one of the choices"
	case f.Keyword == "type":
		return "is not a number"
	}
	return strings.TrimPrefix(f.Text, answer+" ")
}

// value reads an answer: one of the choices, its number, or a text that the schema judges.
func (d *Definition) value(name, answer string) any {
	labels := d.choices(name)
	i := slices.IndexFunc(labels, func(l string) bool { return strings.EqualFold(l, answer) })
	if n, err := strconv.Atoi(answer); i < 0 && err == nil && 0 < n && n <= len(labels) {
		i = n - 1
	}
	p := d.property(name)
	values, _ := p["enum"].([]any)
	switch {
	case i >= 0 && values != nil:
		return values[i]
	case i >= 0:
		return labels[i] == FormYes
	case p["type"] == "number", p["type"] == "integer":
		if n, err := schema.Decode(json.RawMessage(answer)); err == nil {
			return schema.Integer(n)
		}
	}
	return answer
}
