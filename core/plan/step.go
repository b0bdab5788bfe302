package plan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"synthbot/core"
	"synthbot/core/txt"
)

// object reads an object with the keys of a plan. It returns the steps unread.
func (r *reader) object(v value) (steps []value) {
	r.envelope(v)
	if v.has("response") {
		said, ok := textOf(v.get("response"))
		if !ok {
			r.fault("response", "must be a string")
		}
		r.plan.Response = strings.TrimSpace(said)
	}
	known, actions := planKeys, v.get("actions")
	if !present(actions.raw) && v.has("action") && v.get("action").kind() != '"' {
		known, actions = append(slices.Clip(planKeys), "action"), v.get("action")
	}
	r.readExtra(v, known)
	switch {
	case actions.kind() == '[':
		return actions.items
	case actions.fields != nil:
		return []value{actions} // a single one
	case present(actions.raw):
		r.fault("actions", "must be an array of objects")
	}
	return nil
}

// bareAction reads an action that is the whole answer, perhaps with keys of a plan. It returns the step unread.
func (r *reader) bareAction(v value) (steps []value) {
	final := normalKey(strings.ReplaceAll(v.get("action").text(), " ", ""))
	input := v.get("actioninput")
	if final == "finalanswer" && input.kind() == '"' {
		r.plan.Response = strings.TrimSpace(input.text())
		return nil
	}
	r.envelope(v)
	maps.DeleteFunc(v.fields, func(name string, _ value) bool { return slices.Contains(planKeys, normalKey(name)) })
	return []value{v}
}

// readExtra handles unknown keys of a plan: registered ones go into the metadata, remarks and empty values are dropped,
// all others go into Extra.
func (r *reader) readExtra(v value, known []string) {
	for k, f := range v.fields {
		n := normalKey(k)
		switch {
		case slices.Contains(known, n), slices.Contains(remarkKeys, n):
		case slices.Contains([]string{"null", `""`, "[]", "{}"}, string(f.raw)):
		case slices.Contains(r.keys, k):
			r.addMetadata(k, f.raw)
		case r.plan.Extra == nil:
			r.plan.Extra = map[string]json.RawMessage{k: f.raw}
		default:
			r.plan.Extra[k] = f.raw
		}
	}
}

func (r *reader) addMetadata(key string, value json.RawMessage) {
	m := make(map[string]json.RawMessage)
	if len(r.plan.Metadata) > 0 && json.Unmarshal(r.plan.Metadata, &m) != nil {
		return
	}
	m[key] = value
	r.plan.Metadata = core.JSON(m)
}

// Keys of a step, normalised. Remarks are dropped.
var (
	payloadKeys = []string{"payload", "params", "parameters", "actioninput", "arguments"}
	remarkKeys  = []string{"id", "reason", "reasoning", "thought", "thoughts", "comment", "explanation"}
	stepKeys    = slices.Concat(payloadKeys, remarkKeys, []string{
		"type", "action", "target", "priority", "requiresconfirmation", "confirmationmessage",
		"fallbackaction", "conditions",
	})
)

func (r *reader) step(field string, v value, chain int) (s core.Step, ok bool) {
	inner := v.get("function")
	if inner.fields != nil && (!v.has("type") || v.get("type").text() == "function") {
		v = inner
	}
	if v.fields == nil {
		r.fault(field, `must be an object with "type" and "payload"`)
		return s, false
	}
	known := stepKeys
	s.Type = cmp.Or(v.get("type").text(), v.get("action").text())
	if s.Type == "" {
		s.Type, known = v.get("name").text(), append(slices.Clip(known), "name")
	}
	s.Type = strings.TrimSpace(s.Type)
	invented := r.source != "" && !strings.Contains(r.source, s.Type) // by repairing
	if s.Type == "" || len(s.Type) > maxName || invented {
		r.fault(field+".type", "must be the name of an action")
		return s, false
	}
	before, readable := len(r.faults), true
	ok = r.payload(field, &s, v, known)
	s.Target, s.ConfirmText = v.get("target").text(), v.get("confirmationmessage").text()
	s.Priority = core.DefaultPriority
	if v.has("priority") {
		s.Priority = priority(v.get("priority").raw)
	}
	s.Confirm = v.has("requiresconfirmation") && confirm(v.get("requiresconfirmation").raw)
	if v.has("conditions") {
		s.Conditions, readable = r.conditions(field+".conditions", v.get("conditions"))
	}
	for i := range r.faults[before:] {
		r.faults[before+i].Action = s.Type
	}
	switch {
	case !v.has("fallbackaction"):
	case chain >= maxChain:
		r.fault(field+".fallbackAction", "more than %d fallbacks of fallbacks", maxChain)
	default:
		next, ok := r.step(field+".fallbackAction", v.get("fallbackaction"), chain+1)
		if ok {
			s.Fallback = &next
		}
	}
	return s, ok && readable
}

// payload reads a step's payload under any of its names, else from all keys that are not known, and its unit.
func (r *reader) payload(field string, s *core.Step, v value, known []string) bool {
	i := slices.IndexFunc(payloadKeys, v.has)
	if i < 0 {
		s.Payload, _ = json.Marshal(v.rest(known))
		return s.Payload != nil
	}
	s.Unit = txt.Clip(v.get("unit").text(), maxName)
	for _, extra := range slices.Sorted(maps.Keys(v.rest(append(slices.Clip(known), "unit")))) {
		r.fault(field+"."+txt.Clip(extra, 64), "unknown key; put what the action needs into its payload")
	}
	found := v.get(payloadKeys[i])
	payload, ok := payloadOf(found)
	words := strings.TrimSpace(found.text())
	if !ok && isMessageAction(s.Type) && words != "" && !strings.ContainsAny(words[:1], "{[") {
		payload, ok = core.JSON(map[string]string{"text": words}), true
	}
	if !ok {
		r.fault(field+".payload", "must be an object")
	}
	s.Payload = payload
	return ok
}

// payloadOf reads an object, or a string that holds one.
func payloadOf(v value) (json.RawMessage, bool) {
	text := bytes.TrimSpace([]byte(v.text()))
	if isObject(text) {
		inner, d := decode(text)
		if d.wrong == "" {
			v = inner
		}
	}
	if v.fields == nil {
		return nil, false
	}
	b := bytes.NewBuffer(make([]byte, 0, len(v.raw)))
	err := json.Compact(b, v.raw)
	return b.Bytes(), err == nil
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

// confirm reads a boolean. An unreadable one is true: an unneeded question does no harm.
func confirm(raw json.RawMessage) bool {
	no := []string{"", "null", "false", "no", "none", "0"}
	return !slices.Contains(no, strings.ToLower(strings.Trim(string(raw), `" `)))
}
