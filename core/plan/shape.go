package plan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"synthbot/core"
	"synthbot/core/txt"
)

// shape is what a JSON value looks like from outside.
type shape int

const (
	shapeNone   shape = iota
	shapePlan         // an object with response or actions
	shapeAction       // one bare action
	shapeList         // an array of actions
)

var planKeys = []string{"response", "actions", "intent", "confidence", "context", "suggestions", "metadata"}

func shapeOf(raw json.RawMessage) shape {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return shapeNone
	}
	switch raw[0] {
	case '[':
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
			return shapeNone
		}
		isAction := func(e json.RawMessage) bool { return shapeOfObject(e) == shapeAction }
		isOnePlan := len(list) == 1 && shapeOfObject(list[0]) == shapePlan
		if isOnePlan || slices.ContainsFunc(list, isAction) {
			return shapeList
		}
	case '{':
		return shapeOfObject(raw)
	}
	return shapeNone
}

func shapeOfObject(raw json.RawMessage) shape {
	o, err := object(raw)
	if err != nil {
		return shapeNone
	}
	switch {
	case o.has("response"), o.has("actions"):
		return shapePlan
	case o.isString("type"), o.isString("action"), o.isString("name") && (o.has("arguments") || o.has("parameters")):
		return shapeAction
	case o.has("action"):
		return shapePlan
	}
	if slices.ContainsFunc(planKeys, o.has) {
		return shapePlan
	}
	return shapeNone
}

// fields is a JSON object. Its known keys are found in any spelling.
type fields struct {
	values map[string]json.RawMessage // by normalised key
	names  map[string]string          // the key as it was written
}

var errObject = errors.New("no object")

func object(raw json.RawMessage) (fields, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil || m == nil {
		return fields{}, errObject
	}
	f := fields{make(map[string]json.RawMessage, len(m)), make(map[string]string, len(m))}
	for k, v := range m {
		n := normal(k)
		_, twice := f.values[n]
		if twice && k != n {
			continue // the plain spelling wins
		}
		f.values[n], f.names[n] = v, k
	}
	return f, nil
}

// normal makes "requires_confirmation" and "requiresConfirmation" one key.
func normal(key string) string {
	return strings.ToLower(strings.ReplaceAll(key, "_", ""))
}

func (f fields) has(key string) bool { return present(f.values[key]) }

func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func (f fields) isString(key string) bool {
	raw := f.values[key]
	return len(raw) > 0 && raw[0] == '"'
}

// text returns a string value; "" if there is none.
func (f fields) text(key string) string {
	var s string
	if f.isString(key) {
		_ = json.Unmarshal(f.values[key], &s)
	}
	return s
}

// rest returns the keys that are not among known, as they were written.
func (f fields) rest(known ...string) map[string]json.RawMessage {
	rest := make(map[string]json.RawMessage)
	for n, v := range f.values {
		if !slices.Contains(known, n) {
			rest[f.names[n]] = v
		}
	}
	return rest
}

func (r *reader) object(raw json.RawMessage) {
	f, err := object(raw)
	if err != nil {
		return
	}
	r.envelope(f)
	said, ok := textOf(f.values["response"])
	if f.has("response") && !ok {
		r.fault("response", "must be a string")
	}
	r.plan.Response = strings.TrimSpace(said)
	list := f.values["actions"]
	known := append([]string{"response", "actions"}, planKeys...)
	if !present(list) && f.has("action") && !f.isString("action") {
		list = f.values["action"]
		known = append(known, "action")
	}
	list = bytes.TrimSpace(list)
	steps := []json.RawMessage{list} // or a single one
	switch {
	case !present(list):
	case list[0] != '{' && json.Unmarshal(list, &steps) != nil:
		r.fault("actions", "must be an array of objects")
	default:
		r.steps(steps)
	}
	r.stray(f.rest(known...))
}

func (r *reader) steps(list []json.RawMessage) {
	base := len(r.plan.Steps)
	for i, raw := range list {
		if s, ok := r.step(fmt.Sprintf("actions[%d]", base+i), raw, 0); ok {
			r.plan.Steps = append(r.plan.Steps, s)
		}
	}
}

// bare reads one action in the place of a plan, perhaps with keys of a plan beside its own.
func (r *reader) bare(raw json.RawMessage) {
	f, err := object(raw)
	if err != nil {
		return
	}
	final := normal(strings.ReplaceAll(f.text("action"), " ", ""))
	if final == "finalanswer" && f.isString("actioninput") {
		r.plan.Response = strings.TrimSpace(f.text("actioninput"))
		return
	}
	r.envelope(f)
	for _, k := range planKeys {
		delete(f.values, k)
	}
	if s, ok := r.fields(fmt.Sprintf("actions[%d]", len(r.plan.Steps)), f, 0); ok {
		r.plan.Steps = append(r.plan.Steps, s)
	}
}

// stray sorts the keys that a plan does not have. Remarks and empty values are dropped.
func (r *reader) stray(rest map[string]json.RawMessage) {
	for k, v := range rest {
		switch {
		case slices.Contains(remarkKeys, normal(k)), slices.Contains([]string{"null", `""`, "[]", "{}"}, string(v)):
		case slices.Contains(r.keys, k):
			r.note(k, v)
		case r.plan.Extra == nil:
			r.plan.Extra = map[string]json.RawMessage{k: v}
		default:
			r.plan.Extra[k] = v
		}
	}
}

