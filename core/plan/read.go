// Package plan reads a model's answer, tolerantly, into a Plan. It knows the format of the reply and nothing of the
// catalogue: package action checks whether an action exists and whether its payload is valid.
//
// # What is read
//
// One JSON object with the keys response, intent, confidence, actions, context, suggestions and metadata; a bare
// array of actions; one bare action {"type", "payload"}; {"action", "action_input"}; a tool call {"name",
// "arguments"}; native tool calls; each of them also inside of a fenced block, after a block of reasoning, or with
// prose around it. Several bare actions one after the other are a list. params is read as payload, names of keys may
// be written in snake case, a number may be a string. Reasoning is removed from all texts of a plan, too.
//
// # What is repaired
//
// Text that was clearly meant to be JSON is repaired, and the plan is marked Repaired. So is a plan of an answer that
// was cut off, one that has a key twice, and one of several plans with prose in between. Only messages of such a plan
// may run. It never holds an action whose name is not literally in the text.
//
// # What is refused
//
// An empty answer, prose without any JSON, a plan with neither response nor actions, a step without a type, a step
// whose conditions cannot be read, and a value of a wrong type are one Fault each. Text beyond MaxText, more than 64
// levels of nesting and more than 32 steps are not read at all.
package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kaptinlin/jsonrepair"

	"synthbot/core"
	"synthbot/core/llm"
)

// Bounds of an answer.
const (
	MaxText   = 256 << 10 // bytes of an answer
	maxRepair = 32 << 10  // bytes of broken JSON that are repaired
	maxProse  = 4000      // bytes of a text that Prose returns
	maxStarts = 64        // brackets that are tried as the beginning of JSON, because each try may read the whole rest
	maxDepth  = 64        // levels of nesting
	maxSteps  = 32
	maxChain  = 4  // fallbacks of fallbacks
	maxName   = 64 // bytes of an action's name
)

// Read turns a model's answer into a Plan. The faults say what could not be read; the Plan
// holds the rest. keys are further top-level keys that plugins registered; their values go
// into the metadata. Read never panics, and never invents an action.
func Read(a llm.Answer, keys ...string) (core.Plan, []core.Fault) {
	r := reader{keys: keys}
	r.plan.Repaired = a.Truncated
	text := []byte(strings.TrimSpace(a.Text))
	switch {
	case len(a.Calls) > 0:
		r.calls(a)
	case len(a.Text) > MaxText:
		r.fault("", "the answer has %d bytes, at most %d are allowed", len(a.Text), MaxText)
	case isObject(text): // the normal case
		r.value(text)
	default:
		r.search(strip(a.Text))
	}
	r.dropNestedPlans()
	if len(r.plan.Steps) > maxSteps {
		r.fault("actions", "%d actions, at most %d are allowed", len(r.plan.Steps), maxSteps)
		r.plan.Steps = nil
	}
	if len(r.plan.Steps) == 0 && r.plan.Response == "" && len(r.faults) == 0 {
		r.fault("", `the plan has neither "response" nor "actions"`)
	}
	return r.plan, r.faults
}

type reader struct {
	keys   []string
	plan   core.Plan
	faults []core.Fault
	source string // if repaired: the text that must contain the names of its actions
}

func (r *reader) fault(field, format string, args ...any) {
	r.faults = append(r.faults, core.Fault{Field: field, Text: fmt.Sprintf(format, args...)})
}

func (r *reader) search(text string) {
	if text == "" {
		r.fault("", "the answer is empty")
		return
	}
	f := find(text)
	if f.broken != "" {
		r.source = text
		r.repair(&f)
	}
	switch {
	case len(f.values) == 0 && f.broken != "":
		r.fault("", "the answer is not valid JSON")
	case len(f.values) == 0 && f.other:
		r.fault("", noPlan)
	case len(f.values) == 0:
		r.fault("", "the answer is prose; answer with one JSON object")
	case len(f.values) == 1 || f.list():
		for _, v := range f.values {
			r.value(v.raw)
		}
	default:
		r.plan.Repaired = true
		r.fault("", "the answer holds %d plans; send exactly one", len(f.values))
		r.value(f.values[len(f.values)-1].raw)
	}
}

const noPlan = `the JSON of the answer is not an action plan: it has neither "response" nor "actions"`

