package action

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"synthbot/core"
	"synthbot/core/schema"
	"synthbot/core/txt"
)

// Bounds of a form.
const (
	maxChoices     = 24  // that are shown
	maxChoice      = 60  // bytes of each
	maxDescription = 300 // bytes of what a schema says about a property
	maxMisfits     = 3   // answers to one question that do not fit; then the form ends
)

// Form is what a step that waits for a value knows besides. Step.Missing lists what it waits for,
// the value that it asks for first.
type Form struct {
	Choices []string `json:"choices,omitempty"` // of the value; nil: any text
	Misfits int      `json:"misfits,omitempty"` // answers that did not fit
}

// Answer is a user's answer to the question of a step that waits.
type Answer struct {
	Agreed bool   // false: the step is cancelled
	Ask    int    // the Held.Asks of the question
	Text   string // to a form: the value, or the number of a choice
}

// missing returns the required properties that a payload does not have and a user can be asked
// for, in the schema's order. It takes them out of the payload. Without all of them the payload
// cannot become valid: then it returns nil. The plan asks for a property by a null, or by its
// name in slotsRequired.
func (c *checker) missing(d *Definition, payload map[string]any) []string {
	d.input.FillDefaults(payload)
	var names []string
	for _, name := range d.required {
		v, there := payload[name]
		isNamed := func(slot string) bool { return normal(slot) == normal(name) }
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

// property returns the schema of a property.
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

// choices returns the values of a property that users choose from, as they read them; nil if
// they write it.
func (d *Definition) choices(name string) (labels []string) {
	p := d.property(name)
	if p["type"] == "boolean" {
		return []string{FormYes, FormNo}
	}
	values, _ := p["enum"].([]any)
	for _, v := range values {
		label := strings.Trim(string(core.JSON(v)), `"`)
		if text, ok := v.(string); ok {
			label = text
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

// ask makes a step wait for a value that its payload needs. One form is filled in at a time:
// later ones wait for it.
func (e *execution) ask(t task, d *Definition) *StepResult {
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

// askFor words the question for the first value that is missing. problem says what is wrong with
// the answer to the question before.
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
	r.pose(h, before, strings.Join(lines, "\n"))
	h.Form.Choices = d.choices(name)
}

// fill takes an answer as the value that a form asks for. waits says that the form has another
// question; agreed is false if it ends here, as no answer fitted.
func (e *execution) fill(h *Held, answer string) (agreed, waits bool) {
	d, ok := e.Snapshot.Resolve(h.Step.Type)
	if !ok {
		return true, false // and then the action is gone
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
		e.askFor(h, h, d, "“"+txt.Clip(answer, maxChoice)+"” "+misfit(f, answer, h.Form.Choices))
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

// misfit says for users why a value does not fit.
func misfit(f schema.Violation, answer string, choices []string) string {
	switch {
	case choices != nil:
		return "is none of the choices"
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
