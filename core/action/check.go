package action

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/schema"
	"synthbot/core/txt"
)

// Properties of payloads with the same meaning in all actions.
const (
	textKey        = "text"
	messageKey     = "message" // an older name of textKey
	pathKey        = "interface_path"
	recipientKey   = "recipient"
	suggestionsKey = "suggestions"
	thenKey        = "then" // of an action that has Then
	targetKey      = "target"
)

const (
	maxPriority  = 10
	maxFallbacks = 4 // in a chain
)

// Resolver is the ability of an interface to find a place by a name that users give it
// ("#general", "@ann"), as seen from another place. It does not block.
type Resolver interface {
	Find(from core.Path, name string) (core.Path, error)
}

// Draft is a checked plan before any of it runs, for plugins that review plans.
type Draft struct {
	Who  Requester
	Plan core.Plan
	Done []string // the actions that earlier rounds of the turn called
}

// Reviewer is the ability of a plugin to send a plan back to the model, by naming faults. It is
// asked once a round, does not block, and changes nothing.
type Reviewer interface{ Review(Draft) []core.Fault }

// Editor is the ability of a plugin to complete the texts of a plan that was accepted, as by
// writing out short marks. It is asked once a round and does not block.
type Editor interface {
	Edit(who Requester, p core.Plan) core.Plan
}

// Check normalises and validates a whole plan. The returned plan holds the steps that may run, under their canonical
// names; only messages if the plan was repaired. The faults say what is wrong with the rest.
func (s *Snapshot) Check(p core.Plan, w Requester) (core.Plan, []core.Fault) {
	c := checker{Snapshot: s, who: w, repaired: p.Repaired, context: p.Context}
	steps := make([]core.Step, 0, len(p.Steps)+1)
	torn := make(map[string]bool) // units with a refused step
	for i := range p.Steps {
		if step, ok := c.step(fmt.Sprintf("actions[%d]", i), p.Steps[i], 0); ok {
			steps = append(steps, step)
		} else {
			torn[p.Steps[i].Unit] = true
		}
	}
	steps = slices.DeleteFunc(steps, func(s core.Step) bool { return s.Unit != "" && torn[s.Unit] })
	if len(steps) > 1 {
		steps = c.dropRepeatedMessages(steps)
	}
	if p.Response != "" && !w.Mute {
		steps = c.respond(p.Response, steps)
	}
	p.Steps = steps
	if len(p.Extra) > 0 {
		c.reportUnknownKeys(p.Extra, p.Steps)
	}
	p.Response, p.Extra = "", nil
	if len(p.Suggestions) > 0 {
		c.offerReplies(p.Suggestions, p.Steps)
	}
	return p, c.faults
}

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

// respond makes a plan's response the first step: "I'm looking it up" is sent before the steps that
// take long. It drops a response that a message of the plan repeats.
func (c *checker) respond(response string, steps []core.Step) []core.Step {
	if len(steps) > 0 && c.hasText(response, steps, true) {
		return steps
	}
	d, ok := c.Message(c.who.Path.Interface())
	if !ok {
		c.fault("response", "", "nothing here can send a message")
		return steps
	}
	step, before := core.Step{Type: d.Name, Priority: maxPriority}, len(c.faults)
	c.payload("response", d, &step, map[string]any{textKey: response})
	if len(c.faults) > before {
		return steps
	}
	return slices.Insert(steps, 0, step)
}

// MessageOf returns the text of a message step and the place that it is sent to, by default here;
// "" and the zero Path if the step is not a message.
func (s *Snapshot) MessageOf(step *core.Step, here core.Path) (text string, to core.Path) {
	d, ok := s.Resolve(step.Type)
	var m struct {
		Text string    `json:"text"`
		Path core.Path `json:"interface_path"`
	}
	if !ok || !d.IsMessage() || json.Unmarshal(step.Payload, &m) != nil {
		return "", core.Path{}
	}
	return m.Text, cmp.Or(m.Path, here)
}

func (c *checker) dropRepeatedMessages(steps []core.Step) []core.Step {
	kept := steps[:0]
	for i := range steps {
		text, _ := c.MessageOf(&steps[i], c.who.Path)
		again := func(s core.Step) bool {
			return s.Type == steps[i].Type && bytes.Equal(s.Payload, steps[i].Payload) &&
				len(s.Conditions)+len(steps[i].Conditions) == 0
		}
		if text == "" || !slices.ContainsFunc(kept, again) {
			kept = append(kept, steps[i])
		}
	}
	return kept
}