func (r *reader) value(raw json.RawMessage) {
	v, ok := r.decode("", raw)
	if !ok {
		return
	}
	shape, steps := v.shape(), v.items
	switch {
	case shape == shapeNone:
		r.fault("", noPlan)
		return
	case shape == shapePlan:
		steps = r.object(v)
	case shape == shapeAction:
		steps = r.bareAction(v)
	case v.isOnePlan():
		steps = r.object(v.items[0])
	}
	base := len(r.plan.Steps)
	for i, v := range steps {
		if s, ok := r.step(fmt.Sprintf("actions[%d]", base+i), v, 0); ok {
			r.plan.Steps = append(r.plan.Steps, s)
		}
	}
}

// decode reads valid JSON, without reasoning. It adds what is wrong to the faults; ok is false if that is fatal.
func (r *reader) decode(field string, raw json.RawMessage) (v value, ok bool) {
	v, d := decode(raw)
	if d.wrong != "" {
		r.fault(field, "%s", d.wrong)
		r.plan.Repaired = r.plan.Repaired || !d.fatal
	}
	if d.thoughts {
		v, _ = decode(unthink(raw))
	}
	return v, !d.fatal
}

// calls reads native tool calls, and the text beside them.
func (r *reader) calls(a llm.Answer) {
	said := false
	for i, c := range a.Calls {
		field := fmt.Sprintf("actions[%d]", i)
		if c.Name == "" || len(c.Name) > maxName {
			r.fault(field, "a tool call without a usable name")
			continue
		}
		said = said || strings.HasPrefix(strings.ToLower(c.Name), core.MessagePrefix)
		payload, ok := r.arguments(field, c)
		if ok {
			s := core.Step{Type: c.Name, Payload: payload, Priority: core.DefaultPriority}
			r.plan.Steps = append(r.plan.Steps, s)
		}
	}
	beside, faults := Read(llm.Answer{Text: a.Text, Truncated: a.Truncated}, r.keys...)
	if len(faults) == 0 && len(beside.Steps) == 0 {
		beside.Steps = r.plan.Steps
		beside.Repaired = beside.Repaired || r.plan.Repaired
		r.plan = beside
	} else if prose, ok := Prose(a.Text); ok && !said {
		r.plan.Response = prose
	}
}

// arguments reads the arguments of one tool call. Broken ones are repaired.
func (r *reader) arguments(field string, c llm.ToolCall) (json.RawMessage, bool) {
	raw := bytes.TrimSpace(c.Arguments)
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage("{}"), true
	}
	if len(raw) > MaxText {
		r.fault(field+".payload", "%d bytes, at most %d are allowed", len(raw), MaxText)
		return nil, false
	}
	if !json.Valid(raw) {
		repaired, ok := repair(string(raw))
		if !ok {
			r.fault(field+".payload", "the arguments of %s are not valid JSON", c.Name)
			return nil, false
		}
		r.plan.Repaired = true
		raw = []byte(repaired)
	}
	v, ok := r.decode(field+".payload", raw)
	if !ok {
		return nil, false
	}
	payload, ok := payloadOf(v)
	if !ok {
		r.fault(field+".payload", "the arguments of %s must be an object", c.Name)
	}
	return payload, ok
}

// repair repairs broken JSON. If the result is not a plan, it looks for whole plans inside. Only messages may run.
func (r *reader) repair(f *findings) {
	r.plan.Repaired = true
	repaired, ok := repair(f.broken)
	again := findings{}
	if ok {
		again.add(json.RawMessage(repaired), f.adjacent)
	}
	if len(again.values) == 0 {
		again = find(f.broken[1:])
	}
	f.values = append(f.values, again.values...)
}

func tooDeep(text string) bool {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '{', '[':
			depth++
			if depth > maxDepth {
				return true
			}
		case '}', ']':
			depth = max(depth-1, 0)
		}
	}
	return false
}

// repair repairs text that was meant to be JSON. ok is false if that fails, or it is too long or nests too deep.
func repair(text string) (repaired string, ok bool) {
	if len(text) > maxRepair || tooDeep(text) {
		return "", false
	}
	if repaired, ok = try(text); ok {
		return repaired, true
	}
	end := strings.LastIndexAny(text, "}]")
	if end > 0 && end < len(text)-1 {
		return try(text[:end+1]) // without the prose after it
	}
	return "", false
}

// try calls the library, which may panic on untrusted text.
func try(text string) (repaired string, ok bool) {
	defer func() {
		if recover() != nil {
			repaired, ok = "", false
		}
	}()
	repaired, err := jsonrepair.Repair(text)
	return repaired, err == nil && json.Valid([]byte(repaired))
}
