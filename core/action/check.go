package action

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"synthbot/core"
)

// Properties of a payload that mean the same in every action.
const (
	textKey        = "text"
	messageKey     = "message" // older than textKey
	pathKey        = "interface_path"
	recipientKey   = "recipient"
	suggestionsKey = "suggestions"
	targetKey      = "target"
)

// maxFallbacks is how long a chain of fallbacks may be.
const maxFallbacks = 4

// Resolver is the ability of an interface to find a place by what people call
// it ("#general", "@ann"), as seen from another place. It returns at once.
type Resolver interface {
	Find(from core.Path, name string) (core.Path, error)
}

// Check normalises and validates a whole plan. The returned plan holds the
// steps that may run, under their canonical names, ready to be journalled; the
// faults say what is wrong with the rest. Nothing is executed. Of a repaired
// plan only messages are left.
func (s *Snapshot) Check(p core.Plan, w Requester) (core.Plan, []core.Fault) {
	c := checker{Snapshot: s, who: w, repaired: p.Repaired, context: p.Context}
	steps := make([]core.Step, 0, len(p.Steps)+1)
	for i := range p.Steps {
		if step, ok := c.step(fmt.Sprintf("actions[%d]", i), p.Steps[i], 0); ok {
			steps = append(steps, step)
		}
	}
	p.Steps = c.respond(p.Response, c.once(steps))
	c.stray(p.Extra, p.Steps)
	p.Response, p.Extra = "", nil
	c.offerReplies(p.Suggestions, p.Steps)
	return p, c.faults
}

// checker is one check of one plan.
type checker struct {
	*Snapshot
	who      Requester
	context  core.State // of the plan
	repaired bool
	faults   []core.Fault
}

func (c *checker) fault(field, action, format string, args ...any) {
	c.faults = append(c.faults, core.Fault{Field: field, Action: action, Text: fmt.Sprintf(format, args...)})
}

// respond makes a plan's response its first message, unless a message says so
// already.
func (c *checker) respond(response string, steps []core.Step) []core.Step {
	if response == "" || c.who.Mute || c.said(response, steps, true) {
		return steps
	}
	d, ok := c.Message(c.who.Path.Interface())
	if !ok {
		c.fault("response", "", "nothing here can send a message")
		return steps
	}
	payload := encode(map[string]any{textKey: response})
	step, ok := c.step("response", core.Step{Type: d.Name, Payload: payload, Priority: core.DefaultPriority}, 0)
	if !ok {
		return steps
	}
	return slices.Insert(steps, 0, step)
}

// message returns what a step says, and where; "" where it is no message.
func (c *checker) message(step *core.Step) (text string, to core.Path) {
	d, ok := c.Resolve(step.Type)
	if !ok || !d.IsMessage() {
		return "", core.Path{}
	}
	var m struct {
		Text string    `json:"text"`
		Path core.Path `json:"interface_path"`
	}
	if json.Unmarshal(step.Payload, &m) != nil {
		return "", core.Path{}
	}
	if m.Path.IsZero() {
		m.Path = c.who.Path
	}
	return m.Text, m.Path
}

// stray drops what only repeats a message, and refuses all other keys that
// nobody registered.
func (c *checker) stray(extra map[string]json.RawMessage, steps []core.Step) {
	keys := make([]string, 0, len(extra))
	for k, v := range extra {
		var text string
		if json.Unmarshal(v, &text) == nil && strings.TrimSpace(text) != "" && c.said(text, steps, false) {
			continue
		}
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		action := ""
		if d, ok := c.Resolve(k); ok {
			action = d.Name
		}
		if len(k) > 64 {
			k = strings.ToValidUTF8(k[:64], "") + "…"
		}
		c.fault(k, action, "unknown top-level key; what is to be done belongs into actions")
	}
}