// hasText reports whether a message contains the words; with here, only one to the turn's place without conditions.
func (c *checker) hasText(words string, steps []core.Step, here bool) bool {
	words = foldText(words)
	for i := range steps {
		text, to := c.MessageOf(&steps[i], c.who.Path)
		if here && (to != c.who.Path || len(steps[i].Conditions) > 0) {
			continue
		}
		for range txt.Words(foldText(text), words) {
			return true
		}
	}
	return false
}

// foldText returns the form in which texts are compared.
func foldText(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }

// reportUnknownKeys reports top-level keys that are not registered, except those that repeat a message.
func (c *checker) reportUnknownKeys(extra map[string]json.RawMessage, steps []core.Step) {
	for _, k := range slices.Sorted(maps.Keys(extra)) {
		var text string
		if json.Unmarshal(extra[k], &text) == nil && strings.TrimSpace(text) != "" && c.hasText(text, steps, false) {
			continue
		}
		action := ""
		if d, ok := c.Resolve(k); ok {
			action = d.Name
		}
		if len(k) > 64 {
			k = strings.ToValidUTF8(k[:64], "") + "…"
		}
		c.fault(k, action, "unknown top-level key; put what is to be done into actions")
	}
}

// offerReplies adds the plan's suggestions to the last message here, if the interface can show them.
func (c *checker) offerReplies(suggestions []string, steps []core.Step) {
	for i := range slices.Backward(steps) {
		d, ok := c.Resolve(steps[i].Type)
		if !ok || !d.IsMessage() || d.properties[suggestionsKey] == nil {
			continue
		}
		payload := decodePayload(steps[i].Payload)
		if payload[suggestionsKey] != nil || payload[pathKey] != c.who.Path.String() {
			continue
		}
		payload[suggestionsKey] = plainJSON(suggestions)
		if len(d.input.Validate(payload)) == 0 {
			steps[i].Payload = core.JSON(payload)
		}
		return
	}
}

func (c *checker) step(field string, step core.Step, chain int) (core.Step, bool) {
	before := len(c.faults)
	d, ok := c.Resolve(step.Type)
	if !ok {
		name, isControl := Control(step.Type)
		if isControl && chain == 0 {
			c.conditions(field, &step)
			return core.Step{Type: name, Priority: step.Priority, Conditions: step.Conditions}, len(c.faults) == before
		}
		d, ok = c.guessAction(field, step)
	}
	if !ok {
		return step, false
	}
	step.Type = d.Name
	if c.repaired && !d.IsMessage() {
		c.fault(field, d.Name, "the answer was not complete JSON and had to be repaired; send the whole plan again")
		return step, false
	}
	payload := map[string]any{}
	if len(step.Payload) > 0 && string(step.Payload) != "null" {
		payload = decodePayload(step.Payload)
	}
	c.payload(field, d, &step, payload)
	c.conditions(field, &step)
	if len(c.faults) > before {
		return step, false
	}
	if step.Fallback != nil {
		c.fallback(field, &step, chain)
	}
	return step, true
}

// guessAction finds the action that an unknown name means. "message" means the message action of the
// interface in the payload's path, else of the current interface.
func (c *checker) guessAction(field string, step core.Step) (*Definition, bool) {
	if Normal(step.Type) == "message" {
		iface := c.who.Path.Interface()
		to, _ := decodePayload(step.Payload)[pathKey].(string)
		if p, err := c.path(to, c.who); err == nil {
			iface = p.Interface()
		}
		if d, ok := c.Message(iface); ok {
			return d, true
		}
	}
	near := c.suggest(step.Type, c.who)
	if near != nil {
		c.fault(field+".type", near.Name, "there is no action %q; did you mean %s?", step.Type, near.Name)
	} else {
		c.fault(field+".type", "", "there is no action %q; use one of the actions on offer", step.Type)
	}
	return nil, false
}