// note puts a registered key into the metadata.
func (r *reader) note(key string, value json.RawMessage) {
	m := make(map[string]json.RawMessage)
	if len(r.plan.Metadata) > 0 && json.Unmarshal(r.plan.Metadata, &m) != nil {
		return
	}
	m[key] = value
	if raw, err := json.Marshal(m); err == nil {
		r.plan.Metadata = raw
	}
}

func (r *reader) step(field string, raw json.RawMessage, chain int) (core.Step, bool) {
	f, err := object(raw)
	if err != nil {
		r.fault(field, `must be an object with "type" and "payload"`)
		return core.Step{}, false
	}
	if f.has("function") && (!f.has("type") || f.text("type") == "function") {
		if inner, err := object(f.values["function"]); err == nil {
			f = inner
		}
	}
	return r.fields(field, f, chain)
}

// Keys of a step, normalised. Remarks are dropped.
var (
	payloadKeys = []string{"payload", "params", "parameters", "actioninput", "arguments"}
	stepKeys    = []string{
		"type", "action", "target", "priority", "requiresconfirmation", "confirmationmessage",
		"fallbackaction", "conditions",
	}
	remarkKeys = []string{"id", "reason", "reasoning", "thought", "thoughts", "comment", "explanation"}
)

func (r *reader) fields(field string, f fields, chain int) (s core.Step, ok bool) {
	s = core.Step{Target: f.text("target"), ConfirmText: f.text("confirmationmessage")}
	known := slices.Concat(payloadKeys, stepKeys, remarkKeys)
	if slices.ContainsFunc(payloadKeys, f.has) { // else it belongs to the payload
		s.Unit = txt.Clip(f.text("unit"), maxName)
		known = append(known, "unit")
	}
	s.Type = cmp.Or(f.text("type"), f.text("action"))
	if s.Type == "" {
		s.Type = f.text("name")
		known = append(known, "name")
	}
	s.Type = strings.TrimSpace(s.Type)
	invented := r.source != "" && !strings.Contains(r.source, s.Type) // by repairing
	if s.Type == "" || len(s.Type) > maxName || invented {
		r.fault(field+".type", "must be the name of an action")
		return s, false
	}
	before := len(r.faults)
	s.Payload, ok = r.payload(field, s.Type, f, known)
	s.Priority = priority(f.values["priority"])
	s.Confirm = confirm(f.values["requiresconfirmation"])
	conditions, readable := r.conditions(field+".conditions", f.values["conditions"])
	s.Conditions = conditions
	for i := range r.faults[before:] {
		r.faults[before+i].Action = s.Type
	}
	s.Fallback = r.fallback(field+".fallbackAction", f.values["fallbackaction"], chain)
	return s, ok && readable
}

// payload finds a step's payload under any of its names. Without one, the keys that are not
// the step's own are the payload.
func (r *reader) payload(field, name string, f fields, known []string) (json.RawMessage, bool) {
	rest := f.rest(known...)
	for _, k := range payloadKeys {
		if !f.has(k) {
			continue
		}
		for _, extra := range slices.Sorted(maps.Keys(rest)) {
			r.fault(field+"."+txt.Clip(extra, 64), "unknown key; what the action needs belongs into its payload")
		}
		payload, ok := payloadOf(f.values[k])
		words := strings.TrimSpace(f.text(k))
		if !ok && speaks(name) && words != "" && !strings.ContainsAny(words[:1], "{[") {
			payload, ok = core.JSON(map[string]string{"text": words}), true
		}
		if !ok {
			r.fault(field+".payload", "must be an object")
		}
		return payload, ok
	}
	raw, err := json.Marshal(rest)
	return raw, err == nil
}

// payloadOf reads an object, or a string that holds one.
func payloadOf(raw json.RawMessage) (json.RawMessage, bool) {
	raw = bytes.TrimSpace(raw)
	var s string
	if json.Unmarshal(raw, &s) == nil && len(raw) > 0 && raw[0] == '"' {
		raw = bytes.TrimSpace([]byte(s))
		if lint(raw) != nil {
			return nil, false
		}
	}
	var b bytes.Buffer
	if len(raw) == 0 || raw[0] != '{' || json.Compact(&b, raw) != nil {
		return nil, false
	}
	return b.Bytes(), true
}

func number(raw json.RawMessage) (float64, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(strings.Trim(string(raw), `"`)), 64)
	return n, err == nil && n == n
}

// priority reads a number or a word; the default if it is neither.
func priority(raw json.RawMessage) int {
	n, ok := number(raw)
	if !ok {
		word := strings.ToLower(strings.Trim(string(raw), `"`))
		return cmp.Or(map[string]int{"urgent": 9, "high": 8, "low": 2}[word], core.DefaultPriority)
	}
	return int(min(max(n, 0), 10))
}

// confirm is true if it cannot be read: asking once too often does no harm.
func confirm(raw json.RawMessage) bool {
	no := []string{"", "null", "false", "no", "none", "0"}
	return !slices.Contains(no, strings.ToLower(strings.Trim(string(raw), `" `)))
}

func (r *reader) fallback(field string, raw json.RawMessage, chain int) *core.Step {
	if !present(raw) {
		return nil
	}
	if chain >= maxChain {
		r.fault(field, "more than %d fallbacks of fallbacks", maxChain)
		return nil
	}
	s, ok := r.step(field, raw, chain+1)
	if !ok {
		return nil
	}
	return &s
}