// offerReplies hands the plan's suggestions to the last message here, where the
// interface can show them.
func (c *checker) offerReplies(suggestions []string, steps []core.Step) {
	if len(suggestions) == 0 {
		return
	}
	for i := range slices.Backward(steps) {
		d, ok := c.Resolve(steps[i].Type)
		if !ok || !d.IsMessage() || !d.has(suggestionsKey) {
			continue
		}
		v, _ := decode(steps[i].Payload)
		payload, _ := v.(map[string]any)
		if payload[suggestionsKey] != nil || payload[pathKey] != c.who.Path.String() {
			continue
		}
		list := make([]any, len(suggestions))
		for i, s := range suggestions {
			list[i] = s
		}
		payload[suggestionsKey] = list
		if len(d.input.check(payload)) == 0 {
			steps[i].Payload = encode(payload)
		}
		return
	}
}

// step checks one step, with its fallbacks.
func (c *checker) step(field string, step core.Step, chain int) (core.Step, bool) {
	if name, ok := Control(step.Type); ok && chain == 0 {
		before := len(c.faults)
		c.conditions(field, &step)
		return core.Step{Type: name, Priority: step.Priority, Conditions: step.Conditions}, len(c.faults) == before
	}
	d, ok := c.resolve(field, step)
	if !ok {
		return step, false
	}
	step.Type = d.Name
	before := len(c.faults)
	if c.repaired && !d.IsMessage() {
		c.fault(field, d.Name, "the answer was no whole JSON and had to be mended; send the whole plan again")
		return step, false
	}
	c.payload(field, d, &step)
	c.conditions(field, &step)
	if len(c.faults) > before {
		return step, false
	}
	c.fallback(field, &step, chain)
	return step, true
}

// resolve finds a step's action.
func (c *checker) resolve(field string, step core.Step) (*Definition, bool) {
	if d, ok := c.Resolve(step.Type); ok {
		return d, true
	}
	if normal(step.Type) == "message" {
		if d, ok := c.generic(step); ok {
			return d, true
		}
	}
	if near := c.suggest(step.Type, c.who); near != nil {
		c.fault(field+".type", near.Name, "there is no action %q; did you mean %s?", step.Type, near.Name)
	} else {
		c.fault(field+".type", "", "there is no action %q; use one of the actions on offer", step.Type)
	}
	return nil, false
}

// generic is the message action that the generic "message" means: that of the
// interface it is addressed to, else of the current one.
func (c *checker) generic(step core.Step) (*Definition, bool) {
	iface := c.who.Path.Interface()
	var m struct {
		Path string `json:"interface_path"`
	}
	if json.Unmarshal(step.Payload, &m) == nil {
		if p, err := c.path(m.Path, c.who); err == nil {
			iface = p.Interface()
		}
	}
	return c.Message(iface)
}

// payload makes a step's payload right where that is certain, and validates it.
func (c *checker) payload(field string, d *Definition, step *core.Step) {
	raw := step.Payload
	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	v, _ := decode(raw)
	payload, ok := v.(map[string]any)
	if !ok {
		c.fault(field+".payload", d.Name, "must be an object")
		return
	}
	before := len(c.faults)
	c.aim(field, d, step, payload)
	c.address(field+".payload", d, payload)
	c.person(d, payload)
	if len(c.faults) > before {
		return
	}
	if why := c.refusal(d, c.who, payload); why != "" {
		c.fault(field, d.Name, "%s %s", d.Name, why)
		return
	}
	payload = mapLeaves(payload, integer).(map[string]any)
	for _, f := range d.accept(payload) {
		c.fault(field+".payload"+dotted(f.path), d.Name, "%s", f.text)
	}
	step.Payload = encode(payload)
	c.confirmation(field, d, step)
}

// aim moves a step's target into the payload, so that it is validated, shown and
// compared like every other value. An action without such a property has no target.
func (c *checker) aim(field string, d *Definition, step *core.Step, payload map[string]any) {
	target := step.Target
	step.Target = ""
	switch {
	case target == "" || !d.has(targetKey) || payload[targetKey] == target:
	case payload[targetKey] != nil:
		c.fault(field+"."+targetKey, d.Name, "differs from payload.%s; give it once, in the payload", targetKey)
	default:
		payload[targetKey] = target
	}
}