// payload corrects a decoded payload where the meaning is certain, validates it, and sets it as the step's.
func (c *checker) payload(field string, d *Definition, step *core.Step, payload map[string]any) {
	if payload == nil {
		c.fault(field+".payload", d.Name, "must be an object")
		return
	}
	before := len(c.faults)
	if step.Target != "" {
		c.moveTarget(field, d, step, payload)
	}
	c.address(field+".payload", d, payload)
	if d.Concerns != "" && payload[d.Concerns] == nil && c.permission(d, c.who) == core.PermissionConcerned {
		who, ok := c.who.Author()
		if ok { // nobody is named: it concerns the user who asked
			payload[d.Concerns] = who.ID
		}
	}
	if len(c.faults) > before {
		return
	}
	why := c.refusal(d, c.who, payload)
	if why != "" {
		c.fault(field, d.Name, "%s %s", d.Name, why)
		return
	}
	payload = schema.MapLeaves(payload, schema.Integer).(map[string]any)
	if len(d.askable) > 0 && step.Unit == "" && c.who.canConfirm() {
		step.Missing = c.missing(d, payload)
	}
	for _, f := range d.input.Accept(payload) {
		if f.Path != "" || f.Keyword != "required" || len(step.Missing) == 0 {
			c.fault(field+".payload"+f.Field(), d.Name, "%s", f.Text)
		}
	}
	step.Payload = core.JSON(payload)
	if d.Then != nil {
		for i, next := range d.Then(step.Payload) {
			c.step(fmt.Sprintf("%s.payload.%s[%d]", field, thenKey, i), next, 1)
		}
	}
	if !step.Confirm {
		return
	}
	_, to := c.MessageOf(step, c.who.Path)
	step.Confirm = to != c.who.Path // a message to the place itself needs no confirmation
	if step.Confirm && !c.who.canConfirm() {
		c.fault(field, d.Name, "%s", unconfirmable)
	}
}

// moveTarget moves a step's target into the payload's property "target", or else into its only missing text.
func (c *checker) moveTarget(field string, d *Definition, step *core.Step, payload map[string]any) {
	target, key := step.Target, targetKey
	step.Target = ""
	if d.properties[targetKey] == nil {
		lacking := slices.DeleteFunc(slices.Clone(d.required), func(name string) bool { return payload[name] != nil })
		if len(lacking) != 1 || d.IsMessage() || d.property(lacking[0])["type"] != "string" {
			return
		}
		key = lacking[0]
	}
	switch payload[key] {
	case target:
	case nil:
		payload[key] = target
	default:
		c.fault(field+"."+targetKey, d.Name, "differs from payload.%s; give it once, in the payload", targetKey)
	}
}

// address checks the place that a payload is sent to. The default is the current place.
func (c *checker) address(field string, d *Definition, payload map[string]any) {
	if d.IsMessage() {
		text, ok := payload[messageKey].(string)
		if ok && d.properties[messageKey] == nil && payload[textKey] == nil {
			payload[textKey] = text
			delete(payload, messageKey)
		}
		if payload[recipientKey] != nil {
			c.recipient(field, d, payload)
		}
	}
	here, isHome := c.who.Path.String(), d.home == "" || d.home == c.who.Path.Interface()
	to := payload[pathKey]
	switch {
	case to != nil && to != "" && (to != here || !isHome):
		c.target(field+"."+pathKey, d, payload, to)
	case isHome && d.properties[pathKey] != nil:
		payload[pathKey] = here
	default:
		delete(payload, pathKey)
	}
}

// recipient replaces the name of a place by its path.
func (c *checker) recipient(field string, d *Definition, payload map[string]any) {
	name, ok := payload[recipientKey].(string)
	number, isNumber := payload[recipientKey].(json.Number)
	if isNumber {
		name, ok = number.String(), true
	}
	if !ok || payload[pathKey] != nil && payload[pathKey] != "" {
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
		c.fault(field+"."+recipientKey, d.Name, "cannot send messages to %q from here", name)
		return
	}
	payload[pathKey] = p.String()
}

// target checks the path in a payload, and replaces it by its canonical form.
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
		c.fault(field, d.Name, "cannot send messages there, only to %s and what lies below it", c.who.Path)
	case d.properties[pathKey] == nil && p == c.who.Path:
		delete(payload, pathKey)
	default:
		payload[pathKey] = p.String()
	}
}

// fallback checks the fallback of a step. It drops one that may not run, and built-in actions, which need none.
func (c *checker) fallback(field string, step *core.Step, chain int) {
	next := *step.Fallback
	step.Fallback = nil
	if _, ok := Control(next.Type); ok {
		return
	}
	if chain >= maxFallbacks {
		c.fault(field+".fallbackAction", step.Type, "more than %d fallbacks of fallbacks", maxFallbacks)
		return
	}
	next.Unit = step.Unit
	if next, ok := c.step(field+".fallbackAction", next, chain+1); ok {
		step.Fallback = &next
	}
}