// person fills in who is concerned, where nobody is named: who asked.
func (c *checker) person(d *Definition, payload map[string]any) {
	if who, ok := c.who.person(); ok && d.Concerns != "" && c.permission(d, c.who) == core.PermissionConcerned && payload[d.Concerns] == nil {
		payload[d.Concerns] = who.ID
	}
}

// confirmation sees to it that nothing confirmable runs for several people.
// A message to the place itself needs none.
func (c *checker) confirmation(field string, d *Definition, step *core.Step) {
	if !step.Confirm {
		return
	}
	if _, to := c.message(step); to == c.who.Path {
		step.Confirm = false
		return
	}
	if !c.who.canConfirm() {
		c.fault(field, d.Name, "%s", unconfirmable)
	}
}

// address sees to where a payload is sent: the current place where it does not
// say, and nowhere that is not permitted.
func (c *checker) address(field string, d *Definition, payload map[string]any) {
	if d.IsMessage() {
		c.words(d, payload)
		c.recipient(field, d, payload)
	}
	if value := payload[pathKey]; value != nil && value != "" {
		c.target(field+"."+pathKey, d, payload, value)
		return
	}
	delete(payload, pathKey)
	if d.has(pathKey) && (d.home == "" || d.home == c.who.Path.Interface()) {
		payload[pathKey] = c.who.Path.String()
	}
}

// words moves a message's text to where it belongs.
func (c *checker) words(d *Definition, payload map[string]any) {
	text, ok := payload[messageKey].(string)
	if ok && !d.has(messageKey) && payload[textKey] == nil {
		payload[textKey] = text
		delete(payload, messageKey)
	}
}

// recipient finds the place that a name means.
func (c *checker) recipient(field string, d *Definition, payload map[string]any) {
	name := ""
	switch given := payload[recipientKey].(type) {
	case string:
		name = given
	case json.Number:
		name = given.String()
	default:
		return
	}
	if payload[pathKey] != nil && payload[pathKey] != "" {
		return
	}
	delete(payload, recipientKey)
	if name == "" {
		return
	}
	r := c.resolvers[d.Owner]
	if r == nil {
		c.fault(field+"."+recipientKey, d.Name, "names are not looked up here; give %s instead", pathKey)
		return
	}
	p, err := r.Find(c.who.Path, name)
	if err != nil || !c.mayWrite(c.who, p) {
		c.fault(field+"."+recipientKey, d.Name, "%q is nobody and nothing that may be written to from here", name)
		return
	}
	payload[pathKey] = p.String()
}

// target checks where a payload wants to go, and writes it in its one spelling.
func (c *checker) target(field string, d *Definition, payload map[string]any, value any) {
	text, ok := value.(string)
	if !ok {
		c.fault(field, d.Name, "must be a string")
		return
	}
	p, err := c.path(text, c.who)
	switch {
	case err != nil:
		c.fault(field, d.Name, "%v", err)
	case d.home != "" && p.Interface() != d.home:
		c.fault(field, d.Name, "%s serves paths that begin with %s", d.Name, d.home)
	case !c.mayWrite(c.who, p):
		c.fault(field, d.Name, "from here only %s and what lies below it may be written to", c.who.Path)
	case !d.has(pathKey) && p == c.who.Path:
		delete(payload, pathKey)
	default:
		payload[pathKey] = p.String()
	}
}

// fallback checks what is to be done when the step fails; one that may not run
// is left out.
func (c *checker) fallback(field string, step *core.Step, chain int) {
	if step.Fallback == nil {
		return
	}
	field += ".fallbackAction"
	next, ok := core.Step{}, false
	if chain < maxFallbacks {
		next, ok = c.step(field, *step.Fallback, chain+1)
	} else {
		c.fault(field, step.Type, "more than %d fallbacks of fallbacks", maxFallbacks)
	}
	step.Fallback = nil
	if ok {
		step.Fallback = &next
	}
}
